#ifndef PLANCAST_PLANNER_SEARCH_RECOMPUTE_WORDS_H_
#define PLANCAST_PLANNER_SEARCH_RECOMPUTE_WORDS_H_

#include <string>
#include <vector>

#include "graph/model/model_graph.h"

namespace plancast {

// Every `selective:WORD+WORD` of words that cover something in the model's layers; a word that
// covers all of a layer stands alone.
std::vector<std::string> RecomputeSetsOf(const ModelGraph& graph);

}  // namespace plancast

#endif  // PLANCAST_PLANNER_SEARCH_RECOMPUTE_WORDS_H_
