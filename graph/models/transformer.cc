#include "graph/models/transformer.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "graph/models/body_writer.h"

namespace plancast {
namespace {

// Draws the bodies; `x` is the residual stream [batch, seq, hidden] throughout.
class Drawing {
 public:
  Drawing(const TransformerConfig& config, const TransformerChoices& choices,
          const std::vector<ModelDim>& dims)
      : config_(config), choices_(choices), dims_(dims) {}

  Body Embedding() const;
  Body Layer() const;
  Body Head() const;

 private:
  int Norm(BodyWriter& body, absl::string_view name, int x, FactorDims dims = {}) const {
    return body.Op1(name, config_.norm == plancast::Norm::kRmsNorm ? "rms_norm" : "layer_norm", {x},
                    dims);
  }
  // Query, key and value of the normalised stream, rotated.
  std::vector<int> QueryKeyValue(BodyWriter& body, int x) const;
  // From q, k, v to the heads' outputs.
  int CoreAttention(BodyWriter& body, const std::vector<int>& qkv) const;
  // To the output of the last linear, whose bias is not added yet.
  int Attention(BodyWriter& body, int x) const;
  int FeedForward(BodyWriter& body, int x) const;
  // Bias, dropout and residual addition at the end of a branch.
  int AddBranch(BodyWriter& body, absl::string_view module, absl::string_view linear, bool bias,
                int x, int branch) const;

