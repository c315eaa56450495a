#ifndef PLANCAST_GRAPH_MODELS_LAYER_H_
#define PLANCAST_GRAPH_MODELS_LAYER_H_

#include "graph/models/drawing.h"
#include "graph/models/layer_pattern.h"

namespace plancast {

// One layer of this kind: attention and feed-forward with their norms and residual
// additions.
Body DrawLayer(const Drawing& drawing, LayerKind kind);

}  // namespace plancast

#endif  // PLANCAST_GRAPH_MODELS_LAYER_H_
