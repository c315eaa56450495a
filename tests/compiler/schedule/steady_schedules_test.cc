// Long iterations of every schedule: jumps over periods of the steady state, also over several as
// one, change no digit; nor where receives are a chunk ahead of what computes (breadth first).

#include <cstdint>
#include <iostream>
#include <vector>

#include "gtest/gtest.h"
#include "tests/compiler/folded_against_reference.h"
#include "tests/compiler/small_model.h"
#include "tests/executor/expect_same.h"

namespace plancast {
namespace {

class SteadySchedulesTest : public testing::TestWithParam<Schedule> {};
INSTANTIATE_TEST_SUITE_P(All, SteadySchedulesTest,
                         testing::Values(Schedule::k1f1b, Schedule::kGpipe, Schedule::kInterleaved,
                                         Schedule::kBreadthFirst, Schedule::kEager1f1b,
                                         Schedule::kZbH1, Schedule::kZb2p));

TEST_P(SteadySchedulesTest, JumpsChangeNothing) {
  constexpr int kPlans = 24;
  int jumped = 0;
  for (uint32_t seed = 1; seed <= kPlans && !HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Dice dice(seed);
    const int64_t pp = 2 + dice.Below(4);
    const bool chunks =
        GetParam() == Schedule::kInterleaved || GetParam() == Schedule::kBreadthFirst;
    const int64_t vpp = chunks ? 2 : 1;
    PlanUnderTest plan = PlanUnderTest::Of(SmallModel(pp * vpp * (1 + dice.Below(2))));
    plan.Tp(1 + dice.Below(2)).Dp(1 + dice.Below(2));
    plan.Pp(pp, GetParam(), vpp).MicroBatches(1, 60 + 30 * dice.Below(4));
    plan.profile().pipeline.p2p_blocking = dice.Maybe(2);
    plan.profile().pipeline.p2p_host_sync = dice.Maybe(3);
    const absl::StatusOr<ExecutionGraph> graph = CompileWithTimes(plan);
    ASSERT_TRUE(graph.ok()) << graph.status();
    Machine::Spec spec = DrawMachine(dice, graph->mesh.num_devices());
    spec.device_overrides.clear();
    const absl::StatusOr<Machine> machine = Machine::Create(spec);
    ASSERT_TRUE(machine.ok()) << machine.status();
    const double interference = dice.Of<double>({0, 0, 0.3});
    const auto run = [&](bool shortcuts) {
      return Simulation::Run(*graph, *machine, RealiseOn(*machine), Form::kFolded, HostParams(),
                             interference, shortcuts, LinkSharing::kMaxMin, interference / 2);
    };
    const auto with = run(true), without = run(false);
    ASSERT_TRUE(with.ok()) << with.status();
    ASSERT_TRUE(without.ok()) << without.status();
    jumped += (*with)->trace().Periods() > 0;
    EXPECT_EQ((*without)->trace().Periods(), 0);
    ExpectSameTraces(**with, **without);
    ExpectSameAttribution(**with, **without);
  }
  std::cout << jumped << " of " << kPlans << " simulations jumped\n";
  EXPECT_GE(jumped, kPlans / 4);
}

}  // namespace
}  // namespace plancast
