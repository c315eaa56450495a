#ifndef PLANCAST_COMPILER_LOWER_KERNELS_PRODUCT_BIAS_H_
#define PLANCAST_COMPILER_LOWER_KERNELS_PRODUCT_BIAS_H_

#include "compiler/body/body_plan.h"
#include "compiler/lower/kernels/lower_kernel.h"

namespace plancast {

// Adds what adapters give to the results of the product beside them.
inline constexpr char kAdapterSum[] = "lora_add";

// Whether a step adds a bias that the product before it adds in its epilogue (`product_bias` of a
// profile's fusions), so that no kernel runs and nothing new is written. Not where the product's
// results are still to be summed over a mesh axis, nor where another op reads them without the
// bias.
bool AddedByProduct(const LowerContext& context, const OpStep& step);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_LOWER_KERNELS_PRODUCT_BIAS_H_
