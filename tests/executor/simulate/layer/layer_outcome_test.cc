#include "executor/simulate/layer/layer_outcome.h"

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/executor/graph_builder.h"
#include "tests/executor/simulate/layer/plain_layer.h"
#include "tests/testing/seed.h"

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

// Random blocks, costs and conditions.
class LayerLawsTest : public testing::Test {
 protected:
  int64_t Draw(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  bool Once(int64_t in) { return Draw(1, in) == 1; }

  void DrawBlock() {
    constexpr StreamKind kStreams[] = {StreamKind::kCompute, StreamKind::kModelComm,
                                       StreamKind::kModelComm, StreamKind::kGradComm,
                                       StreamKind::kSendNext};
    GraphBuilder builder({{"tp", 1}});
    builder.Block("F");
    costs_ = LayerCosts();
    costs_.interferes = Once(2);
    costs_.hosted = Once(3);
    costs_.launch_ps = costs_.hosted ? Draw(1, 6) : 0;
    const bool yields = Once(2);
    const auto size = static_cast<int>(Draw(1, 10));
    for (int t = 0; t < size; ++t) {
      std::vector<int> deps;
      for (int d = std::max(0, t - 4); d < t; ++d) {
        if (Once(3)) deps.push_back(d);
      }
      LayerCosts::Task& task = costs_.tasks.emplace_back();
      if (Once(2)) {
        builder.Kernel(static_cast<double>(Draw(1, 3)), deps);
        task.alone = Once(8) ? 0 : Draw(1, 25);
        task.slowdown_q20 = kOne + Draw(0, kOne);
        continue;
      }
      builder.Comm(CollectiveKind::kAllReduce, 8, {0}, deps, Purpose::kTp, kStreams[Draw(0, 4)]);
      task.delay = Once(2) ? Draw(0, 5) : 0;
      task.work = Once(8) ? 0 : Draw(1, 150);
      task.rate_q16 = Draw(5, 9);
      task.slow_rate_q16 = yields ? Draw(3, task.rate_q16) : task.rate_q16;
      task.alone = task.delay + static_cast<int64_t>(CeilDiv<int128>(task.work, task.rate_q16));
    }
    LayerCosts::Task& before = costs_.tasks.emplace_back();
    before.delay = Draw(0, 5);
    before.work = Draw(1, 150);
    before.rate_q16 = Draw(5, 9);
    before.slow_rate_q16 = yields ? Draw(3, before.rate_q16) : before.rate_q16;
    graph_ = builder.Build();
    if (Once(2)) ShareLinks();
    for (KernelSpec& kernel : graph_.kernels) {
      kernel.launches = Draw(0, 3);
      kernel.calls = Draw(-3, 4);
    }
    index_ = *TaskIndex::Create(graph_);
  }

  // Of up to three streams.
  void ShareLinks() {
    const std::vector<StreamKind>& streams = graph_.blocks[0].stream;
    for (size_t t = 0; t < costs_.tasks.size(); ++t) {
      LayerCosts::Task& task = costs_.tasks[t];
      const bool computes = t < streams.size() && streams[t] == StreamKind::kCompute;
      if (task.work > 0 && !computes && !Once(3)) task.sharer = costs_.sharers++;
    }
    for (const bool busy : {false, true}) {
      for (const LayerCosts::Task& own : costs_.tasks) {
        for (int32_t other = 0; own.sharer >= 0 && other < costs_.sharers; ++other) {
          costs_.shared_q16.push_back(Draw(1, busy ? own.slow_rate_q16 : own.rate_q16));
        }
      }
    }
    costs_.rate_of_three = [this](int32_t own, int32_t other, int32_t third, bool busy) {
      return std::max<int64_t>(
          1,
          std::min(costs_.RateBeside(own, other, busy), costs_.RateBeside(own, third, busy)) - 1);
    };
  }

  void DrawConditions() {
    conditions_.host = 0;
    conditions_.toggles.clear();
    conditions_.ahead.clear();
    if (costs_.hosted) conditions_.host = Draw(-20, 10);
    if (costs_.interferes) AddToggles(0, conditions_.toggles);
    // What waits for nothing may have begun.
    for (int stream : {kComm, static_cast<int>(StreamKind::kGradComm)}) {
      if (costs_.hosted || block().Count(stream) == 0 || !Once(2)) continue;
      LayerConditions::Ahead ahead;
      ahead.stream = stream;
      if (Once(3) && conditions_.Behind() == nullptr) {
        const LayerCosts::Task& before = costs_.tasks.back();
        ahead.rank = LayerConditions::kBehind;
        ahead.runs = true;
        ahead.task = static_cast<int32_t>(costs_.tasks.size()) - 1;
        ahead.since = Once(2) ? Draw(0, before.delay) : 0;
        const auto work = static_cast<int64_t>(before.work);
        ahead.work_left = ahead.since > 0 ? work : Draw(1, work);
        conditions_.ahead.push_back(ahead);
        continue;
      }
      while (ahead.rank < block().Count(stream)) {
        const int32_t task = block().order[block().order_begin[stream] + ahead.rank];
        if (block().dep_begin[task] < block().dep_begin[task + 1]) break;
        if (Once(2)) {
          ahead.runs = true;
          ahead.since = Once(2) ? Draw(0, costs_.tasks[task].delay) : 0;
          const int64_t work = static_cast<int64_t>(costs_.tasks[task].work);
          ahead.work_left = ahead.since > 0 ? work : Draw(0, work);
          break;
        }
        ++ahead.rank;
      }
      if (ahead.rank > 0 || ahead.runs) conditions_.ahead.push_back(ahead);
    }
  }
  // Further ones, at least at `from`.
  void AddToggles(int64_t from, LayerConditions::Toggles& toggles) {
    for (int64_t n = Draw(0, 4); n > 0; --n) {
      const bool begins = toggles.size() % 2 == 0;
      from += Draw(begins ? 0 : 1, 20);
      toggles.push_back(from);
    }
  }

  const BlockIndex& block() const { return index_.block(0); }
  PlainTimes Run(const LayerConditions& conditions) {
    PlainTimes times = Nothing();
    runner_.Run(graph_.blocks[0], block(), costs_, conditions, times.start.data(),
                times.end.data());
    return times;
  }
  PlainTimes Nothing() const {
    PlainTimes times;
    times.start.assign(block().size, -1);
    times.end.assign(block().size + 1, -1);
    return times;
  }

  std::mt19937 random_{static_cast<uint32_t>(TestSeed(1))};
  ExecutionGraph graph_;
  TaskIndex index_;
  LayerCosts costs_;
  LayerConditions conditions_;
  LayerRunner runner_;
};

TEST_F(LayerLawsTest, RunsLikeOneThatLooksAtEveryPicosecond) {
  for (int round = 0; round < 4000; ++round) {
    SCOPED_TRACE(testing::Message() << "round " << round);
    DrawBlock();
    DrawConditions();
    const PlainLayer plain(graph_.blocks[0], block(), costs_, conditions_);
    const PlainTimes times = Run(conditions_), expected = plain.Run();
    ASSERT_EQ(times.start, expected.start);
    ASSERT_EQ(times.end, expected.end);
  }
}

TEST_F(LayerLawsTest, WhatIsKnownUntilConditionsChangeStays) {
  int resumed = 0;
  for (int round = 0; round < 8000; ++round) {
    SCOPED_TRACE(testing::Message() << "round " << round);
    DrawBlock();
    costs_.interferes = true;
    DrawConditions();
    LayerConditions later = conditions_;
    const auto common = static_cast<size_t>(Draw(0, later.toggles.size()));
    later.toggles.resize(common);
    const int64_t least = common == 0 ? 0 : later.toggles.back() + 1;
    const int64_t most = common < conditions_.toggles.size() ? conditions_.toggles[common] : 200;
    if (least > most) continue;
    const int64_t changed = Draw(least, most);
    AddToggles(changed, later.toggles);
    const PlainTimes before = Run(conditions_), expected = Run(later);
    std::vector<int64_t> known = before.start;
    known.insert(known.end(), before.end.begin(), before.end.end());
    PlainTimes times = Nothing();
    runner_.RunFrom(changed, known.data(), graph_.blocks[0], block(), costs_, later,
                    times.start.data(), times.end.data());
    ASSERT_EQ(times.start, expected.start);
    ASSERT_EQ(times.end, expected.end);
    times = Nothing();
    runner_.RunFrom(changed, known.data(), graph_.blocks[0], block(), costs_, later,
                    times.start.data(), times.end.data(),
                    runner_.TailsOf(graph_.blocks[0], block(), costs_));
    ASSERT_EQ(times.start, expected.start);
    ASSERT_EQ(times.end, expected.end);
    resumed += before.end != expected.end && before.end[0] < changed;
  }
  EXPECT_GT(resumed, 200);
}

TEST_F(LayerLawsTest, ATailIsTheSameWheneverItBegins) {
  int taken = 0;
  for (int round = 0; round < 8000; ++round) {
    SCOPED_TRACE(testing::Message() << "round " << round);
    DrawBlock();
    DrawConditions();
    const PlainTimes expected = Run(conditions_);
    LayerTails tails = runner_.TailsOf(graph_.blocks[0], block(), costs_);
    const auto run = [&] {
      PlainTimes times = Nothing();
      runner_.Run(graph_.blocks[0], block(), costs_, conditions_, times.start.data(),
                  times.end.data(), tails);
      return times;
    };
    const PlainTimes times = run();
    ASSERT_EQ(times.start, expected.start);
    ASSERT_EQ(times.end, expected.end);
    for (LayerTail& tail : tails) {
      for (int64_t& time : tail.times) ++time;
    }
    taken += run().end != expected.end;
  }
  EXPECT_GT(taken, 1000);
}

TEST_F(LayerLawsTest, WhatStopsGoesOnAsIfItHadNot) {
  for (int round = 0; round < 4000; ++round) {
    SCOPED_TRACE(testing::Message() << "round " << round);
    DrawBlock();
    DrawConditions();
    const PlainTimes expected = Run(conditions_);
    const int64_t last = *std::max_element(expected.end.begin(), expected.end.end());
    const int64_t time = Draw(0, last);
    std::vector<int64_t> known = expected.start;
    known.insert(known.end(), expected.end.begin(), expected.end.end());
    const LayerStop stop = runner_.RunUntil(time, Once(2) ? known.data() : nullptr,
                                            graph_.blocks[0], block(), costs_, conditions_);
    const PlainLayer plain(graph_.blocks[0], block(), costs_, conditions_);
    const PlainTimes times = plain.GoOn(time, stop);
    for (size_t t = 0; t < times.end.size(); ++t) {
      if (expected.end[t] <= time && times.end[t] < 0) continue;  // over
      ASSERT_EQ(times.end[t], expected.end[t]) << "task " << t << " after " << time;
      if (t == times.start.size()) continue;  // of a layer before
      ASSERT_EQ(times.start[t], expected.start[t]) << "task " << t << " after " << time;
    }
  }
}

}  // namespace
}  // namespace plancast
