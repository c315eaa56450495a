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

// OK if every node holds for one of `ops` at least (paths as in
// StrategyTree::Resolve), names axes of the mesh only, and has a home that can
// be read; else an error with the nearest name. An empty `ops` checks no paths.
absl::Status CheckTree(const StrategyTree& tree, absl::Span<const SizedAxis> mesh,
                       absl::Span<const std::string> ops);

// The axis of a home layout: "dp" of `shard(dp)`, "" of `replicate`.
absl::StatusOr<std::string> HomeAxis(absl::string_view home);

}  // namespace plancast

#endif  // PLANCAST_STRATEGY_TREE_CHECK_H_
