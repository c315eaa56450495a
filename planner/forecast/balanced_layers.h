#ifndef PLANCAST_PLANNER_FORECAST_BALANCED_LAYERS_H_
#define PLANCAST_PLANNER_FORECAST_BALANCED_LAYERS_H_

#include <cstdint>
#include <vector>

#include "graph/model/model_graph.h"

namespace plancast {

// How many layers each of `stages` virtual stages holds where what comes before the first layer
// (the embedding) and after the last (the head) counts too: so that the stage with the most
// floating-point operations has as few as can be (ModelFlopsPerSample); of these deals the most
// even, then that whose largest stage has the fewest parameters, then that with the most layers on
// late stages. It is what Yeung et al. 2024 (arXiv 2411.05288) compare vocabulary parallelism
// with. Empty: more stages than can have something to do (the first and the last may be without
// layers where something else is there).
std::vector<int64_t> BalancedLayers(const ModelGraph& graph, int64_t stages);

}  // namespace plancast

#endif  // PLANCAST_PLANNER_FORECAST_BALANCED_LAYERS_H_
