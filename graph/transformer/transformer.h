#ifndef PLANCAST_GRAPH_TRANSFORMER_TRANSFORMER_H_
#define PLANCAST_GRAPH_TRANSFORMER_TRANSFORMER_H_

#include "absl/status/statusor.h"
#include "graph/model/model_graph.h"
#include "graph/transformer/transformer_choices.h"
#include "graph/transformer/transformer_config.h"

namespace plancast {

// The model as segments `embedding`, `layers`, `mtp` if there are such modules, and `head`. Layers
// of different kinds (layer_pattern.h) have bodies of their own; every run of equal ones is a
// segment, and all of these have the path `layers`.
//
//   embedding  see embedding_and_head.h
//   layers.*   attn.norm, what attention.h says, [attn.proj_bias] [attn.out_norm]
//              [attn.proj_dropout] attn.residual
//              mlp.norm, what feed_forward.h or experts.h says, [mlp.fc2_bias]
//              [mlp.out_norm] [mlp.fc2_dropout] mlp.residual
//   mtp.*      see multi_token.h: a list of its own, which layouts count behind the layers
//   head       see embedding_and_head.h
//
// With parallel_residual `mlp.join` adds both branches before their biases,
// dropout and `mlp.residual`. With post_norm the norms follow the residuals.
//
// Dims: batch, seq, kv_seq (the key's position, which no split of seq cuts),
// hidden, kv_heads, heads_per_kv, vocab (padded), and as needed head_dim, ffn, window,
// positions, token_types, transform, those of latent attention and of experts.
// Fusion labels: `bias_gelu` (bias and any activation), `bias_dropout_add`; ops of a
// label that follow one another form one group. Recompute group: `core_attention`.
//
// `facts` (ModelGraph::vocab and so on) hold the unpadded vocabulary.
absl::StatusOr<ModelGraph> BuildTransformer(const TransformerConfig& config,
                                            const TransformerChoices& choices = {});

}  // namespace plancast

#endif  // PLANCAST_GRAPH_TRANSFORMER_TRANSFORMER_H_
