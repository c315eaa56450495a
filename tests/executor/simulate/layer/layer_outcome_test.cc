#include "executor/simulate/layer/layer_outcome.h"

#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/executor/graph_builder.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kOne = int64_t{1} << 20;
constexpr int64_t kHalfSlower = kOne * 3 / 2;
constexpr int kCompute = static_cast<int>(StreamKind::kCompute);
constexpr int kComm = static_cast<int>(StreamKind::kModelComm);

// A block of one's own, with costs in whole picoseconds: transfers do 6 a
// picosecond alone, and 4 beside kernels if `yields`.
class LayerOutcomeTest : public testing::Test {
 protected:
  void Kernel(int64_t alone, std::vector<int> deps = {}) {
    builder_.Kernel(1, std::move(deps));
    LayerCosts::Task& task = costs_.tasks.emplace_back();
    task.alone = alone;
    task.slowdown_q20 = kHalfSlower;
  }
  void Comm(int64_t delay, int64_t transfer, std::vector<int> deps = {}, bool yields = false) {
    builder_.Comm(CollectiveKind::kAllReduce, 8, {0}, std::move(deps));
    LayerCosts::Task& task = costs_.tasks.emplace_back();
    task.alone = delay + transfer;
    task.delay = delay;
    task.work = 6 * transfer;
    task.rate_q16 = 6;
    task.slow_rate_q16 = yields ? 4 : 6;
  }
  void Prepare() {
    graph_ = builder_.Build();
    for (KernelSpec& kernel : graph_.kernels) kernel.launches = launches_;
    index_ = *TaskIndex::Create(graph_);
    start_.assign(costs_.tasks.size(), -1);
    end_ = start_;
  }
  int64_t Run() {
    Prepare();
    return runner_.Run(graph_.blocks[0], index_.block(0), costs_, conditions_, start_.data(),
                       end_.data());
  }
  LayerStop RunUntil(int64_t time) {
    Prepare();
    return runner_.RunUntil(time, nullptr, graph_.blocks[0], index_.block(0), costs_, conditions_);
  }

  GraphBuilder builder_ = std::move(GraphBuilder({{"tp", 1}}).Block("F"));
  ExecutionGraph graph_;
  TaskIndex index_;
  int64_t launches_ = 1;
  LayerCosts costs_;
  LayerConditions conditions_;
  LayerRunner runner_;
  std::vector<int64_t> start_, end_;
};

TEST_F(LayerOutcomeTest, KernelsFollowOneAnother) {
  Kernel(10);
  Kernel(20);
  Kernel(30);
  EXPECT_EQ(Run(), 60);
  EXPECT_THAT(start_, ElementsAre(0, 10, 30));
  EXPECT_THAT(end_, ElementsAre(10, 30, 60));
}

TEST_F(LayerOutcomeTest, AKernelWaitsForAnExposedCommunication) {
  Kernel(10);
  Comm(2, 3, {0});
  Kernel(7, {1});
  costs_.interferes = true;
  EXPECT_EQ(Run(), 22);
  EXPECT_THAT(start_, ElementsAre(0, 10, 15));
}

TEST_F(LayerOutcomeTest, AKernelOverlapsACommunicationThatItDoesNotWaitFor) {
  Kernel(10);
  Comm(0, 30, {0});
  Kernel(8, {0});
  Kernel(5, {1});
  EXPECT_EQ(Run(), 45);
  EXPECT_THAT(start_, ElementsAre(0, 10, 10, 40));
  EXPECT_THAT(end_, ElementsAre(10, 40, 18, 45));
}

// 5 take 7.5, which is 8.
TEST_F(LayerOutcomeTest, TheEndOfASlowKernelIsRoundedUp) {
  Comm(0, 30);
  Kernel(5);
  costs_.interferes = true;
  Run();
  EXPECT_THAT(end_, ElementsAre(30, 8));
}

// In 7 beside the communication 4.67 of the kernel pass, which is 4.
TEST_F(LayerOutcomeTest, WhatPassedOfASlowKernelIsRoundedDown) {
  Comm(0, 7);
  Kernel(20);
  costs_.interferes = true;
  Run();
  EXPECT_THAT(end_, ElementsAre(7, 23));
}

// At 7 there is none for no time, so twice 4 pass; of 14 in a row it would be 9.
TEST_F(LayerOutcomeTest, ACommunicationEndsBeforeTheNextBegins) {
  Comm(0, 7);
  Comm(0, 7);
  Kernel(20);
  costs_.interferes = true;
  Run();
  EXPECT_THAT(end_, ElementsAre(7, 14, 26));
}

