#ifndef PLANCAST_GRAPH_MODELS_TRANSFORMER_H_
#define PLANCAST_GRAPH_MODELS_TRANSFORMER_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "graph/model_graph.h"
#include "graph/models/transformer_config.h"

namespace plancast {

// What the framework and the plan decide about the graph of one model.
struct TransformerChoices {
  bool flash_attention = true;  // one attention kernel, or scores, softmax, context
  bool dropout = false;         // the model trains with dropout kernels
  int64_t vocab_multiple = 1;   // the vocabulary is padded to a multiple of this
};

// The model as segments `embedding`, `layers` (repeated) and `head`:
//
//   embedding  tokens [positions add_positions] [types add_types] [norm] [dropout]
//   layers.*   attn.norm attn.qkv [attn.q_norm attn.k_norm]
//              [attn.rotary_q attn.rotary_k]
//              attn.core, or attn.scores attn.softmax [attn.dropout] attn.context
//              attn.merge_heads
//              attn.proj [attn.proj_bias] [attn.proj_dropout] attn.residual
//              mlp.norm mlp.fc1 [mlp.fc1_bias] mlp.act mlp.fc2 [mlp.fc2_bias]
//              [mlp.fc2_dropout] mlp.residual
//   head       [norm] [transform transform_act transform_norm] logits loss
//
// With parallel_residual `mlp.join` adds both branches before their biases,
// dropout and `mlp.residual`. With post_norm the norms follow the residuals.
//
// Dims: batch, seq, kv_seq (the key's position, which no split of seq cuts),
// hidden, kv_heads, heads_per_kv, head_dim, ffn, vocab (padded), and as needed
// positions, token_types, transform. Fusion labels: `bias_gelu` (bias and any
// activation), `bias_dropout_add`; ops of a label that follow one another form
// one group. Recompute group: `core_attention`.
//
// `facts` (ModelGraph::vocab and so on) hold the unpadded vocabulary.
absl::StatusOr<ModelGraph> BuildTransformer(const TransformerConfig& config,
                                            const TransformerChoices& choices = {});

}  // namespace plancast

#endif  // PLANCAST_GRAPH_MODELS_TRANSFORMER_H_
