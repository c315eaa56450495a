#include "compiler/data_ranks.h"

#include <cstdint>

#include "compiler/session.h"
#include "gtest/gtest.h"
#include "tests/compiler/plan_under_test.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

// An encoder whose result nobody reads: it leaves the model whole, so that a device holds and
// gathers as much more as there are more ranks.
PlanUnderTest HandedOn() {
  PlanUnderTest plan({{"seq", 4}, {"hidden", 8}});
  BodyWriter& encoder = plan.Segment("encoder");
  const int x = encoder.Input("x", DType::kCompute, {"batch", "seq", "hidden"});
  encoder.OutPort(encoder.Op1("fc", "linear", {x}, {{"n", "hidden"}}));
  BodyWriter& between = plan.Segment("between");
  const int memory = between.InPort("memory", {"batch", "seq", "hidden"});
  const int y = between.Input("y", DType::kCompute, {"batch", "seq", "hidden"});
  between.OutPort(memory);
  between.OutPort(between.Op1("fc", "linear", {y}, {{"n", "hidden"}}));
  return plan;
}

TEST(DataRanksTest, PlansOfOneSessionAreThoseOfFreshOnesWhateverTheRanks) {
  Session session;
  for (const int64_t dp : {2, 4, 8, 1, 4, 2}) {
    PlanUnderTest plan = HandedOn();
    plan.Dp(dp).MicroBatches(1, 2);
    const absl::StatusOr<ExecutionGraph> shared = plan.Compile(session), alone = plan.Compile();
    ASSERT_OK(shared.status());
    ASSERT_OK(alone.status());
    EXPECT_EQ(shared->DebugString(), alone->DebugString()) << "dp=" << dp;
  }
}

// Bodies that do not depend on the number of ranks are shared by all above one.
TEST(DataRanksTest, LayersOfTransformersAreShared) {
  Session session;
  PlanUnderTest two = PlanUnderTest::Of(SmallGpt());
  ASSERT_OK(two.Dp(2).MicroBatches(1, 2).Compile(session).status());
  const auto misses = session.misses();
  PlanUnderTest eight = PlanUnderTest::Of(SmallGpt());
  ASSERT_OK(eight.Dp(8).MicroBatches(1, 2).Compile(session).status());
  EXPECT_EQ(session.misses(), misses);
}

}  // namespace
}  // namespace plancast
