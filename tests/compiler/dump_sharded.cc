// Prints what one pass makes of the worked example of docs/sharding.md: five layers of
// one product each on four devices, zero=3 in shard groups of two.
//
//   dump_sharded PASS

#include "tests/compiler/dump_pass.h"

namespace plancast {
namespace {

PlanUnderTest FiveLayers() {
  PlanUnderTest plan({{"seq", 4}, {"hidden", 8}, {"vocab", 16}});
  BodyWriter& embedding = plan.Segment("embedding");
  embedding.OutPort(embedding.Op1("words", "embedding",
                                  {embedding.Input("ids", DType::kInt64, {"batch", "seq"})}));
  BodyWriter& layer = plan.Segment("layers", 5);
  layer.OutPort(layer.Op1("fc", "linear", {layer.InPort("x", {"batch", "seq", "hidden"})}));
  plan.Dp(4);
  plan.options().zero = 3;
  plan.options().hsdp = 2;
  plan.options().sync_each = true;
  plan.profile().data_parallel.shard_cut = ShardCut::kUnit;
  plan.profile().data_parallel.sharded_master = true;
  return plan;
}

}  // namespace
}  // namespace plancast

int main(int argc, char** argv) {
  plancast::PlanUnderTest plan = plancast::FiveLayers();
  return plancast::DumpPass(plan, argc > 1 ? argv[1] : "");
}
