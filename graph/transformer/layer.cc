#include "graph/transformer/layer.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "graph/transformer/attention.h"
#include "graph/transformer/experts.h"
#include "graph/transformer/feed_forward.h"

namespace plancast {
namespace {

std::string NameOf(LayerKind kind) {
  return absl::StrCat(kind.routed ? "moe_" : "", kind.windowed ? "window_" : "", "layer");
}

}  // namespace

Body DrawLayer(const Drawing& drawing, LayerKind kind) {
  BodyWriter body(NameOf(kind), drawing.dims);
  const int x = body.InPort("x", {"batch", "seq", "hidden"});
  body.OutPort(DrawLayerOps(drawing, kind, body, x));
  return body.Take();
}

int DrawLayerOps(const Drawing& drawing, LayerKind kind, BodyWriter& body, int x) {
  const TransformerConfig& config = drawing.config;
  const auto feed_forward = [&](int in) {
    return kind.routed ? DrawExperts(drawing, body, in)
                       : DrawFeedForward(drawing, body, "mlp", "ffn", in);
  };
  // Experts add their biases themselves.
  const bool fc2_bias = config.mlp_bias && !kind.routed;
  if (config.parallel_residual) {
    const int attention = DrawAttention(drawing, kind, body, drawing.Norm(body, "attn.norm", x));
    const int mlp = feed_forward(drawing.Norm(body, "mlp.norm", x));
    // Joined first, so that both branches share one reduction over tp.
    body.Fusion("bias_dropout_add");
    int branch = body.Op1("mlp.join", "residual_add", {attention, mlp});
    if (config.out_bias) branch = body.Op1("attn.proj_bias", "bias_add", {branch});
    return drawing.AddBranch(body, "mlp", "fc2", fc2_bias, x, branch);
  }
  const bool pre_norm = !config.post_norm;
  const int attention =
      DrawAttention(drawing, kind, body, pre_norm ? drawing.Norm(body, "attn.norm", x) : x);
  x = drawing.AddBranch(body, "attn", "proj", config.out_bias, x, attention);
  if (!pre_norm) x = drawing.Norm(body, "attn.norm", x);
  const int mlp = feed_forward(pre_norm ? drawing.Norm(body, "mlp.norm", x) : x);
  x = drawing.AddBranch(body, "mlp", "fc2", fc2_bias, x, mlp);
  return pre_norm ? x : drawing.Norm(body, "mlp.norm", x);
}

}  // namespace plancast
