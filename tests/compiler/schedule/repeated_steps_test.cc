#include "compiler/schedule/repeated_steps.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "compiler/schedule/pipeline_schedule.h"
#include "compiler/schedule/placed_schedules.h"
#include "gtest/gtest.h"
#include "strategy/schedule/stage_placement.h"
#include "tests/strategy/schedule/random_table.h"
#include "tests/testing/seed.h"

namespace plancast {
namespace {

using Steps = std::vector<ScheduleStep>;

int64_t MicroBatchesOf(const Steps& steps) {
  int32_t most = -1;
  for (const ScheduleStep& step : steps) most = std::max(most, step.micro_batch);
  return most + 1;
}

// The steps with the turn that stays once more behind itself, until there are so many
// micro-batches.
Steps LongAgain(const ShortOrder& order, int64_t micro_batches) {
  if (!order.leaves_out()) return order.steps;
  const auto at = [&](size_t i) { return order.steps.begin() + static_cast<std::ptrdiff_t>(i); };
  const auto less = static_cast<int32_t>(micro_batches - MicroBatchesOf(order.steps));
  Steps steps(order.steps.begin(), at(order.turn_end));
  const auto append = [&](auto begin, auto end, int32_t later) {
    for (; begin != end; ++begin) {
      steps.push_back(*begin);
      steps.back().micro_batch += later;
    }
  };
  const int32_t turn = order.turn_micro_batches;
  for (int32_t later = turn; later <= less; later += turn) {
    append(at(order.turn_begin), at(order.turn_end), later);
  }
  append(at(order.turn_end), order.steps.end(), less);
  return steps;
}

void ExpectTheSame(const Steps& steps, size_t first, int64_t most, absl::string_view what,
                   int* left_out) {
  const ShortOrder order = Shortened(steps, first, most);
  EXPECT_EQ(ScheduleString(LongAgain(order, MicroBatchesOf(steps))), ScheduleString(steps)) << what;
  const size_t kept = std::min(first, steps.size());
  EXPECT_TRUE(std::equal(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(kept),
                         order.steps.begin()))
      << what;
  *left_out += order.leaves_out() ? 1 : 0;
}

TEST(RepeatedSteps, WhatIsLeftOutIsWhatTheTurnThatStaysDoes) {
  int left_out = 0, all = 0;
  for (const int64_t p : {1, 2, 3, 4, 8, 16}) {
    for (const int64_t m : {1, 7, 32, 100, 256}) {
      for (const Schedule schedule :
           {Schedule::k1f1b, Schedule::kGpipe, Schedule::kEager1f1b, Schedule::kZb1p,
            Schedule::kZb2p, Schedule::kInterleaved, Schedule::kBreadthFirst}) {
        const int64_t chunks = RunsChunks(schedule) ? 3 : 1;
        const PipelineSchedule order(schedule, p, m, chunks);
        for (int64_t s = 0; s < p; ++s, ++all) {
          ExpectTheSame(order.OfStage(s), s % 2 == 0 ? 0 : 20, p, kScheduleNames[schedule],
                        &left_out);
        }
      }
      if (p % 2 != 0) continue;
      for (const Schedule schedule :
           {Schedule::kZbV, Schedule::kZbVHalf, Schedule::kZbVMin, Schedule::kDualPipe,
            Schedule::kDualPipeV, Schedule::kHanayo, Schedule::kChimera}) {
        const StagePlacement placement =
            RunsBothWays(schedule) ? StagePlacement::BothWays(p) : StagePlacement::Waves(p, 2);
        const ScheduleTable table = TableOfRule(schedule, placement, m);
        for (const Steps& steps : table.stages) {
          ExpectTheSame(steps, 0, p, kScheduleNames[schedule], &left_out);
        }
      }
    }
  }
  EXPECT_GT(left_out, all / 3);
}

TEST(RepeatedSteps, ATableOfAnyOrderStaysWhatItIs) {
  std::mt19937 random(TestSeed(5));
  for (int i = 0; i < 300; ++i) {
    const ScheduleShape shape{1 + static_cast<int64_t>(random() % 4),
                              1 + static_cast<int64_t>(random() % 40),
                              1 + static_cast<int64_t>(random() % 2)};
    int left_out = 0;
    for (const Steps& steps : RandomTable(shape, random, random() % 2 == 0).stages) {
      ExpectTheSame(steps, random() % 30, 4, "a table", &left_out);
    }
  }
}

// Of all schedules but those that go forward with all micro-batches first.
TEST(RepeatedSteps, OrdersAreShort) {
  const StagePlacement wave = StagePlacement::Waves(8, 2);
  for (const Schedule schedule : {Schedule::kZbV, Schedule::kZbVHalf, Schedule::kZbVMin,
                                  Schedule::kDualPipeV, Schedule::kHanayo}) {
    for (const Steps& steps : TableOfRule(schedule, wave, 512).stages) {
      EXPECT_LE(MicroBatchesOf(Shortened(steps, 0, 8).steps), 48) << kScheduleNames[schedule];
    }
  }
  for (int64_t s = 0; s < 8; ++s) {
    const PipelineSchedule order(Schedule::kZb2p, 8, 512, 1);
    EXPECT_LE(MicroBatchesOf(Shortened(order.OfStage(s), 0, 8).steps), 24);
  }
}

// W of the first micro-batch comes at the end: no micro-batch could be left out before it.
TEST(RepeatedSteps, WhatComesFromBeforeKeepsAll) {
  Steps steps{{Phase::kForward, 0, 0}, {Phase::kBackward, 0, 0}};
  for (int32_t m = 1; m < 20; ++m) {
    for (const Phase phase : {Phase::kForward, Phase::kBackward, Phase::kWeight}) {
      steps.push_back({phase, m, 0});
    }
  }
  steps.push_back({Phase::kWeight, 0, 0});
  EXPECT_EQ(Shortened(steps, 0, 1).steps, steps);
}

TEST(RepeatedSteps, NothingIsRepeatedInNoSteps) {
  EXPECT_FALSE(FindRepeatedSteps({}, 0, 4).has_value());
  EXPECT_TRUE(Shortened({}, 0, 4).steps.empty());
}

}  // namespace
}  // namespace plancast
