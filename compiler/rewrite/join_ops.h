#ifndef PLANCAST_COMPILER_REWRITE_JOIN_OPS_H_
#define PLANCAST_COMPILER_REWRITE_JOIN_OPS_H_

#include <string>

#include "absl/status/statusor.h"
#include "graph/model/model_graph.h"
#include "strategy/strategy_tree.h"

namespace plancast {

// The model with the ops joined that nodes say are computed where one of them reads
// (`compute_at: OP`, Halide's compute_at): they become one op, called as that one and cut as it is.
// What passes between them is no longer communicated. Where a stencil reads beyond a part, each
// device computes the border again for itself from a wider border of what the first of them read,
// which it exchanges once. Others keep `communicate at`: each op exchanges what it reads.
// Errors, which begin with the node: no such op; an op that is not joined and stands between two
// that are; ops of rules that are no one rule (join_rules.h).
absl::StatusOr<ModelGraph> JoinedOps(const ModelGraph& graph, const StrategyTree& tree);

// All that JoinedOps depends on of the tree.
std::string JoinKey(const StrategyTree& tree);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_REWRITE_JOIN_OPS_H_
