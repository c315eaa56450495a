#ifndef PLANCAST_TESTS_PLANNER_LANGUAGE_RANDOM_STAGES_H_
#define PLANCAST_TESTS_PLANNER_LANGUAGE_RANDOM_STAGES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "graph/model/model_cut.h"
#include "graph/model/model_graph.h"
#include "tests/compiler/folded_against_reference.h"

namespace plancast {

// So many places, ascending, where stages may begin: layers and modules, and ops inside of them
// if `inside`. Fewer where the model has fewer.
std::vector<ModelCut> DrawStageBegins(Dice& dice, const ModelGraph& graph, int64_t count,
                                      bool inside);

// The nodes of the strategy tree that hold the ops between two places.
std::vector<std::string> NodesBetween(const ModelGraph& graph, const ModelCut& begin,
                                      const ModelCut& end);

// Behind the last op.
ModelCut EndOf(const ModelGraph& graph);

}  // namespace plancast

#endif  // PLANCAST_TESTS_PLANNER_LANGUAGE_RANDOM_STAGES_H_
