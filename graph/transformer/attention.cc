#include "graph/transformer/attention.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "graph/transformer/latent_attention.h"

namespace plancast {
namespace {

// Query, key and value of the normalised stream, rotated.
std::vector<int> QueryKeyValue(const TransformerConfig& config, BodyWriter& body, int x) {
  std::vector<int> qkv =
      body.Op("attn.qkv", config.qkv_bias ? "qkv_linear_bias" : "qkv_linear", {x});
  if (config.qk_norm) {
    qkv[0] = body.Op1("attn.q_norm", "head_rms_norm", {qkv[0]});
    qkv[1] = body.Op1("attn.k_norm", "head_rms_norm_kv", {qkv[1]});
  }
  if (config.position == Position::kRope) {
    const int cos = body.Input("rotary_cos", DType::kFp32, {"seq", "head_dim"});
    const int sin = body.Input("rotary_sin", DType::kFp32, {"seq", "head_dim"});
    const int pair = body.Input("rotary_pair", DType::kInt64, {"head_dim"});
    const std::string rule = config.rotary_scaled ? "rotary_scaled" : "rotary";
    qkv[0] = body.Op1("attn.rotary_q", rule, {qkv[0], cos, sin, pair});
    qkv[1] = body.Op1("attn.rotary_k", rule + "_kv", {qkv[1], cos, sin, pair});
  }
  return qkv;
}

// The rule of one kernel.
std::string FusedRule(const TransformerConfig& config, LayerKind kind) {
  if (config.bidirectional) return "attention_full";
  std::string rule = "attention";
  if (kind.windowed) absl::StrAppend(&rule, "_window");
  if (config.attention_sinks) absl::StrAppend(&rule, "_sinks");
  if (config.attention_softcap) absl::StrAppend(&rule, "_softcap");
  return rule;
}

// The heads' outputs from their scores and values.
int Unfused(const Drawing& drawing, BodyWriter& body, int p, int v) {
  const TransformerConfig& config = drawing.config;
  if (config.attention_softcap) p = body.Op1("attn.softcap", "scores_softcap", {p});
  const char* softmax = config.bidirectional     ? "softmax"
                        : config.attention_sinks ? "softmax_causal_sinks"
                                                 : "softmax_causal";
  p = body.Op1("attn.softmax", softmax, {p});
  if (drawing.choices.dropout) p = body.Op1("attn.dropout", "attention_dropout", {p});
  const absl::string_view value = ValueDim(config);
  const int o = body.Op1("attn.context", "context", {p, v}, {{"e", value}});
  return body.Op1("attn.merge_heads", "merge_heads", {o}, {{"e", value}});
}

int CoreAttention(const Drawing& drawing, LayerKind kind, BodyWriter& body, int x) {
  const TransformerConfig& config = drawing.config;
  if (config.latent.present()) {
    const std::vector<int> parts = LatentQueryKeyValue(config, body, x);
    body.RecomputeGroup("core_attention");
    if (drawing.choices.flash_attention) {
      return body.Op1("attn.core", "attention_latent", parts, kLatentDims);
    }
    const int p = body.Op1("attn.scores", "scores_latent", {parts[0], parts[1], parts[2], parts[3]},
                           kLatentDims);
    return Unfused(drawing, body, p, parts[4]);
  }
  const std::vector<int> qkv = QueryKeyValue(config, body, x);
  body.RecomputeGroup("core_attention");
  if (drawing.choices.flash_attention) {
    return body.Op1("attn.core", FusedRule(config, kind), qkv, {{"w", "window"}});
  }
  return Unfused(drawing, body, body.Op1("attn.scores", "scores", {qkv[0], qkv[1]}), qkv[2]);
}

}  // namespace

int DrawAttention(const Drawing& drawing, LayerKind kind, BodyWriter& body, int x) {
  const int o = CoreAttention(drawing, kind, body, x);
  body.RecomputeGroup("");
  return body.Op1("attn.proj", "out_linear", {o}, {{"e", ValueDim(drawing.config)}});
}

}  // namespace plancast
