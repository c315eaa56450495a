// The order that is found against the best of all, where all can be tried.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "compiler/schedule/find_schedule.h"
#include "compiler/schedule/schedule_run.h"
#include "gtest/gtest.h"
#include "tests/testing/seed.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using Steps = std::vector<ScheduleStep>;

// PLANCAST_ORDERS: how many pipelines (a campaign; docs/schedules.md).
int Pipelines() {
  const char* const said = std::getenv("PLANCAST_ORDERS");
  return said == nullptr ? 200 : std::atoi(said);
}

// Every order of F, B and W of one stage with one chunk, where B comes behind its F and W behind
// its B. `in_turn`: those alone in which micro-batches go one behind the other in each phase. They
// are as good as all: passes of one phase take equally long, so that whichever micro-batch a stage
// takes as its k-th, the k-th pass of the next stage can begin when k passes of this one are over.
std::vector<Steps> OrdersOfStage(int64_t micro_batches, bool in_turn) {
  constexpr Phase kPhases[] = {Phase::kForward, Phase::kBackward, Phase::kWeight};
  std::vector<Steps> orders;
  Steps steps;
  std::vector<int> done(micro_batches, 0);  // phases of each
  const std::function<void()> go_on = [&] {
    if (static_cast<int64_t>(steps.size()) == 3 * micro_batches) {
      orders.push_back(steps);
      return;
    }
    for (int64_t m = 0; m < micro_batches; ++m) {
      if (done[m] == 3 || (in_turn && m > 0 && done[m - 1] == done[m])) continue;
      steps.push_back(ScheduleStep{kPhases[done[m]++], static_cast<int32_t>(m), 0});
      go_on();
      --done[m];
      steps.pop_back();
    }
  };
  go_on();
  return orders;
}

// The least makespan of all orders that keep as little as `memory` says.
int64_t LeastOfAll(const std::vector<Steps>& orders, int64_t micro_batches,
                   const PipelineTimes& times, const std::vector<int64_t>& memory) {
  int64_t least = std::numeric_limits<int64_t>::max();
  ScheduleTable table;
  table.stages.resize(times.stages());
  const std::function<void(int64_t)> choose = [&](int64_t stage) {
    if (stage == times.stages()) {
      const std::optional<ScheduleRun> run = RunWithin(least - 1, table, micro_batches, times);
      if (!run.has_value()) return;
      for (size_t s = 0; s < memory.size(); ++s) {
        if (run->most_kept[s] > memory[s]) return;
      }
      least = std::min(least, run->makespan);
      return;
    }
    for (const Steps& steps : orders) {
      table.stages[stage] = steps;
      choose(stage + 1);
    }
  };
  choose(0);
  return least;
}

PipelineTimes Random(int64_t stages, std::mt19937& random) {
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % n); };
  PipelineTimes times = PipelineTimes::Equal(stages, 1, {}, below(3) == 0 ? 0 : below(6));
  const bool alike = below(2) == 0;
  for (size_t v = 0; v < times.passes.size(); ++v) {
    if (v > 0 && alike) {
      times.passes[v] = times.passes[0];
      continue;
    }
    times.passes[v].forward = 1 + below(12);
    times.passes[v].backward = 1 + below(12);
    times.passes[v].weights = 1 + below(12);
  }
  return times;
}

TEST(BruteForceOrdersTest, MicroBatchesInTurnAreAsGoodAsAnyOrder) {
  std::mt19937 random(TestSeed(20261128));
  for (int i = 0; i < 12; ++i) {
    const PipelineTimes times = Random(2, random);
    EXPECT_EQ(LeastOfAll(OrdersOfStage(2, /*in_turn=*/true), 2, times, {}),
              LeastOfAll(OrdersOfStage(2, /*in_turn=*/false), 2, times, {}));
  }
  EXPECT_EQ(OrdersOfStage(2, /*in_turn=*/false).size(), 20u);
  EXPECT_EQ(OrdersOfStage(3, /*in_turn=*/true).size(), 42u);
}

TEST(BruteForceOrdersTest, WhatIsFoundIsNeverBetterAndSeldomWorse) {
  std::mt19937 random(TestSeed(7));
  std::vector<Steps> orders[5];
  for (int64_t m = 1; m <= 4; ++m) orders[m] = OrdersOfStage(m, /*in_turn=*/true);
  int compared = 0, equal = 0, bounded = 0;
  std::vector<double> gaps;
  for (int i = 0; i < Pipelines(); ++i) {
    // All of p=3, m=3 and of p=2, m=4 take a tenth of a second.
    const int64_t p = 1 + static_cast<int64_t>(random() % 5);
    const int64_t most = i % 8 == 0 && p < 4 ? (p == 3 ? 3 : 4) : (p > 2 ? 2 : 3);
    const int64_t m = 1 + static_cast<int64_t>(random() % most);
    const PipelineTimes times = Random(p, random);
    SearchOptions options;
    if (random() % 3 == 0) {
      options.memory.assign(p, 1 + static_cast<int64_t>(random() % m));
      ++bounded;
    }
    const int64_t least = LeastOfAll(orders[m], m, times, options.memory);
    const absl::StatusOr<FoundSchedule> found = FindSchedule(m, times, options);
    ASSERT_OK(found.status());
    ASSERT_GE(found->run.makespan, least) << "p=" << p << " m=" << m << " of pipeline " << i;
    ++compared;
    equal += found->run.makespan == least ? 1 : 0;
    gaps.push_back(static_cast<double>(found->run.makespan) / static_cast<double>(least) - 1);
  }
  std::sort(gaps.begin(), gaps.end());
  double sum = 0;
  for (const double gap : gaps) sum += gap;
  const auto at = [&](double share) { return gaps[static_cast<size_t>(share * (compared - 1))]; };
  std::cout << compared << " pipelines, " << bounded << " with bounds of memory: " << equal
            << " as good as the best of all orders, on average " << sum / compared
            << " slower, 90 % within " << at(0.9) << ", 99 % within " << at(0.99) << ", all within "
            << gaps.back() << "\n";
  EXPECT_GT(equal, compared * 9 / 10);
  EXPECT_LT(sum / compared, 0.005);
}

}  // namespace
}  // namespace plancast
