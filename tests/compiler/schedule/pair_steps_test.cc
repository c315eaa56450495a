#include "compiler/schedule/pair_steps.h"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "compiler/schedule/pipeline_schedule.h"
#include "compiler/schedule/placed_schedules.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strategy/schedule/check_schedule.h"
#include "tests/strategy/schedule/random_table.h"
#include "tests/testing/seed.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

ScheduleTable Paired(Schedule schedule, int64_t p, int64_t m, int64_t v, int64_t ahead) {
  const PipelineSchedule order(schedule, p, m, v, ahead);
  ScheduleTable table;
  for (int64_t s = 0; s < p; ++s) table.stages.push_back(order.OfStage(s));
  return WithPairs(std::move(table), StagePlacement::Loop(p, v));
}

int64_t PairsOf(const std::vector<ScheduleStep>& steps) {
  int64_t pairs = 0;
  for (const ScheduleStep& step : steps) pairs += step.pairs ? 1 : 0;
  return pairs;
}

TEST(PairStepsTest, WithoutStagesEveryForwardButTheFirstPassesABackward) {
  EXPECT_EQ(PrintScheduleTable(Paired(Schedule::kNone, 1, 4, 1, 1)),
            "F0.0 F1.0&B0.0 F2.0&B1.0 F3.0&B2.0 B3.0");
  // Of one micro-batch nothing passes anything.
  EXPECT_EQ(PrintScheduleTable(Paired(Schedule::kNone, 1, 4, 1, 0)),
            "F0.0 B0.0 F1.0 B1.0 F2.0 B2.0 F3.0 B3.0");
}

// One forward more to warm up, and every F of the steady state has its B.
TEST(PairStepsTest, OneAheadMakesAllOfTheSteadyStatePairs) {
  for (const int64_t v : {1, 2, 3}) {
    for (const int64_t p : {2, 4, 8}) {
      for (const int64_t m : {2 * p, 3 * p, 5 * p}) {
        const Schedule schedule = v > 1 ? Schedule::kInterleaved : Schedule::k1f1b;
        const ScheduleTable table = Paired(schedule, p, m, v, 1);
        EXPECT_OK(CheckSchedule(table, {p, m, v}));
        for (int64_t s = 0; s < p; ++s) {
          const int64_t warm_up = v > 1 ? 2 * (p - s - 1) + (v - 1) * p : p - s - 1;
          EXPECT_EQ(PairsOf(table.stages[s]), m * v - warm_up - 1) << p << " " << m << " " << v;
        }
      }
    }
  }
}

// Where all go forward before any goes back, the last stage alone can do both at once.
TEST(PairStepsTest, StagesThatWouldWaitForEachOtherPart) {
  const ScheduleTable table = Paired(Schedule::kGpipe, 4, 4, 1, 0);
  EXPECT_OK(CheckSchedule(table, {4, 4, 1}));
  for (int64_t s = 0; s < 3; ++s) EXPECT_EQ(PairsOf(table.stages[s]), 0) << s;
  EXPECT_EQ(PairsOf(table.stages[3]), 1);
}

// DualPipe's own pairs: two in each turn of its middle, one in each of what leads out of it.
TEST(PairStepsTest, DualPipePairsWhatPassesInTheMiddle) {
  constexpr int64_t kStages = 8, kMicroBatches = 40;
  const StagePlacement placement = *StagePlacement::Parse("both-ways", kStages, 1);
  const ScheduleTable table =
      WithPairs(TableOfRule(Schedule::kDualPipe, placement, kMicroBatches), placement);
  EXPECT_OK(CheckSchedule(table, {kStages, kMicroBatches, 1}));
  for (int64_t s = 0; s < kStages / 2; ++s) {
    const int64_t inner = kStages / 2 - s - 1, outer = s + 1;
    const int64_t middle = kMicroBatches / 2 - kStages + outer;
    EXPECT_GE(PairsOf(table.stages[s]), 2 * middle + inner - 1) << s;
  }
}

TEST(PairStepsTest, WhatStagesCanRunTheyCanRunInPairs) {
  std::mt19937 random(static_cast<uint32_t>(TestSeed(20261124)));
  int64_t pairs = 0;
  for (int i = 0; i < 400; ++i) {
    const ScheduleShape shape{2 + static_cast<int64_t>(random() % 4),
                              2 + static_cast<int64_t>(random() % 7),
                              1 + static_cast<int64_t>(random() % 3)};
    const std::string text = random() % 2 == 0 ? RandomPlacement(shape, random) : "";
    const ScheduleTable table = RandomTable(shape, random, random() % 2 == 0, text);
    const StagePlacement placement =
        *StagePlacement::Parse(table.placement, shape.stages, shape.chunks);
    const ScheduleTable paired = WithPairs(table, placement);
    EXPECT_OK(CheckSchedule(paired, shape)) << PrintScheduleTable(paired);
    ScheduleTable apart = paired;
    for (std::vector<ScheduleStep>& steps : apart.stages) {
      pairs += PairsOf(steps);
      for (ScheduleStep& step : steps) step.pairs = false;
    }
    EXPECT_EQ(apart, table);
  }
  EXPECT_GT(pairs, 400);
}

}  // namespace
}  // namespace plancast
