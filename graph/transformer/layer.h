#ifndef PLANCAST_GRAPH_TRANSFORMER_LAYER_H_
#define PLANCAST_GRAPH_TRANSFORMER_LAYER_H_

#include "graph/transformer/drawing.h"
#include "graph/transformer/layer_pattern.h"

namespace plancast {

// One layer of this kind: attention and feed-forward with their norms and residual
// additions.
Body DrawLayer(const Drawing& drawing, LayerKind kind);

}  // namespace plancast

#endif  // PLANCAST_GRAPH_TRANSFORMER_LAYER_H_
