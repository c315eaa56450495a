#ifndef PLANCAST_COMPILER_LOWER_KERNELS_EAGER_H_
#define PLANCAST_COMPILER_LOWER_KERNELS_EAGER_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "graph/dtype.h"
#include "graph/rule/op_rule.h"

namespace plancast {

// What statements cost when a framework without a fused kernel runs them one
// arithmetic operation at a time, as PyTorch does: every operation reads its
// operands from memory and writes its result there, in fp32 where an operand or
// the target is fp32; a reduction is one more operation.
struct EagerTraffic {
  double read_bytes = 0, write_bytes = 0;
  int kernels = 0;
};

// Statements [begin, end) of `rule` on a shard with these local factor sizes.
// `element_bytes` gives the stored size of a type. Lookups (products with an
// indicator) are gathers and cost what they select.
EagerTraffic EagerTrafficOf(const OpRule& rule, const std::vector<int64_t>& extents, int begin,
                            int end, const std::function<double(DType)>& element_bytes);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_LOWER_KERNELS_EAGER_H_
