// The reference itself on cases worked out by hand.

#include "executor/runtime.h"
#include "gtest/gtest.h"
#include "tests/executor/both_ways_cases.h"
#include "tests/executor/graph_builder.h"
#include "tests/executor/lower_reference.h"

namespace plancast {
namespace {

TEST(RunReference, SlowsKernelsAndCommunicationsOnlyWhileTheyOverlap) {
  for (const BothWaysCase& by_hand : BothWaysCases()) {
    SCOPED_TRACE(by_hand.name);
    const Machine machine = *Machine::Create(by_hand.machine);
    const ReferenceLowering lowering =
        LowerReference(by_hand.graph, machine, UnitCost(), CommOf(by_hand, machine));
    ReferenceHost host;
    host.launch_ps = by_hand.host.launch_ps;
    host.slowdown_q20 = SlowdownQ20(1 + by_hand.interference);
    const ReferenceTimes times = RunReference(lowering, host, LinkSharing::kMaxMin,
                                              SlowdownQ20(1 + by_hand.comm_interference));
    EXPECT_EQ(times.end, by_hand.ends);
  }
}

}  // namespace
}  // namespace plancast
