#include "graph/transformer/drawing.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "graph/transformer/layer_pattern.h"

namespace plancast {
namespace {

// Places of one expert in a sequence.
int64_t Slots(const TransformerConfig& config) {
  const double even = static_cast<double>(config.seq * config.experts.topk) /
                      static_cast<double>(config.experts.count);
  return std::max<int64_t>(1,
                           static_cast<int64_t>(std::ceil(even * config.experts.capacity_factor)));
}

}  // namespace

int Drawing::Norm(BodyWriter& body, absl::string_view name, int x, FactorDims said) const {
  const bool rms = config.norm == plancast::Norm::kRmsNorm;
  return body.Op1(name, rms ? "rms_norm" : "layer_norm", {x}, said);
}

int Drawing::AddBranch(BodyWriter& body, absl::string_view module, absl::string_view linear,
                       bool bias, int x, int branch) const {
  const auto name = [&](absl::string_view suffix) {
    return absl::StrCat(module, ".", linear, suffix);
  };
  body.Fusion("bias_dropout_add");
  if (bias) branch = body.Op1(name("_bias"), "bias_add", {branch});
  if (config.branch_norm) {
    body.Fusion("");
    branch = Norm(body, absl::StrCat(module, ".out_norm"), branch);
    body.Fusion("bias_dropout_add");
  }
  if (choices.dropout) branch = body.Op1(name("_dropout"), "dropout", {branch});
  x = body.Op1(absl::StrCat(module, ".residual"), "residual_add", {branch, x});
  body.Fusion("");
  return x;
}

std::vector<int> Drawing::Streams(BodyWriter& body, int64_t ahead) const {
  std::vector<int> streams = {body.InPort("x", {"batch", "seq", "hidden"})};
  for (int64_t depth = 1; depth <= ahead; ++depth) {
    streams.push_back(body.InPort(absl::StrCat("ahead_", depth), {"batch", "seq", "hidden"}));
  }
  return streams;
}

int Drawing::Activation(BodyWriter& body, absl::string_view name, const std::vector<int>& wide,
                        absl::string_view ffn) const {
  const char* rule = "gelu_tanh";
  if (config.mlp == Mlp::kRelu) rule = "relu";
  if (config.mlp == Mlp::kSwiglu) rule = "swiglu";
  if (config.mlp == Mlp::kGeglu) rule = "geglu";
  if (config.mlp == Mlp::kSwigluClamped) rule = "swiglu_clamped";
  return body.Op1(name, rule, wide, {{"f", ffn}});
}

std::vector<ModelDim> TransformerDims(const TransformerConfig& config,
                                      const TransformerChoices& choices) {
  const int64_t multiple = std::max<int64_t>(1, choices.vocab_multiple);
  const int64_t vocab = (config.vocab + multiple - 1) / multiple * multiple;
  std::vector<ModelDim> dims = {{"batch", 0},
                                {"seq", config.seq},
                                {"kv_seq", config.seq},
                                {"hidden", config.hidden},
                                {"kv_heads", config.kv_heads},
                                {"heads_per_kv", config.heads / config.kv_heads}};
  bool windows = false, dense = false, routed = false;
  for (const LayerRun& run : LayerPattern(config)) {
    windows |= run.kind.windowed;
    (run.kind.routed ? routed : dense) = true;
  }
  const LatentAttention& latent = config.latent;
  if (latent.present()) {
    if (latent.q_rank > 0) dims.push_back({"q_lora_rank", latent.q_rank});
    dims.push_back({"kv_lora_rank", latent.kv_rank});
    dims.push_back({"qk_nope_head_dim", latent.own_dim});
    dims.push_back({"qk_rope_head_dim", latent.rotated_dim});
    dims.push_back({"v_head_dim", latent.value_dim});
  } else {
    dims.push_back({"head_dim", config.head_dim});
  }
  if (windows) dims.push_back({"window", config.window});
  if (dense) dims.push_back({"ffn", config.ffn});
  if (routed) {
    const ExpertsConfig& experts = config.experts;
    dims.push_back({"experts", experts.count});
    dims.push_back({"topk", experts.topk});
    dims.push_back({"slots", Slots(config)});
    dims.push_back({"expert_ffn", experts.ffn});
    if (experts.shared > 0) dims.push_back({"shared_ffn", experts.shared * experts.ffn});
  }
  if (config.predictions > 0) dims.push_back({"predictions", config.predictions});
  if (config.mtp_layers > 0) dims.push_back({"two_hidden", 2 * config.hidden});
  dims.push_back({"vocab", vocab});
  if (config.position == Position::kLearned) dims.push_back({"positions", config.max_positions});
  if (config.token_types > 0) dims.push_back({"token_types", config.token_types});
  if (config.head_transform) dims.push_back({"transform", config.hidden});
  if (config.sentence_head) {
    dims.push_back({"pooled", config.hidden});
    dims.push_back({"sentence_classes", 2});
  }
  return dims;
}

}  // namespace plancast
