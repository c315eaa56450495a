#ifndef PLANCAST_GRAPH_TRANSFORMER_MULTI_TOKEN_H_
#define PLANCAST_GRAPH_TRANSFORMER_MULTI_TOKEN_H_

#include "graph/transformer/drawing.h"
#include "graph/transformer/layer_pattern.h"

namespace plancast {

// The module that predicts `depth` (from 1) tokens further ahead (DeepSeek-V3, arXiv:2412.19437,
// section 2.2), with a layer of this kind:
//
//   what DrawEmbedding says, enorm hnorm eh_join eh_proj, what DrawLayer says, final_norm
//
// Its ports are the stream of the layers and what the modules before it made; it hands on all of
// these and its own. The embedding is the model's (its weights are to be tied), and so is the head,
// which follows behind all modules (embedding_and_head.h).
Body DrawMultiToken(const Drawing& drawing, LayerKind kind, int64_t depth);

}  // namespace plancast

#endif  // PLANCAST_GRAPH_TRANSFORMER_MULTI_TOKEN_H_
