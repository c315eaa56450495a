#ifndef PLANCAST_PLANNER_FORECAST_TUNED_PIECES_H_
#define PLANCAST_PLANNER_FORECAST_TUNED_PIECES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "strategy/strategy_tree.h"

namespace plancast {

// Whether some node leaves the pieces of an overlap open (`pieces: tuned`).
bool LeavesPiecesOpen(const StrategyTree& tree);

// The tree with numbers in their place, the fastest of 1, 2, 4, ..., `most`: one node after the
// other, in the order of their paths, each with the best of those before it and one piece for those
// behind it. `time` simulates a tree; what it refuses (pieces that do not divide) is left out.
// `chosen` is told of each. Errors: those of a tree with one piece.
absl::StatusOr<StrategyTree> TunePieces(
    StrategyTree tree, int64_t most,
    const std::function<absl::StatusOr<int64_t>(const StrategyTree&)>& time,
    std::map<std::string, std::string>* chosen);

}  // namespace plancast

#endif  // PLANCAST_PLANNER_FORECAST_TUNED_PIECES_H_
