// Laws of single layers, on random ones.

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "executor/simulate/layer/layer_outcome.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/executor/graph_builder.h"
#include "tests/executor/simulate/layer/plain_layer.h"
#include "tests/testing/seed.h"

namespace plancast {
namespace {

constexpr int64_t kOne = int64_t{1} << 20;
constexpr int kComm = static_cast<int>(StreamKind::kModelComm);

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
