// Orders found from the times of passes: legal, within their memory, and no worse than every named
// one, on random times; closed forms where passes are alike.

#include "compiler/schedule/find_schedule.h"

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "compiler/schedule/pipeline_schedule.h"
#include "compiler/schedule/placed_schedules.h"
#include "compiler/schedule/schedule_run.h"
#include "compiler/schedule/varuna_order.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strategy/schedule/check_schedule.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

struct Dice {
  explicit Dice(uint32_t seed) : random(seed) {}
  int64_t Below(int64_t n) { return static_cast<int64_t>(random() % n); }
  std::mt19937 random;
};

PipelineTimes RandomTimes(Dice& dice, const StagePlacement& placement) {
  PipelineTimes times = PipelineTimes::Equal(placement, PassTime());
  const bool alike = dice.Below(3) == 0;
  for (PassTime& pass : times.passes) {
    pass = times.passes.front();
    if (alike && &pass != &times.passes.front()) continue;
    pass.forward = 1 + dice.Below(100);
    pass.backward = 1 + dice.Below(120);
    pass.weights = 1 + dice.Below(100);
    if (dice.Below(2) == 0) pass.recompute = dice.Below(80);
    if (dice.Below(2) == 0) pass.whole = pass.backward + dice.Below(100);
  }
  for (PassMemory& memory : times.memory) {
    memory = {1 + dice.Below(10), 1 + dice.Below(12)};
  }
  for (int64_t& transfer : times.transfer) transfer = dice.Below(30);
  times.all_reduce = dice.Below(50);
  return times;
}

std::vector<ScheduleTable> NamedTables(const PipelineTimes& times, int64_t micro_batches) {
  std::vector<ScheduleTable> tables;
  const int64_t chunks = times.chunks() / times.placement.copies();
  for (const Schedule schedule : kScheduleNames.Values()) {
    if (schedule == Schedule::kNone || schedule == Schedule::kTable ||
        schedule == Schedule::kOngoing || FollowsTimes(schedule)) {
      continue;
    }
    const bool turns = times.placement.Text() == "v", twice = times.placement.copies() > 1;
    if (Turns(schedule) != turns || RunsBothWays(schedule) != twice) continue;
    if (RunsChunks(schedule) ? chunks == 1 : chunks != UsualChunks(schedule)) continue;
    if (turns || twice) {
      tables.push_back(TableOfRule(schedule, times.placement, micro_batches));
      continue;
    }
    ScheduleTable& table = tables.emplace_back();
    for (int64_t s = 0; s < times.stages(); ++s) {
      table.stages.push_back(StageSchedule(schedule, times.stages(), s, micro_batches, chunks));
    }
  }
  if (times.chunks() == 1) tables.push_back(OrderByVarunasRule(micro_batches, times));
  return tables;
}

TEST(FindScheduleTest, IsNoWorseThanEveryNamedOneOnRandomTimes) {
  int better = 0, fits = 0, turning = 0, twice = 0;
  for (uint32_t seed = 1; seed <= 600; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Dice dice(seed);
    int64_t chunks = dice.Below(4) == 0 ? 2 + dice.Below(2) : 1;
    const int64_t stages = 2 + dice.Below(7);
    const int64_t micro_batches = 1 + dice.Below(dice.Below(6) ? 24 : 300);
    StagePlacement placement = StagePlacement::Loop(stages, chunks);
    if (dice.Below(3) == 0) {
      chunks = dice.Below(4) == 0 ? 4 : 2;
      placement = StagePlacement::Waves(stages, chunks);
      ++turning;
    } else if (stages % 2 == 0 && micro_batches > 1 && dice.Below(3) == 0) {
      chunks = 1;
      placement = StagePlacement::BothWays(stages);
      ++twice;
    }
    const PipelineTimes times = RandomTimes(dice, placement);
    SearchOptions options;
    if (dice.Below(2) == 0) {
      for (int64_t s = 0; s < stages; ++s) options.memory.push_back(12 + dice.Below(80));
    }
    options.by_longest_stage = dice.Below(4) == 0;
    const auto cost = [&](const ScheduleRun& run) {
      return options.by_longest_stage ? run.longest_stage : run.makespan;
    };
    int64_t best = -1;
    for (const ScheduleTable& table : NamedTables(times, micro_batches)) {
      ASSERT_OK_AND_ASSIGN(const ScheduleRun run, RunSchedule(table, micro_batches, times));
      bool allowed = true;
      for (int64_t s = 0; s < stages && !options.memory.empty(); ++s) {
        allowed = allowed && run.most_kept[s] <= options.memory[s];
      }
      if (allowed && (best < 0 || cost(run) < best)) best = cost(run);
    }
    const absl::StatusOr<FoundSchedule> found = FindSchedule(micro_batches, times, options);
    if (!found.ok()) {
      EXPECT_EQ(best, -1);
      EXPECT_FALSE(options.memory.empty());
      continue;
    }
    ++fits;
    ASSERT_OK(CheckSchedule(found->table, {stages, micro_batches, chunks}).status());
    ASSERT_OK_AND_ASSIGN(const ScheduleRun run, RunSchedule(found->table, micro_batches, times));
    EXPECT_EQ(run.makespan, found->run.makespan);
    if (best >= 0) {
      EXPECT_LE(cost(run), best) << found->from;
    }
    EXPECT_EQ(found->best_named.empty(), best < 0);
    better += best >= 0 && cost(run) < best ? 1 : 0;
    for (int64_t s = 0; s < stages && !options.memory.empty(); ++s) {
      EXPECT_LE(run.most_kept[s], options.memory[s]);
    }
    ASSERT_OK_AND_ASSIGN(const FoundSchedule again, FindSchedule(micro_batches, times, options));
    EXPECT_EQ(again.table, found->table);
  }
  std::cout << better << " of " << fits << " are better than every named one; " << turning
            << " turn back, " << twice << " have two copies\n";
  EXPECT_GT(std::min(turning, twice), 20);
  EXPECT_GT(better, fits / 4);
}

