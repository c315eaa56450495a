// What compiled plans say is alive at their peak.

#include <string>
#include <vector>

#include "executor/memory/reasons.h"
#include "executor/memory/timeline.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/plan_under_test.h"

namespace plancast {
namespace {

const LiveTensor* Find(const PeakReasons& reasons, const std::string& name) {
  for (const LiveTensor& tensor : reasons.tensors) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

TEST(PeakReasonsTest, EveryTensorHasANameAndAWholeNumberOfCopies) {
  for (bool flash : {false, true}) {
    for (Recompute recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
      for (int64_t pp : {1, 2, 4}) {
        for (Schedule schedule : {Schedule::k1f1b, Schedule::kGpipe, Schedule::kInterleaved}) {
          const int64_t vpp = schedule == Schedule::kInterleaved ? 2 : 1;
          if (vpp > 1 && pp == 1) continue;
          PlanUnderTest plan = PlanUnderTest::Of(SmallGpt(), flash, /*dropout=*/true);
          plan.profile().kernels.fusions = {"bias_gelu", "bias_dropout_add"};
          plan.Dp(2).Tp(2).Pp(pp, schedule, vpp).MicroBatches(1, 8).Recomputing(recompute);
          if (pp == 2) plan.Sp();
          const absl::StatusOr<ExecutionGraph> graph = plan.Compile();
          ASSERT_TRUE(graph.ok()) << graph.status();
          for (int32_t p = 0; p < static_cast<int32_t>(graph->programs.size()); ++p) {
            const PeakReasons reasons = ExplainPeak(*graph, p);
            int64_t sum = 0;
            for (const LiveTensor& tensor : reasons.tensors) {
              EXPECT_FALSE(tensor.name.empty());
              EXPECT_GT(tensor.copies, 0) << tensor.name << " " << tensor.bytes_each;
              sum += tensor.bytes();
            }
            EXPECT_EQ(sum, reasons.allocated);
            EXPECT_EQ(ReplayMemory(*graph, RuntimeParams())[p].allocated, reasons.allocated);
          }
        }
      }
    }
  }
}

// Stage s of p runs p - s micro-batches ahead; each keeps the input of each of
// its layers under full recomputation.
TEST(PeakReasonsTest, FullRecomputationKeepsTheInputsOfLayersOfMicroBatchesInFlight) {
  PlanUnderTest plan = PlanUnderTest::Of(SmallGpt());
  const absl::StatusOr<ExecutionGraph> graph =
      plan.Pp(4).MicroBatches(1, 16).Recomputing(Recompute::kFull).Compile();
  ASSERT_TRUE(graph.ok()) << graph.status();
  for (int32_t stage = 0; stage < 3; ++stage) {
    const PeakReasons reasons = ExplainPeak(*graph, stage);
    const LiveTensor* inputs = Find(reasons, "layers.*.x");
    ASSERT_NE(inputs, nullptr);
    EXPECT_EQ(inputs->bytes_each, 2 * 512 * 1024);
    EXPECT_EQ(inputs->copies, 2 * (4 - stage));
    EXPECT_EQ(inputs->micro_batches.size(), static_cast<size_t>(4 - stage));
  }
}

TEST(PeakReasonsTest, GpipeKeepsEveryMicroBatch) {
  PlanUnderTest plan = PlanUnderTest::Of(SmallGpt());
  const absl::StatusOr<ExecutionGraph> graph =
      plan.Pp(4, Schedule::kGpipe).MicroBatches(1, 6).Compile();
  ASSERT_TRUE(graph.ok()) << graph.status();
  const PeakReasons reasons = ExplainPeak(*graph, 1);
  const LiveTensor* inputs = Find(reasons, "layers.*.x");
  ASSERT_NE(inputs, nullptr);
  EXPECT_EQ(inputs->copies, 2 * 6);
  EXPECT_THAT(inputs->micro_batches, ::testing::ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(PeakReasonsTest, TwiceTheLayersAreNoMorePoints) {
  std::vector<size_t> points;
  for (int64_t layers : {8, 16}) {
    TransformerConfig config = SmallGpt();
    config.layers = layers;
    PlanUnderTest plan = PlanUnderTest::Of(config);
    const absl::StatusOr<ExecutionGraph> graph = plan.Pp(2).MicroBatches(1, 4).Compile();
    ASSERT_TRUE(graph.ok()) << graph.status();
    points.push_back(MemoryOverIssueOrder(*graph, 0).points.size());
  }
  EXPECT_EQ(points[0], points[1]);
}

}  // namespace
}  // namespace plancast
