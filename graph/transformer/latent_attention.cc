#include "graph/transformer/latent_attention.h"

namespace plancast {

std::vector<int> LatentQueryKeyValue(const TransformerConfig& config, BodyWriter& body, int x) {
  absl::string_view features = "hidden";
  int query_source = x;
  if (config.latent.q_rank > 0) {
    features = "q_lora_rank";
    query_source = body.Op1("attn.q_down", "linear", {x}, {{"n", features}});
    query_source = body.Op1("attn.q_down_norm", "rms_norm", {query_source}, {{"h", features}});
  }
  const std::vector<int> q =
      body.Op("attn.q_up", "latent_query", {query_source},
              {{"h", features}, {"d", "qk_nope_head_dim"}, {"f", "qk_rope_head_dim"}});
  const std::vector<int> down = body.Op("attn.kv_down", "latent_down", {x},
                                        {{"n", "kv_lora_rank"}, {"f", "qk_rope_head_dim"}});
  const int latent = body.Op1("attn.kv_down_norm", "rms_norm", {down[0]}, {{"h", "kv_lora_rank"}});
  const std::vector<int> kv =
      body.Op("attn.kv_up", "latent_key_value", {latent},
              {{"n", "kv_lora_rank"}, {"d", "qk_nope_head_dim"}, {"e", "v_head_dim"}});
  const FactorDims rotated = {{"c", "qk_rope_head_dim"}, {"d", "qk_rope_head_dim"}};
  const int cos = body.Input("rotary_cos", DType::kFp32, {"seq", "qk_rope_head_dim"});
  const int sin = body.Input("rotary_sin", DType::kFp32, {"seq", "qk_rope_head_dim"});
  const int pair = body.Input("rotary_pair", DType::kInt64, {"qk_rope_head_dim"});
  const int q_rotated = body.Op1("attn.rotary_q", "rotary", {q[1], cos, sin, pair}, rotated);
  const int k_rotated =
      body.Op1("attn.rotary_k", "rotary_shared", {down[1], cos, sin, pair}, rotated);
  return {q[0], q_rotated, kv[0], k_rotated, kv[1]};
}

}  // namespace plancast
