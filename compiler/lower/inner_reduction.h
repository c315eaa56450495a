#ifndef PLANCAST_COMPILER_LOWER_INNER_REDUCTION_H_
#define PLANCAST_COMPILER_LOWER_INNER_REDUCTION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/body/body_plan.h"
#include "compiler/lower/kernels/lower_kernel.h"
#include "graph/execution/execution_graph.h"
#include "graph/split/op_split.h"

namespace plancast {

// The exchange that an op owes between two of its statements, and what it is of: `m+z`.
struct InnerExchange {
  CommSpec comm;
  std::string names;
};
// `extents`: factor sizes of the largest shard.
InnerExchange ExchangeOf(const LowerContext& context, const OpRule& rule,
                         const std::vector<int64_t>& extents, const InnerReduction& reduction);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_LOWER_INNER_REDUCTION_H_
