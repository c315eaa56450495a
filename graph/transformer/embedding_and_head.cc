#include "graph/transformer/embedding_and_head.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace plancast {

Body DrawEmbedding(const Drawing& drawing) {
  BodyWriter body("embedding", drawing.dims);
  body.OutPort(DrawEmbeddingOps(drawing, body));
  return body.Take();
}

int DrawEmbeddingOps(const Drawing& drawing, BodyWriter& body) {
  const TransformerConfig& config = drawing.config;
  int x =
      body.Op1("tokens", "embedding", {body.Input("token_ids", DType::kInt64, {"batch", "seq"})});
  if (config.embedding_scale) x = body.Op1("scale", "scale", {x});
  // Tables for positions and types are whole on every rank: dims of their own.
  if (config.position == Position::kLearned) {
    const int ids = body.Input("position_ids", DType::kInt64, {"batch", "seq"});
    x = body.Op1("add_positions", "residual_add",
                 {x, body.Op1("positions", "embedding", {ids}, {{"v", "positions"}})});
  }
  if (config.token_types > 0) {
    const int ids = body.Input("type_ids", DType::kInt64, {"batch", "seq"});
    x = body.Op1("add_types", "residual_add",
                 {x, body.Op1("types", "embedding", {ids}, {{"v", "token_types"}})});
  }
  if (config.embedding_norm) x = drawing.Norm(body, "norm", x);
  return drawing.choices.dropout ? body.Op1("dropout", "dropout", {x}) : x;
}

namespace {

// Whether two sentences follow one another, from the first token.
void DrawSentenceHead(BodyWriter& body, int x) {
  const int first = body.Op1("first_token", "select", {x});
  const int pooled = body.Op1("pooler", "linear_bias_nd", {first}, {{"n", "pooled"}});
  const int y =
      body.Op1("sentence", "linear_bias_nd", {body.Op1("pooler_act", "tanh_nd(rank=2)", {pooled})},
               {{"k", "pooled"}, {"n", "sentence_classes"}});
  const int labels = body.Input("sentence_labels", DType::kInt64, {"batch"});
  body.OutPort(
      body.Op1("sentence_loss", "classification_loss", {y, labels}, {{"v", "sentence_classes"}}));
}

}  // namespace

Body DrawHead(const Drawing& drawing) {
  const TransformerConfig& config = drawing.config;
  BodyWriter body("head", drawing.dims);
  const std::vector<int> streams = drawing.Streams(body, config.mtp_layers);
  const absl::string_view where = config.predictions > 0 ? "predictions" : "seq";
  const int labels = body.Input("labels", DType::kInt64, {"batch", where});
  int x = config.post_norm ? streams[0] : drawing.Norm(body, "norm", streams[0]);
  const int normalised = x;
  if (config.predictions > 0) {
    const int at = body.Input("predicted", DType::kInt64, {"batch", where});
    x = body.Op1("select", "select_positions", {x, at}, {{"p", where}});
  }
  absl::string_view features = "hidden";
  if (config.head_transform) {
    features = "transform";
    x = body.Op1("transform", "linear_bias", {x}, {{"s", where}, {"n", features}});
    x = body.Op1("transform_act", "gelu_tanh", {x}, {{"s", where}, {"f", features}});
    x = drawing.Norm(body, "transform_norm", x, {{"s", where}, {"h", features}});
  }
  const absl::string_view rule = config.head_bias ? "linear_bias" : "linear";
  const auto predict = [&](const std::string& prefix, int y, int of, absl::string_view in,
                           absl::string_view weights_of) {
    y = body.Op1(prefix + "logits", rule, {y}, {{"s", where}, {"n", "vocab"}, {"k", in}},
                 weights_of);
    if (config.head_softcap) {
      y = body.Op1(prefix + "softcap", "softcap", {y}, {{"s", where}, {"f", "vocab"}});
    }
    body.OutPort(body.Op1(prefix + "loss", "cross_entropy", {y, of}, {{"s", where}}));
  };
  predict("", x, labels, features, "");
  for (size_t ahead = 1; ahead < streams.size(); ++ahead) {
    const std::string prefix = absl::StrCat("mtp_", ahead, "_");
    const int later = body.Input(prefix + "labels", DType::kInt64, {"batch", "seq"});
    predict(prefix, streams[ahead], later, "hidden", "logits");
  }
  if (config.sentence_head) DrawSentenceHead(body, normalised);
  return body.Take();
}

}  // namespace plancast
