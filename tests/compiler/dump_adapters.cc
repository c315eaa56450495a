// Prints what one pass makes of three layers of a 2-layer MLP with adapters of rank 2, in 4
// bits, on 2 devices (tp=2), after a frozen projection: the example in docs/finetuning.md.
//
//   dump_adapters PASS

#include "tests/compiler/dump_pass.h"

namespace plancast {
namespace {

PlanUnderTest SmallAdapters() {
  PlanUnderTest plan({{"seq", 4}, {"hidden", 8}, {"ffn", 16}});
  BodyWriter& stem = plan.Segment("stem");
  const int ids = stem.Input("x", DType::kCompute, {"batch", "seq", "hidden"});
  stem.OutPort(stem.Op1("project", "linear", {ids}));
  BodyWriter& layer = plan.Segment("layers", 3);
  int x = layer.InPort("x", {"batch", "seq", "hidden"});
  x = layer.Op1("fc1", "linear", {x}, {{"n", "ffn"}});
  x = layer.Op1("act", "relu", {x});
  layer.OutPort(layer.Op1("fc2", "linear", {x}, {{"k", "ffn"}}));
  plan.Lora("", 2, {"fc1", "fc2"}, "nf4").FineTune().Tp(2).MicroBatches(1, 1);
  return plan;
}

}  // namespace
}  // namespace plancast

int main(int argc, char** argv) {
  plancast::PlanUnderTest plan = plancast::SmallAdapters();
  return plancast::DumpPass(plan, argc > 1 ? argv[1] : "");
}