TEST_F(LayerOutcomeTest, OthersSlowAKernelWhileTheyCommunicate) {
  Kernel(20);
  costs_.interferes = true;
  EXPECT_EQ(Run(), 20);
  // 3 pass, then 4 of 7, and 13 are left.
  conditions_.toggles = {3, 10};
  EXPECT_EQ(Run(), 23);
  // 17 take 25.5.
  conditions_.toggles = {3};
  EXPECT_EQ(Run(), 29);
  // 5 of 8.
  conditions_.toggles = {0, 8};
  EXPECT_EQ(Run(), 23);
  // Twice 2 of 4.
  conditions_.toggles = {0, 4, 4, 8};
  EXPECT_EQ(Run(), 24);
  conditions_.toggles = {20, 30};
  EXPECT_EQ(Run(), 20);
}

// The first: 5 and 7.5. The second: 1 of 2 when the others are done at 15.
TEST_F(LayerOutcomeTest, AKernelMayBeginSlow) {
  Kernel(10);
  Kernel(10);
  costs_.interferes = true;
  conditions_.toggles = {5, 15};
  Run();
  EXPECT_THAT(start_, ElementsAre(0, 13));
  EXPECT_THAT(end_, ElementsAre(13, 24));
}

// Slow until the later of the two ends at 13, by when 8 pass.
TEST_F(LayerOutcomeTest, OwnAndOtherCommunicationsAreOne) {
  Comm(0, 10);
  Kernel(20);
  costs_.interferes = true;
  conditions_.toggles = {5, 13};
  Run();
  EXPECT_THAT(end_, ElementsAre(10, 25));
}

// From 2 to 10 it does 32 of 120, and the other 88 in 14.7.
TEST_F(LayerOutcomeTest, AKernelSlowsATransfer) {
  Comm(2, 20, {}, true);
  Kernel(10);
  Run();
  EXPECT_THAT(end_, ElementsAre(25, 10));
}

TEST_F(LayerOutcomeTest, AKernelDoesNotSlowTheDelayBeforeATransfer) {
  Comm(2, 20, {}, true);
  Kernel(1);
  Run();
  EXPECT_THAT(end_, ElementsAre(22, 1));
}

// The kernel takes 15, by when 52 of 120 are done.
TEST_F(LayerOutcomeTest, AKernelAndATransferSlowEachOther) {
  Comm(2, 20, {}, true);
  Kernel(10);
  costs_.interferes = true;
  Run();
  EXPECT_THAT(end_, ElementsAre(27, 15));
}

TEST_F(LayerOutcomeTest, TasksWaitForTheirLaunches) {
  Kernel(3);
  Comm(0, 3);
  Kernel(3);
  costs_.hosted = true;
  costs_.launch_ps = 4;
  Run();
  EXPECT_THAT(start_, ElementsAre(4, 8, 12));
  conditions_.host = 10;
  Run();
  EXPECT_THAT(start_, ElementsAre(14, 18, 22));
  // The first two launches were before.
  conditions_.host = -8;
  Run();
  EXPECT_THAT(start_, ElementsAre(0, 0, 4));
}

TEST_F(LayerOutcomeTest, AHostFarAheadDoesNotMatter) {
  Kernel(3);
  Kernel(3);
  costs_.hosted = true;
  costs_.launch_ps = 4;
  conditions_.host = -8;
  EXPECT_EQ(Run(), 6);
  conditions_.host = -100;
  EXPECT_EQ(Run(), 6);
}

// It begins with its first launch, at 4, and cannot be over before the third.
TEST_F(LayerOutcomeTest, AKernelEndsNoEarlierThanItsLastLaunch) {
  launches_ = 3;
  Kernel(2);
  Kernel(9);
  costs_.hosted = true;
  costs_.launch_ps = 4;
  Run();
  EXPECT_THAT(start_, ElementsAre(4, 16));
  EXPECT_THAT(end_, ElementsAre(12, 25));
}

TEST_F(LayerOutcomeTest, NothingTakesNoTime) {
  Kernel(0);
  Comm(0, 0, {0});
  Kernel(0, {1});
  EXPECT_EQ(Run(), 0);
  EXPECT_THAT(end_, ElementsAre(0, 0, 0));
}

TEST_F(LayerOutcomeTest, AStreamAheadIsTakenAsItIs) {
  Comm(3, 12);
  Kernel(10);
  Kernel(5, {0});
  EXPECT_EQ(Run(), 20);
  // Over.
  conditions_.ahead.push_back({kComm, 1});
  EXPECT_EQ(Run(), 15);
  EXPECT_THAT(end_, ElementsAre(0, 10, 15));
  // In its transfer.
  conditions_.ahead[0] = {kComm, 0, true, 0, 66};
  EXPECT_EQ(Run(), 16);
  EXPECT_THAT(start_, ElementsAre(0, 0, 11));
  // In its delay.
  conditions_.ahead[0] = {kComm, 0, true, 2, 72};
  EXPECT_EQ(Run(), 19);
  // It slows kernels: 8 of 12 pass.
  costs_.interferes = true;
  conditions_.ahead[0] = {kComm, 0, true, 0, 72};
  EXPECT_EQ(Run(), 19);
  EXPECT_THAT(end_, ElementsAre(12, 14, 19));
}

