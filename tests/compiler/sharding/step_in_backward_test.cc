// Weights that are updated bucket by bucket during the backward pass.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/compiler/plan_under_test.h"
#include "tests/executor/memory/event_replay.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

PlanUnderTest Layers(StepTime time, int64_t dp, bool zero1, bool fresh) {
  PlanUnderTest plan = PlanUnderTest::Of(SmallGpt());
  plan.Dp(dp);
  if (zero1) plan.Zero1();
  plan.options().overlap = {Overlap::kGrad};
  plan.options().bucket_bytes = 4 * 12'000'000;  // about a layer
  plan.options().optimizer = time;
  plan.profile().update.fresh_gradients = fresh;
  plan.profile().update.grad_clip = true;
  return plan;
}

struct Steps {
  int64_t updates = 0, norms = 0;
  double read = 0, written = 0;  // by updates, bytes
  int64_t last_backward = -1, first_update = -1;
};

Steps StepsOf(const ExecutionGraph& graph) {
  Steps steps;
  const std::vector<Instance>& instances = graph.programs[0].instances;
  for (size_t i = 0; i < instances.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    if (instances[i].phase == Phase::kBackward) steps.last_backward = at;
    const Block& block = graph.blocks[instances[i].block];
    for (int32_t t = 0; t < block.size(); ++t) {
      if (block.label[t] == "grad_norm") ++steps.norms;
      if (block.label[t] != "adam") continue;
      if (steps.first_update < 0) steps.first_update = at;
      ++steps.updates;
      steps.read += graph.kernels[block.spec[t]].read_bytes;
      steps.written += graph.kernels[block.spec[t]].write_bytes;
    }
  }
  return steps;
}

TEST(StepInBackwardTest, EveryParameterIsUpdatedOnceBehindItsBucket) {
  for (const int64_t dp : {1, 2, 4}) {
    for (const bool zero1 : {false, true}) {
      SCOPED_TRACE(testing::Message() << "dp " << dp << " zero " << zero1);
      ASSERT_OK_AND_ASSIGN(const ExecutionGraph at_end,
                           Layers(StepTime::kAtEnd, dp, zero1, false).Compile());
      ASSERT_OK_AND_ASSIGN(const ExecutionGraph early,
                           Layers(StepTime::kInBackward, dp, zero1, false).Compile());
      const Steps one = StepsOf(at_end), many = StepsOf(early);
      EXPECT_EQ(one.updates, 1);
      EXPECT_EQ(one.norms, 1);
      EXPECT_GE(many.updates, 8);
      EXPECT_EQ(many.norms, 0);
      EXPECT_LT(many.first_update, many.last_backward);
      EXPECT_DOUBLE_EQ(many.read, one.read);
      EXPECT_DOUBLE_EQ(many.written, one.written);
    }
  }
}

TEST(StepInBackwardTest, GradientsThatPassesMakeAreGivenUpBucketByBucket) {
  const auto most = [](const ExecutionGraph& graph) {
    int64_t most = 0;
    const std::vector<ReplayedEvent> events = ReplayEvents(graph, 0);
    const auto kind = static_cast<size_t>(MemoryKind::kGradients);
    for (const ReplayedEvent& event : events) most = std::max(most, event.live.of[kind]);
    EXPECT_EQ(events.back().live.of[kind], graph.programs[0].static_bytes[kind]);
    return most;
  };
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph at_end,
                       Layers(StepTime::kAtEnd, 1, false, true).Compile());
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph early,
                       Layers(StepTime::kInBackward, 1, false, true).Compile());
  // Two of ten buckets and what is made meanwhile.
  EXPECT_LT(most(early), most(at_end) / 2);
}

}  // namespace
}  // namespace plancast
