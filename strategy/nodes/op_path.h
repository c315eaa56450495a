#ifndef PLANCAST_STRATEGY_NODES_OP_PATH_H_
#define PLANCAST_STRATEGY_NODES_OP_PATH_H_

#include <cstdint>
#include <string>

#include "graph/model/model_graph.h"
#include "strategy/node_path.h"
#include "strategy/tree_check.h"

namespace plancast {

// An op of layer `layer` of a segment's list, which has `layers`. Its parts are in `text`.
ModulePath PathOf(const Segment& segment, const OpNode& op, int64_t layer, int64_t layers,
                  std::string* text);

// Where all ops of a model are.
ModelPaths PathsOf(const ModelGraph& graph);

}  // namespace plancast

#endif  // PLANCAST_STRATEGY_NODES_OP_PATH_H_
