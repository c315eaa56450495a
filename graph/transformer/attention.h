#ifndef PLANCAST_GRAPH_TRANSFORMER_ATTENTION_H_
#define PLANCAST_GRAPH_TRANSFORMER_ATTENTION_H_

#include "graph/transformer/drawing.h"
#include "graph/transformer/layer_pattern.h"

namespace plancast {

// The attention of a layer of this kind, from the (normalised) stream to the result
// of `attn.proj`, whose bias is not added yet:
//
//   attn.qkv [attn.q_norm attn.k_norm] [attn.rotary_q attn.rotary_k], then
//   attn.core, or attn.scores [attn.softcap] attn.softmax [attn.dropout] attn.context
//   attn.merge_heads, then attn.proj
//
// The core is the recompute group `core_attention`. Unfused, its batched products
// work on the whole square of positions, masked or not, window or none.
int DrawAttention(const Drawing& drawing, LayerKind kind, BodyWriter& body, int x);

}  // namespace plancast

#endif  // PLANCAST_GRAPH_TRANSFORMER_ATTENTION_H_
