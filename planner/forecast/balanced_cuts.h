#ifndef PLANCAST_PLANNER_FORECAST_BALANCED_CUTS_H_
#define PLANCAST_PLANNER_FORECAST_BALANCED_CUTS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/model/model_cut.h"
#include "graph/model/model_graph.h"

namespace plancast {

// Where to cut a model in `stages` parts, inside of modules too: so that the part with the most
// floating-point operations has as few as can be and each has some (ModelFlopsPerSample; the ops
// in their order), and of these cuts those that the fewest bytes cross, the latest of equal ones:
// what follows a product stays with it.
// Errors: more parts than ops that have any.
absl::StatusOr<std::vector<ModelCut>> BalancedCuts(const ModelGraph& graph, int64_t stages);

}  // namespace plancast

#endif  // PLANCAST_PLANNER_FORECAST_BALANCED_CUTS_H_
