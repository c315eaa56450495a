#ifndef PLANCAST_TESTS_COMPILER_MOE_LAYER_H_
#define PLANCAST_TESTS_COMPILER_MOE_LAYER_H_

#include <string>
#include <vector>

#include "graph/transformer/body_writer.h"

namespace plancast {

// Sizes of a layer with routed experts; there are as many slots as choices.
struct MoeSizes {
  int64_t seq = 16, hidden = 32, experts = 8, topk = 2, ffn = 24;

  int64_t slots() const { return seq * topk / experts; }
  std::vector<ModelDim> Dims() const {
    return {{"seq", seq},   {"hidden", hidden}, {"experts", experts},
            {"topk", topk}, {"slots", slots()}, {"expert_ffn", ffn}};
  }
};

// x + experts(x): router, dispatch, gated experts, combine. Returns the sum.
inline int WriteMoeLayer(BodyWriter& body, int x) {
  const int logits = body.Op1("mlp.router", "router", {x}, {{"e", "experts"}});
  const int p = body.Op1("mlp.softmax", "router_softmax", {logits}, {{"e", "experts"}});
  const int id = body.Input("mlp.id", DType::kInt64, {"batch", "seq", "topk"});
  const int g =
      body.Op1("mlp.gate", "moe_gate_normalized", {p, id}, {{"e", "experts"}, {"k", "topk"}});
  const int at = body.Input("mlp.at", DType::kInt64, {"batch", "experts", "slots"});
  const int d =
      body.Op1("mlp.dispatch", "moe_dispatch", {x, at}, {{"e", "experts"}, {"r", "slots"}});
  const std::vector<int> wide = body.Op("mlp.experts.fc1", "expert_gated_linear", {d},
                                        {{"e", "experts"}, {"r", "slots"}, {"f", "expert_ffn"}});
  const int h = body.Op1("mlp.experts.act", "expert_swiglu", wide,
                         {{"e", "experts"}, {"r", "slots"}, {"f", "expert_ffn"}});
  const int o = body.Op1("mlp.experts.fc2", "expert_linear", {h},
                         {{"e", "experts"}, {"r", "slots"}, {"k", "expert_ffn"}});
  const int y =
      body.Op1("mlp.combine", "moe_combine", {o, g, at}, {{"e", "experts"}, {"r", "slots"}});
  return body.Op1("mlp.residual", "residual_add", {y, x});
}

}  // namespace plancast

#endif  // PLANCAST_TESTS_COMPILER_MOE_LAYER_H_
