// Prints what one pass makes of the worked example of docs/architecture.md: a
// 2-layer MLP on 2x2 devices (dp=2, tp=2), two micro-batches.
//
//   dump_mlp PASS

#include "tests/compiler/dump_pass.h"

namespace plancast {
namespace {

PlanUnderTest SmallMlp() {
  PlanUnderTest plan({{"seq", 4}, {"hidden", 8}, {"ffn", 16}});
  BodyWriter& mlp = plan.Segment("mlp");
  int x = mlp.Input("x", DType::kCompute, {"batch", "seq", "hidden"});
  x = mlp.Op1("fc1", "linear", {x}, {{"n", "ffn"}});
  x = mlp.Op1("act", "relu", {x});
  mlp.OutPort(mlp.Op1("fc2", "linear", {x}, {{"k", "ffn"}}));
  plan.Dp(2).Tp(2).MicroBatches(1, 2);
  return plan;
}

}  // namespace
}  // namespace plancast

int main(int argc, char** argv) {
  plancast::PlanUnderTest plan = plancast::SmallMlp();
  return plancast::DumpPass(plan, argc > 1 ? argv[1] : "");
}