  const TransformerConfig& config_;
  const TransformerChoices& choices_;
  const std::vector<ModelDim>& dims_;
};

Body Drawing::Embedding() const {
  BodyWriter body("embedding", dims_);
  int x =
      body.Op1("tokens", "embedding", {body.Input("token_ids", DType::kInt64, {"batch", "seq"})});
  // Tables for positions and types are whole on every rank: dims of their own.
  if (config_.position == Position::kLearned) {
    const int ids = body.Input("position_ids", DType::kInt64, {"batch", "seq"});
    x = body.Op1("add_positions", "residual_add",
                 {x, body.Op1("positions", "embedding", {ids}, {{"v", "positions"}})});
  }
  if (config_.token_types > 0) {
    const int ids = body.Input("type_ids", DType::kInt64, {"batch", "seq"});
    x = body.Op1("add_types", "residual_add",
                 {x, body.Op1("types", "embedding", {ids}, {{"v", "token_types"}})});
  }
  if (config_.embedding_norm) x = Norm(body, "norm", x);
  if (choices_.dropout) x = body.Op1("dropout", "dropout", {x});
  body.OutPort(x);
  return body.Take();
}

std::vector<int> Drawing::QueryKeyValue(BodyWriter& body, int x) const {
  std::vector<int> qkv =
      body.Op("attn.qkv", config_.qkv_bias ? "qkv_linear_bias" : "qkv_linear", {x});
  if (config_.qk_norm) {
    qkv[0] = body.Op1("attn.q_norm", "head_rms_norm", {qkv[0]});
    qkv[1] = body.Op1("attn.k_norm", "head_rms_norm_kv", {qkv[1]});
  }
  if (config_.position == Position::kRope) {
    const int cos = body.Input("rotary_cos", DType::kFp32, {"seq", "head_dim"});
    const int sin = body.Input("rotary_sin", DType::kFp32, {"seq", "head_dim"});
    const int pair = body.Input("rotary_pair", DType::kInt64, {"head_dim"});
    qkv[0] = body.Op1("attn.rotary_q", "rotary", {qkv[0], cos, sin, pair});
    qkv[1] = body.Op1("attn.rotary_k", "rotary_kv", {qkv[1], cos, sin, pair});
  }
  return qkv;
}

int Drawing::CoreAttention(BodyWriter& body, const std::vector<int>& qkv) const {
  body.RecomputeGroup("core_attention");
  int o;
  if (choices_.flash_attention) {
    o = body.Op1("attn.core", config_.bidirectional ? "attention_full" : "attention", qkv);
  } else {
    // The batched GEMMs work on the whole square of positions, masked or not.
    int p = body.Op1("attn.scores", "scores", {qkv[0], qkv[1]});
    p = body.Op1("attn.softmax", config_.bidirectional ? "softmax" : "softmax_causal", {p});
    if (choices_.dropout) p = body.Op1("attn.dropout", "attention_dropout", {p});
    o = body.Op1("attn.merge_heads", "merge_heads",
                 {body.Op1("attn.context", "context", {p, qkv[2]})});
  }
  body.RecomputeGroup("");
  return o;
}

int Drawing::Attention(BodyWriter& body, int x) const {
  return body.Op1("attn.proj", "out_linear", {CoreAttention(body, QueryKeyValue(body, x))});
}

int Drawing::FeedForward(BodyWriter& body, int x) const {
  std::vector<int> wide = config_.gated() ? body.Op("mlp.fc1", "gated_linear", {x})
                                          : body.Op("mlp.fc1", "linear", {x}, {{"n", "ffn"}});
  body.Fusion("bias_gelu");
  if (config_.mlp_bias && !config_.gated()) {
    wide = body.Op("mlp.fc1_bias", "bias_add", wide, {{"h", "ffn"}});
  }
  const char* act = "gelu_tanh";
  if (config_.mlp == Mlp::kRelu) act = "relu";
  if (config_.mlp == Mlp::kSwiglu) act = "swiglu";
  if (config_.mlp == Mlp::kGeglu) act = "geglu";
  const int y = body.Op1("mlp.act", act, wide);
  body.Fusion("");
  return body.Op1("mlp.fc2", "linear", {y}, {{"k", "ffn"}});
}

int Drawing::AddBranch(BodyWriter& body, absl::string_view module, absl::string_view linear,
                       bool bias, int x, int branch) const {
  const auto name = [&](absl::string_view suffix) {
    return absl::StrCat(module, ".", linear, suffix);
  };
  body.Fusion("bias_dropout_add");
  if (bias) branch = body.Op1(name("_bias"), "bias_add", {branch});
  if (choices_.dropout) branch = body.Op1(name("_dropout"), "dropout", {branch});
  x = body.Op1(absl::StrCat(module, ".residual"), "residual_add", {branch, x});
  body.Fusion("");
  return x;
}

Body Drawing::Layer() const {
  BodyWriter body("layer", dims_);
  int x = body.InPort("x", {"batch", "seq", "hidden"});
  if (config_.parallel_residual) {
    const int attention = Attention(body, Norm(body, "attn.norm", x));
    const int feed_forward = FeedForward(body, Norm(body, "mlp.norm", x));
    // Joined first, so that both branches share one reduction over tp.
    body.Fusion("bias_dropout_add");
    int branch = body.Op1("mlp.join", "residual_add", {attention, feed_forward});
    if (config_.out_bias) branch = body.Op1("attn.proj_bias", "bias_add", {branch});
    body.OutPort(AddBranch(body, "mlp", "fc2", config_.mlp_bias, x, branch));
    return body.Take();
  }
  const bool pre_norm = !config_.post_norm;
  const int attention = Attention(body, pre_norm ? Norm(body, "attn.norm", x) : x);
  x = AddBranch(body, "attn", "proj", config_.out_bias, x, attention);
  if (!pre_norm) x = Norm(body, "attn.norm", x);
  const int feed_forward = FeedForward(body, pre_norm ? Norm(body, "mlp.norm", x) : x);
  x = AddBranch(body, "mlp", "fc2", config_.mlp_bias, x, feed_forward);
  if (!pre_norm) x = Norm(body, "mlp.norm", x);
  body.OutPort(x);
  return body.Take();
}

Body Drawing::Head() const {
  BodyWriter body("head", dims_);
  int x = body.InPort("x", {"batch", "seq", "hidden"});
  const int labels = body.Input("labels", DType::kInt64, {"batch", "seq"});
  if (!config_.post_norm) x = Norm(body, "norm", x);
  absl::string_view features = "hidden";
  if (config_.head_transform) {
    features = "transform";
    x = body.Op1("transform", "linear_bias", {x}, {{"n", features}});
    x = body.Op1("transform_act", "gelu_tanh", {x}, {{"f", features}});
    x = Norm(body, "transform_norm", x, {{"h", features}});
  }
  x = body.Op1("logits", config_.head_bias ? "linear_bias" : "linear", {x},
               {{"n", "vocab"}, {"k", features}});
  body.OutPort(body.Op1("loss", "cross_entropy", {x, labels}));
  return body.Take();
}

std::vector<ModelDim> Dims(const TransformerConfig& config, const TransformerChoices& choices) {
  const int64_t multiple = choices.vocab_multiple > 1 ? choices.vocab_multiple : 1;
  const int64_t vocab = (config.vocab + multiple - 1) / multiple * multiple;
  std::vector<ModelDim> dims = {{"batch", 0},
                                {"seq", config.seq},
                                {"kv_seq", config.seq},
                                {"hidden", config.hidden},
                                {"kv_heads", config.kv_heads},
                                {"heads_per_kv", config.heads / config.kv_heads},
                                {"head_dim", config.head_dim},
                                {"ffn", config.ffn},
                                {"vocab", vocab}};
  if (config.position == Position::kLearned) dims.push_back({"positions", config.max_positions});
  if (config.token_types > 0) dims.push_back({"token_types", config.token_types});
  if (config.head_transform) dims.push_back({"transform", config.hidden});
  return dims;
}

int IndexOf(const Body& body, absl::string_view tensor) {
  for (size_t i = 0; i < body.tensors.size(); ++i) {
    if (body.tensors[i].name == tensor) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace

absl::StatusOr<ModelGraph> BuildTransformer(const TransformerConfig& given,
                                            const TransformerChoices& choices) {
  ASSIGN_OR_RETURN(const TransformerConfig config, Completed(given));
  ModelGraph graph;
  graph.name = config.name;
  graph.dims = Dims(config, choices);
  const Drawing drawing(config, choices, graph.dims);
  graph.bodies = {drawing.Embedding(), drawing.Layer(), drawing.Head()};
  graph.segments = {
      {"embedding", 0, 1, false}, {"layers", 1, config.layers, true}, {"head", 2, 1, false}};
  if (config.tied_embeddings) {
    graph.tied.push_back(
        {0, IndexOf(graph.bodies[0], "tokens.w"), 2, IndexOf(graph.bodies[2], "logits.w")});
  }
  graph.layers = config.layers;
  graph.hidden = config.hidden;
  graph.heads = config.heads;
  graph.head_dim = config.head_dim;
  graph.seq = config.seq;
  graph.vocab = config.vocab;
  RETURN_IF_ERROR(graph.Verify()) << config.name;
  return graph;
}

}  // namespace plancast
