#ifndef PLANCAST_GRAPH_TRANSFORMER_LAYER_H_
#define PLANCAST_GRAPH_TRANSFORMER_LAYER_H_

#include "graph/transformer/drawing.h"
#include "graph/transformer/layer_pattern.h"

namespace plancast {

// One layer of this kind: attention and feed-forward with their norms and residual
// additions.
Body DrawLayer(const Drawing& drawing, LayerKind kind);
// Its ops in a body of others, from the stream x; returns the stream behind them.
int DrawLayerOps(const Drawing& drawing, LayerKind kind, BodyWriter& body, int x);

}  // namespace plancast

#endif  // PLANCAST_GRAPH_TRANSFORMER_LAYER_H_
