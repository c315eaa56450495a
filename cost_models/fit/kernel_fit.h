#ifndef PLANCAST_COST_MODELS_FIT_KERNEL_FIT_H_
#define PLANCAST_COST_MODELS_FIT_KERNEL_FIT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cluster/machine.h"
#include "cost_models/fit/coefficient_fields.h"
#include "graph/kernel_spec.h"

namespace plancast {

// Kernels of one family on one GPU with their measured times.
struct MeasuredKernels {
  KernelFamily family = KernelFamily::kGemm;  // kGemm, kAttention or kMemory
  DeviceType device;
  std::vector<KernelSpec> kernels;  // of that family
  std::vector<double> seconds;      // positive, one per kernel
  std::vector<double> weights;      // not negative, one per kernel
};

// The time of each kernel by the formula that prices, with these coefficients (defaults where
// none is given). Convolutions (family kConvolution) are priced as their products by the
// coefficients of GEMM, without factor. Errors: an unknown coefficient, a kernel that the formula
// does not apply to, a device without the rates that it needs.
absl::StatusOr<std::vector<double>> PriceKernels(KernelFamily family, const DeviceType& device,
                                                 absl::Span<const KernelSpec> kernels,
                                                 const NamedCoefficients& coefficients);

// Fits the coefficients named in `wanted` to the logarithms of the times, from each of `starts`
// (of `known` and defaults where it names none); the best end counts. Returns the fitted and the
// known ones. Errors: as PriceKernels; columns of unequal length; times that are not positive.
absl::StatusOr<NamedCoefficients> FitKernels(const MeasuredKernels& measured,
                                             const std::vector<std::string>& wanted,
                                             const NamedCoefficients& known,
                                             const std::vector<NamedCoefficients>& starts,
                                             const FitOptions& options = {});

}  // namespace plancast

#endif  // PLANCAST_COST_MODELS_FIT_KERNEL_FIT_H_
