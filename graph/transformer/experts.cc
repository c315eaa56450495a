#include "graph/transformer/experts.h"

#include "graph/transformer/feed_forward.h"

namespace plancast {
namespace {

const char* ActivationRule(Mlp mlp) {
  switch (mlp) {
    case Mlp::kGelu:
      return "expert_gelu";
    case Mlp::kRelu:
      return "expert_relu";
    case Mlp::kSwiglu:
      return "expert_swiglu";
    case Mlp::kGeglu:
      return "expert_geglu";
    case Mlp::kSwigluClamped:
      return "expert_swiglu_clamped";
  }
  return "";
}

// The weight of every expert's result for every token.
int Gate(const ExpertsConfig& experts, BodyWriter& body, int x) {
  const FactorDims dims = {{"e", "experts"}, {"k", "topk"}};
  const int chosen = body.Input("chosen_experts", DType::kInt64, {"batch", "seq", "topk"});
  const bool sigmoid = experts.score == RouterScore::kSigmoid;
  int p = body.Op1("mlp.router", experts.router_bias ? "router_bias" : "router", {x}, dims);
  p = body.Op1("mlp.scores", sigmoid ? "router_sigmoid" : "router_softmax", {p}, dims);
  return body.Op1("mlp.gate", experts.normalized ? "moe_gate_normalized" : "moe_gate", {p, chosen},
                  dims);
}

// A shared expert that runs beside the exchange of tokens, half by half; of none nothing.
class SharedBeside {
 public:
  SharedBeside(const Drawing& drawing, BodyWriter& body, int x)
      : drawing_(drawing),
        body_(body),
        x_(x),
        runs_(drawing.choices.shared_experts_beside && drawing.config.experts.shared > 0) {}

  void BehindDispatch() {
    if (runs_) y_ = DrawUpToActivation(drawing_, body_, kShared, kSharedFfn, x_);
  }
  void BeforeCombination() {
    if (runs_) y_ = DrawBehindActivation(body_, kShared, kSharedFfn, y_);
  }
  // What it makes, or, if it has not run, what it makes behind the routed experts.
  int Result() { return runs_ ? y_ : DrawFeedForward(drawing_, body_, kShared, kSharedFfn, x_); }

 private:
  static constexpr char kShared[] = "mlp.shared", kSharedFfn[] = "shared_ffn";
  const Drawing& drawing_;
  BodyWriter& body_;
  const int x_;
  const bool runs_;
  int y_ = -1;
};

int RoutedExperts(const Drawing& drawing, BodyWriter& body, int x, int gate, SharedBeside* shared) {
  const TransformerConfig& config = drawing.config;
  const bool weigh_early = drawing.choices.experts_weigh_activations;
  const FactorDims dims = {{"e", "experts"}, {"r", "slots"}, {"f", "expert_ffn"}};
  const int at = body.Input("expert_tokens", DType::kInt64, {"batch", "experts", "slots"});
  int d = body.Op1("mlp.dispatch", "moe_dispatch", {x, at}, dims);
  int weight = gate;
  if (weigh_early) weight = body.Op1("mlp.weights", "moe_dispatch_weights", {gate, at}, dims);
  shared->BehindDispatch();
  const int64_t ranks = drawing.choices.experts_sorted_over;
  const bool sort = ranks > 1 && config.experts.count > ranks;
  if (sort) d = body.Op1("mlp.experts.sort", "expert_sort", {d}, dims);
  std::vector<int> wide;
  if (config.gated()) {
    wide = body.Op("mlp.experts.fc1",
                   config.mlp_bias ? "expert_gated_linear_bias" : "expert_gated_linear", {d}, dims);
  } else {
    wide = body.Op("mlp.experts.fc1", config.mlp_bias ? "expert_linear_bias" : "expert_linear", {d},
                   {{"e", "experts"}, {"r", "slots"}, {"n", "expert_ffn"}});
  }
  if (weigh_early) body.Fusion("weighted_activation");
  int y = body.Op1("mlp.experts.act", ActivationRule(config.mlp), wide, dims);
  if (weigh_early) y = body.Op1("mlp.experts.weigh", "expert_weigh", {y, weight}, dims);
  body.Fusion("");
  if (weigh_early) body.Fusion("expert_bias_epilogue");
  y = body.Op1("mlp.experts.fc2", "expert_linear", {y},
               {{"e", "experts"}, {"r", "slots"}, {"k", "expert_ffn"}});
  if (config.mlp_bias) {
    y = weigh_early
            ? body.Op1("mlp.experts.fc2_bias", "expert_bias_add_weighted", {y, weight}, dims)
            : body.Op1("mlp.experts.fc2_bias", "expert_bias_add", {y}, dims);
  }
  body.Fusion("");
  if (sort) y = body.Op1("mlp.experts.unsort", "expert_sort", {y}, dims);
  shared->BeforeCombination();
  if (weigh_early) return body.Op1("mlp.combine", "moe_gather", {y, at}, dims);
  return body.Op1("mlp.combine", "moe_combine", {y, gate, at}, dims);
}

}  // namespace

int DrawExperts(const Drawing& drawing, BodyWriter& body, int x) {
  const ExpertsConfig& experts = drawing.config.experts;
  SharedBeside beside(drawing, body, x);
  const int gate = Gate(experts, body, x);
  const int routed = RoutedExperts(drawing, body, x, gate, &beside);
  if (experts.shared == 0) return routed;
  int shared = beside.Result();
  if (experts.shared_gate) {
    const int weight = body.Op1("mlp.shared.gate", "shared_expert_gate", {x});
    shared = body.Op1("mlp.shared.scale", "shared_expert_scale", {shared, weight});
  }
  return body.Op1("mlp.shared.join", "residual_add", {routed, shared});
}

}  // namespace plancast
