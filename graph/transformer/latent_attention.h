#ifndef PLANCAST_GRAPH_TRANSFORMER_LATENT_ATTENTION_H_
#define PLANCAST_GRAPH_TRANSFORMER_LATENT_ATTENTION_H_

#include <initializer_list>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "graph/transformer/drawing.h"

namespace plancast {

// The dims of `attention_latent`'s factors: own and rotated part, value.
inline constexpr std::initializer_list<std::pair<absl::string_view, absl::string_view>>
    kLatentDims = {{"d", "qk_nope_head_dim"}, {"f", "qk_rope_head_dim"}, {"e", "v_head_dim"}};

// The dim of a head's value.
inline absl::string_view ValueDim(const TransformerConfig& config) {
  return config.latent.present() ? "v_head_dim" : "head_dim";
}

// The arguments of `attention_latent` from the normalised stream (DeepSeek-V2,
// arXiv:2405.04434, section 2.1):
//
//   [attn.q_down attn.q_down_norm] attn.q_up attn.kv_down attn.kv_down_norm attn.kv_up
//   attn.rotary_q attn.rotary_k
std::vector<int> LatentQueryKeyValue(const TransformerConfig& config, BodyWriter& body, int x);

}  // namespace plancast

#endif  // PLANCAST_GRAPH_TRANSFORMER_LATENT_ATTENTION_H_
