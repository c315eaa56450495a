#ifndef PLANCAST_STRATEGY_NODES_STAGE_CUTS_H_
#define PLANCAST_STRATEGY_NODES_STAGE_CUTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/model/model_cut.h"
#include "graph/model/model_graph.h"
#include "strategy/strategy_tree.h"

namespace plancast {

// Where the stages of a list begin, all but the first. A stage is a piece of the model, in the
// order of its ops, and the stages are all of it.
// Errors, which name the stage and the node: paths of nothing, ops on two stages or on none, stages
// or pieces of them out of order, a stage whose ops only rename tensors.
absl::StatusOr<std::vector<ModelCut>> StageCuts(const ModelGraph& graph,
                                                absl::Span<const StageNodes> stages);

// The first and the last op of every part: `features.conv1..features.pool2 |
// layers.3.qkv..head.fc`.
std::string StagesText(const ModelGraph& graph, absl::Span<const ModelCut> cuts);

}  // namespace plancast

#endif  // PLANCAST_STRATEGY_NODES_STAGE_CUTS_H_