// As many micro-batches as the memory of 1F1B holds: the bubble is (p-1)(F+B-W). With twice as many
// a stage waits (p-1)(F+B-2W) in all.
TEST(FindScheduleTest, HasTheClosedFormsOfEqualPasses) {
  constexpr int64_t kTimes[][3] = {{1, 1, 1}, {2, 3, 1}, {3, 3, 2}, {10, 12, 9}};
  for (const int64_t p : {2, 3, 4, 5, 8, 11, 16}) {
    for (int64_t m = p; m <= 64; m += 5) {
      SCOPED_TRACE(testing::Message() << "p " << p << " m " << m);
      for (const auto& [forward, backward, weights] : kTimes) {
        PassTime pass;
        pass.forward = forward, pass.backward = backward, pass.weights = weights;
        const PipelineTimes times = PipelineTimes::Equal(p, 1, pass);
        const int64_t work = m * (forward + backward + weights);
        SearchOptions options;
        options.memory.assign(p, p);
        ASSERT_OK_AND_ASSIGN(const FoundSchedule once, FindSchedule(m, times, options));
        EXPECT_LE(once.run.makespan - work, (p - 1) * (forward + backward - weights));
        if (m < 2 * p) continue;
        options.memory.assign(p, 2 * p);
        options.by_longest_stage = true;
        ASSERT_OK_AND_ASSIGN(const FoundSchedule twice, FindSchedule(m, times, options));
        EXPECT_LE(twice.run.longest_stage - work, (p - 1) * (forward + backward - 2 * weights));
      }
    }
  }
}

// A slow last stage, as one with a head: nobody is faster than it is.
TEST(FindScheduleTest, FillsTheSlowestStage) {
  PassTime pass;
  pass.forward = 10, pass.backward = 12, pass.weights = 9;
  PipelineTimes times = PipelineTimes::Equal(4, 1, pass, 1);
  times.passes[3] = {14, 18, 12, {}, 0};
  ASSERT_OK_AND_ASSIGN(const FoundSchedule found, FindSchedule(24, times));
  EXPECT_EQ(found.run.makespan, 3 * (10 + 1) + 24 * (14 + 18 + 12));
}

TEST(FindScheduleTest, ProlongsTheSteadyStateOfManyMicroBatches) {
  PassTime pass;
  pass.forward = 10, pass.backward = 12, pass.weights = 9;
  PipelineTimes times = PipelineTimes::Equal(8, 1, pass, 1);
  times.passes[7] = {14, 18, 12, {}, 0};
  SearchOptions options;
  options.memory.assign(8, 16);
  ASSERT_OK_AND_ASSIGN(const FoundSchedule found, FindSchedule(512, times, options));
  EXPECT_EQ(found.run.makespan, 7 * (10 + 1) + 512 * (14 + 18 + 12));
  for (const int64_t kept : found.run.most_kept) EXPECT_LE(kept, 16);
}

// Half a second a pass, as two chunks, without a bubble; with two copies as DualPipe's.
TEST(FindScheduleTest, ProlongsLayersThatTurnBackAndCopies) {
  PassTime pass;
  pass.forward = 10, pass.backward = 12, pass.weights = 9;
  for (const StagePlacement& placement :
       {StagePlacement::Waves(8, 2), StagePlacement::BothWays(8)}) {
    const int64_t passes = placement.chunks() / placement.copies() * 512;
    const PipelineTimes times = PipelineTimes::Equal(placement, pass);
    ASSERT_OK_AND_ASSIGN(const FoundSchedule found, FindSchedule(512, times));
    ASSERT_OK(CheckSchedule(found.table, {8, 512, placement.chunks() / placement.copies()}));
    EXPECT_LE(found.run.makespan, passes * (10 + 12 + 9) + 7 * 31);
    EXPECT_EQ(found.table.placement, placement.Text());
  }
}

TEST(FindScheduleTest, OtherPlacementsHaveNoNames) {
  const StagePlacement other = *StagePlacement::Parse("1 0", 2, 1);
  EXPECT_THAT(
      std::string(FindSchedule(4, PipelineTimes::Equal(other, PassTime())).status().message()),
      testing::HasSubstr("`1 0`"));
}

TEST(FindScheduleTest, SaysThatNothingFits) {
  SearchOptions options;
  options.memory.assign(4, 0);
  EXPECT_THAT(FindSchedule(8, PipelineTimes::Equal(4, 1, PassTime()), options).status().message(),
              testing::HasSubstr("Allow more"));
}

}  // namespace
}  // namespace plancast