TEST_F(LayerOutcomeTest, AStreamMayStillBeAtALayerBefore) {
  Comm(0, 12);
  Kernel(10);
  LayerCosts::Task& before = costs_.tasks.emplace_back();
  before.rate_q16 = before.slow_rate_q16 = 6;
  conditions_.ahead.push_back({kComm, LayerConditions::kBehind, true, 0, 48, 2});
  EXPECT_EQ(Run(), 20);
  EXPECT_THAT(start_, ElementsAre(8, 0, -1));
  EXPECT_THAT(end_, ElementsAre(20, 10, 8));
  const LayerStop stop = RunUntil(5);
  EXPECT_EQ(stop.streams[kComm].rank, LayerConditions::kBehind);
  EXPECT_TRUE(stop.streams[kComm].runs);
  EXPECT_EQ(stop.streams[kComm].work_left, 48);
  EXPECT_EQ(stop.streams[kComm].since, 0);
}

// The first is alone until the second has done its delay, and the second once that is over.
TEST_F(LayerOutcomeTest, StreamsShareLinksWhileBothTransfer) {
  Comm(0, 10);
  builder_.Comm(CollectiveKind::kAllReduce, 8, {0}, {}, Purpose::kDp, StreamKind::kGradComm);
  costs_.tasks.push_back(costs_.tasks[0]);
  costs_.tasks[1].delay = 4;
  for (const int32_t row : {0, 1}) costs_.tasks[row].sharer = row;
  costs_.sharers = 2;
  costs_.shared_q16 = {0, 3, 2, 0, 0, 1, 1, 0};
  // 24 of 60, and 36 by 3 each; by then 24 of 60 by 2 each.
  EXPECT_EQ(Run(), 22);
  EXPECT_THAT(end_, ElementsAre(16, 22));
  const LayerStop stop = RunUntil(10);
  EXPECT_EQ(stop.streams[kComm].work_left, 18);
  EXPECT_EQ(stop.streams[kComm].since, 10);
}

TEST_F(LayerOutcomeTest, ConditionsSayWhatHasBegun) {
  conditions_.ahead.push_back({kComm, 2, true});
  EXPECT_EQ(conditions_.RankOf(kComm), 2);
  EXPECT_EQ(conditions_.RankOf(kCompute), 0);
  EXPECT_TRUE(conditions_.Begun(kComm, 2));
  EXPECT_FALSE(conditions_.Begun(kComm, 3));
  EXPECT_FALSE(conditions_.Begun(kCompute, 0));
}

TEST_F(LayerOutcomeTest, StopsBeforeWhatBeginsThen) {
  Kernel(10);
  Comm(2, 28, {0});
  Kernel(20);
  LayerStop stop = RunUntil(10);
  EXPECT_EQ(stop.streams[kCompute].rank, 1);
  EXPECT_FALSE(stop.streams[kCompute].runs);
  EXPECT_FALSE(stop.streams[kComm].runs);
  stop = RunUntil(11);
  EXPECT_TRUE(stop.streams[kCompute].runs);
  EXPECT_EQ(stop.streams[kCompute].start, 10);
  EXPECT_EQ(stop.streams[kCompute].since, 10);
  EXPECT_EQ(stop.streams[kCompute].left, 20);
  EXPECT_TRUE(stop.streams[kComm].runs);
  EXPECT_EQ(stop.streams[kComm].since, 12);
  EXPECT_EQ(stop.streams[kComm].work_left, 168);
}

TEST_F(LayerOutcomeTest, StopsWithWhatIsLeftOfASlowKernel) {
  Comm(0, 7, {}, true);
  Kernel(20);
  costs_.interferes = true;
  LayerStop stop = RunUntil(6);
  EXPECT_TRUE(stop.streams[kCompute].slow);
  EXPECT_EQ(stop.streams[kCompute].left, 20);
  EXPECT_TRUE(stop.streams[kComm].slow);
  EXPECT_EQ(stop.streams[kComm].work_left, 42);
  // The transfer ends at 10.5.
  stop = RunUntil(12);
  EXPECT_FALSE(stop.streams[kCompute].slow);
  EXPECT_EQ(stop.streams[kCompute].since, 11);
  EXPECT_EQ(stop.streams[kCompute].left, 13);
  EXPECT_EQ(stop.streams[kComm].rank, 1);
}

}  // namespace
}  // namespace plancast
