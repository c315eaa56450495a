#ifndef PLANCAST_PLANNER_SEARCH_RECOMPUTE_WORDS_H_
#define PLANCAST_PLANNER_SEARCH_RECOMPUTE_WORDS_H_

#include <string>
#include <vector>

#include "graph/model/model_graph.h"
#include "strategy/software_profile.h"

namespace plancast {

// Every `selective:WORD+WORD` of words that cover something in the model's layers under a profile;
// a word that covers all of a layer stands alone.
std::vector<std::string> RecomputeSetsOf(const ModelGraph& graph, const SoftwareProfile& profile);

// Of the words that searches under the profile try (FrameworkLimits), each alone and the first ones
// together, as far as they cover something.
std::vector<std::string> UsualRecomputeSetsOf(const ModelGraph& graph,
                                              const SoftwareProfile& profile);

}  // namespace plancast

#endif  // PLANCAST_PLANNER_SEARCH_RECOMPUTE_WORDS_H_
