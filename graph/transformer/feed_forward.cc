#include "graph/transformer/feed_forward.h"

#include "absl/strings/str_cat.h"

namespace plancast {

int DrawUpToActivation(const Drawing& drawing, BodyWriter& body, absl::string_view prefix,
                       absl::string_view ffn, int x) {
  const TransformerConfig& config = drawing.config;
  const auto name = [&](absl::string_view suffix) { return absl::StrCat(prefix, ".", suffix); };
  std::vector<int> wide;
  if (config.gated()) {
    wide = body.Op(name("fc1"), config.mlp_bias ? "gated_linear_bias" : "gated_linear", {x},
                   {{"f", ffn}});
  } else {
    wide = body.Op(name("fc1"), "linear", {x}, {{"n", ffn}});
  }
  body.Fusion("bias_gelu");
  if (config.mlp_bias && !config.gated()) {
    wide = body.Op(name("fc1_bias"), "bias_add", wide, {{"h", ffn}});
  }
  const int y = drawing.Activation(body, name("act"), wide, ffn);
  body.Fusion("");
  return y;
}

int DrawBehindActivation(BodyWriter& body, absl::string_view prefix, absl::string_view ffn, int y) {
  return body.Op1(absl::StrCat(prefix, ".fc2"), "linear", {y}, {{"k", ffn}});
}

int DrawFeedForward(const Drawing& drawing, BodyWriter& body, absl::string_view prefix,
                    absl::string_view ffn, int x) {
  return DrawBehindActivation(body, prefix, ffn, DrawUpToActivation(drawing, body, prefix, ffn, x));
}

}  // namespace plancast
