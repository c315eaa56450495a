#ifndef PLANCAST_STRATEGY_TREE_CHECK_H_
#define PLANCAST_STRATEGY_TREE_CHECK_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "strategy/strategy_tree.h"

namespace plancast {

// A mesh axis and its size.
using SizedAxis = std::pair<std::string, int64_t>;

// OK if all that nodes say takes effect; else an error that begins with the node:
// - every node holds for one of `ops` at least (paths as in StrategyTree::Resolve; an
//   empty `ops` checks no paths) and names axes of the mesh only;
// - `pp` splits nothing;
// - `home` and `bucket` are those of the plan, which has one of each for all parameters.
absl::Status CheckTree(const StrategyTree& tree, absl::Span<const SizedAxis> mesh,
                       absl::Span<const std::string> ops);

// The axis of a home layout: "dp" of `shard(dp)`, "" of `replicate`.
absl::StatusOr<std::string> HomeAxis(absl::string_view home);

}  // namespace plancast

#endif  // PLANCAST_STRATEGY_TREE_CHECK_H_
