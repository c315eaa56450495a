// Prints what one pass makes of the worked example of docs/moe.md: a layer of four
// experts on 2x2 devices (dp=2, tp=2, sp, ep=4, etp=1), every token to two of them.
//
//   dump_moe PASS

#include "tests/compiler/dump_pass.h"
#include "tests/compiler/moe_layer.h"

int main(int argc, char** argv) {
  const plancast::MoeSizes sizes{/*seq=*/8, /*hidden=*/8, /*experts=*/4, /*topk=*/2, /*ffn=*/16};
  plancast::PlanUnderTest plan(sizes.Dims());
  plancast::BodyWriter& body = plan.Segment("layers", /*repeat=*/2);
  const int x = body.InPort("x", {"batch", "seq", "hidden"});
  body.OutPort(WriteMoeLayer(body, x));
  plan.Dp(2).Tp(2).Sp().Ep(4).Etp(1).MicroBatches(1, 1);
  return DumpPass(plan, argc > 1 ? argv[1] : "");
}
