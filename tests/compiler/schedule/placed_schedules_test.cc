// Schedules whose layers turn back, or that hold two copies: bubbles and what is in flight against
// closed forms for passes of one length, from the tables alone, and through compiler and executor.

#include "compiler/schedule/placed_schedules.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "compiler/schedule/schedule_run.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strategy/schedule/check_schedule.h"
#include "tests/compiler/plan_under_test.h"
#include "tests/compiler/schedule/compiled_makespan.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using Steps = std::vector<ScheduleStep>;

// Of stages that do `blocks` of steps, each when all its inputs are there, in passes of 1;
// transfers take no time. Results are there at the end of the block.
struct UnitRun {
  int64_t makespan = 0;
  int64_t longest = 0;  // of a stage, from its first step to its last
};

UnitRun RunBlocks(const std::vector<std::vector<Steps>>& blocks, const StagePlacement& placement) {
  std::map<std::tuple<Phase, int64_t, int32_t>, int64_t> done;
  std::vector<size_t> next(blocks.size(), 0);
  std::vector<int64_t> free_at(blocks.size(), 0), began(blocks.size(), -1);
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t s = 0; s < blocks.size(); ++s) {
      for (; next[s] < blocks[s].size(); ++next[s]) {
        const Steps& block = blocks[s][next[s]];
        int64_t start = free_at[s];
        bool ready = true;
        for (const ScheduleStep& step : block) {
          const int64_t v = placement.At(static_cast<int64_t>(s), step.chunk);
          const int64_t before =
              step.phase == Phase::kWeight ? -1 : placement.Before(v, step.phase);
          if (before < 0) continue;
          const auto found = done.find({step.phase, before, step.micro_batch});
          ready = ready && found != done.end();
          if (ready) start = std::max(start, found->second);
        }
        if (!ready) break;
        if (began[s] < 0) began[s] = start;
        free_at[s] = start + static_cast<int64_t>(block.size());
        for (const ScheduleStep& step : block) {
          const int64_t v = placement.At(static_cast<int64_t>(s), step.chunk);
          done[{step.phase, v, step.micro_batch}] = free_at[s];
        }
        moved = true;
      }
    }
  }
  UnitRun run;
  for (size_t s = 0; s < blocks.size(); ++s) {
    EXPECT_EQ(next[s], blocks[s].size()) << "stage " << s << " is stuck";
    run.makespan = std::max(run.makespan, free_at[s]);
    run.longest = std::max(run.longest, free_at[s] - began[s]);
  }
  return run;
}

// Passes of 1.
UnitRun RunSteps(const ScheduleTable& table, const StagePlacement& placement) {
  int32_t micro_batches = 0;
  for (const ScheduleStep& step : table.stages[0]) {
    micro_batches = std::max(micro_batches, step.micro_batch + 1);
  }
  PassTime pass;
  pass.whole = 1;
  const absl::StatusOr<ScheduleRun> run =
      RunSchedule(table, micro_batches, PipelineTimes::Equal(placement, pass));
  EXPECT_TRUE(run.ok()) << run.status();
  return run.ok() ? UnitRun{run->makespan, run->longest_stage} : UnitRun();
}

// A forward pass and a whole backward pass behind it of another chunk are one block.
UnitRun RunPairs(const ScheduleTable& table, const StagePlacement& placement) {
  std::vector<std::vector<Steps>> blocks(table.stages.size());
  for (size_t s = 0; s < blocks.size(); ++s) {
    const Steps& steps = table.stages[s];
    for (size_t i = 0; i < steps.size();) {
      const bool pair = i + 2 < steps.size() && steps[i].phase == Phase::kForward &&
                        steps[i + 1].phase == Phase::kBackward &&
                        steps[i + 2].phase == Phase::kWeight &&
                        steps[i + 1].chunk == steps[i + 2].chunk &&
                        steps[i + 1].micro_batch == steps[i + 2].micro_batch &&
                        steps[i].chunk != steps[i + 1].chunk;
      const size_t end = i + (pair ? 3 : 1);
      blocks[s].emplace_back(steps.begin() + i, steps.begin() + end);
      i = end;
    }
  }
  return RunBlocks(blocks, placement);
}

struct Drawn {
  StagePlacement placement;
  ScheduleTable table;
  int64_t most_in_flight = 0;  // chunks, of any stage
};

// Checked.
Drawn Draw(Schedule schedule, int64_t p, int64_t m, int64_t chunks = 2) {
  Drawn drawn;
  drawn.placement =
      RunsBothWays(schedule) ? StagePlacement::BothWays(p) : StagePlacement::Waves(p, chunks);
  drawn.table = TableOfRule(schedule, drawn.placement, m);
  if (m < drawn.placement.copies()) return drawn;
  const auto most =
      CheckSchedule(drawn.table, {p, m, drawn.placement.chunks() / drawn.placement.copies()});
  EXPECT_TRUE(most.ok()) << most.status();
  if (most.ok()) drawn.most_in_flight = *std::max_element(most->begin(), most->end());
  return drawn;
}

TEST(PlacedSchedulesTest, StepsOfSmallPipelines) {
  EXPECT_EQ(PrintScheduleTable(Draw(Schedule::kZbV, 2, 2).table),
            "v: F0.0 F1.0 F0.1 B0.1 F1.1 B1.1 B0.0 W0.1 B1.0 W1.1 W0.0 W1.0;"
            "F0.0 F0.1 F1.0 F1.1 B0.1 B0.0 B1.1 B1.0 W0.1 W0.0 W1.1 W1.0");
  EXPECT_EQ(PrintScheduleTable(Draw(Schedule::kDualPipe, 2, 2).table),
            "both-ways: F0.0 F1.1 B1.1 W1.1 B0.0 W0.0;F1.1 F0.0 B0.0 W0.0 B1.1 W1.1");
  EXPECT_EQ(PrintScheduleTable(Draw(Schedule::kHanayo, 2, 2).table),
            "v: F0.0 F1.0 F0.1 B0.1 F1.1 B1.1 B0.0 B1.0;"
            "F0.0 F0.1 F1.0 F1.1 B0.1 B0.0 B1.1 B1.0");
}

// A stage works without a break once it has begun, as 1F1B's first stage has p micro-batches in
// flight (2 p chunks of half a stage).
TEST(PlacedSchedulesTest, ZbVHasNoBubbleAndTheMemoryOf1f1b) {
  for (int64_t p = 2; p <= 16; ++p) {
    for (int64_t m = 1; m <= 64; ++m) {
      SCOPED_TRACE(testing::Message() << "p " << p << " m " << m);
      const Drawn drawn = Draw(Schedule::kZbV, p, m);
      EXPECT_LE(drawn.most_in_flight, std::min(2 * p, 2 * m));
      const UnitRun run = RunSteps(drawn.table, drawn.placement);
      if (m < 2 * p) continue;
      EXPECT_EQ(run.longest, 6 * m);
      EXPECT_EQ(run.makespan, 6 * m + p - 1);
    }
  }
}

// 1F1B waits 6 (p - 1) of these passes.
TEST(PlacedSchedulesTest, VHalfHalvesMemoryAndBubble) {
  for (int64_t p = 2; p <= 16; ++p) {
    for (int64_t m = 1; m <= 64; ++m) {
      SCOPED_TRACE(testing::Message() << "p " << p << " m " << m);
      const Drawn drawn = Draw(Schedule::kZbVHalf, p, m);
      EXPECT_LE(drawn.most_in_flight, std::min(p + (p % 2 == 0 ? 2 : 1), 2 * m));
      const int64_t bubble = RunSteps(drawn.table, drawn.placement).makespan - 6 * m;
      if (m >= p) {
        EXPECT_EQ(bubble, p == 2 ? 3 : 3 * p - 4);
      }
    }
  }
}

TEST(PlacedSchedulesTest, VMinTakesAThirdOfTheMemoryAndTwoThirdsOfTheBubble) {
  for (int64_t p = 2; p <= 16; ++p) {
    for (int64_t m = 1; m <= 64; ++m) {
      SCOPED_TRACE(testing::Message() << "p " << p << " m " << m);
      const Drawn drawn = Draw(Schedule::kZbVMin, p, m);
      EXPECT_LE(drawn.most_in_flight, std::min(2 * ((p + 1) / 3 + 1), 2 * m));
      const int64_t bubble = RunSteps(drawn.table, drawn.placement).makespan - 6 * m;
      EXPECT_EQ(bubble, p % 3 == 0 && m > 1 ? 4 * p - 3 : 4 * p - 5);
    }
  }
}

// (PP/2 - 1)(F&B + B - 3 W) with F = 1, B = 2 (whole), W = 1, F&B = 3: of PP/2 stages, or of PP
// with two copies.
TEST(PlacedSchedulesTest, DualPipesHaveTheBubbleAndMemoryOfTheirAuthors) {
  for (int64_t p = 2; p <= 16; ++p) {
    for (int64_t m = 1; m <= 64; ++m) {
      SCOPED_TRACE(testing::Message() << "p " << p << " m " << m);
      const Drawn v = Draw(Schedule::kDualPipeV, p, m);
      EXPECT_LE(v.most_in_flight, 2 * p + 1);
      if (m >= 2 * p) {
        EXPECT_EQ(RunPairs(v.table, v.placement).makespan - 6 * m, (p - 1) * 2);
        // Where B hands on before its W, and pairs are two passes.
        EXPECT_EQ(RunSteps(v.table, v.placement).makespan - 6 * m, p - 1);
      }
      if (p % 2 != 0) continue;
      const Drawn both = Draw(Schedule::kDualPipe, p, m);
      EXPECT_LE(both.most_in_flight, p + 1);
      if (m < 2 * p || m % 2 != 0) continue;
      EXPECT_EQ(RunPairs(both.table, both.placement).makespan - 3 * m, (p / 2 - 1) * 2);
    }
  }
}

// (p-1)(F+B)/v: of F + B = 2 through one of v chunks.
TEST(PlacedSchedulesTest, WavesDivideTheBubbleByTheChunks) {
  for (int64_t p = 2; p <= 16; ++p) {
    for (int64_t v = 2; v <= 6; v += 2) {
      for (int64_t m = 1; m <= 64; m += m == 1 ? 1 : 3) {
        SCOPED_TRACE(testing::Message() << "p " << p << " v " << v << " m " << m);
        const Drawn drawn = Draw(Schedule::kHanayo, p, m, v);
        EXPECT_LE(drawn.most_in_flight, std::min(p, m) * v);
        const int64_t bubble = RunSteps(drawn.table, drawn.placement).makespan - 2 * v * m;
        if (m % p == 0) {
          EXPECT_EQ(bubble, 2 * (p - 1));
        }
      }
    }
  }
}

// (p/2 - 1)(F + B).
TEST(PlacedSchedulesTest, TwoCopiesHalveTheBubble) {
  for (int64_t p = 2; p <= 16; p += 2) {
    for (int64_t m = 1; m <= 64; ++m) {
      SCOPED_TRACE(testing::Message() << "p " << p << " m " << m);
      const Drawn drawn = Draw(Schedule::kChimera, p, m);
      EXPECT_LE(drawn.most_in_flight, std::min(p, m));
      const int64_t bubble = RunSteps(drawn.table, drawn.placement).makespan - 2 * m;
      if (m % p == 0) {
        EXPECT_EQ(bubble, p - 2);
      }
    }
  }
}

TEST(PlacedSchedulesTest, LargePipelinesAreDrawnAtOnce) {
  for (const Schedule schedule :
       {Schedule::kZbV, Schedule::kZbVHalf, Schedule::kZbVMin, Schedule::kDualPipe,
        Schedule::kDualPipeV, Schedule::kHanayo, Schedule::kChimera}) {
    for (const int64_t p : {34, 64, 130}) EXPECT_GT(Draw(schedule, p, 300).most_in_flight, 0);
  }
}

// ---- through compiler and executor ----

// A linear layer a chunk: a pass of each phase takes a second.
double CompiledMakespan(Schedule schedule, int64_t p, int64_t m, int64_t vpp) {
  PlanUnderTest plan = LinearLayers(p * vpp);
  return CompiledMakespan(plan.Pp(p, schedule, vpp).MicroBatches(1, m), p, ProductSeconds);
}

TEST(CompiledPlacedSchedulesTest, HaveTheBubblesOfTheirTables) {
  for (const Schedule schedule : {Schedule::kZbV, Schedule::kZbVHalf, Schedule::kZbVMin,
                                  Schedule::kDualPipeV, Schedule::kDualPipe}) {
    for (int64_t p : {2, 3, 4, 8}) {
      if (RunsBothWays(schedule) && p % 2 != 0) continue;
      for (int64_t m : {p, 2 * p, 3 * p + 1}) {
        SCOPED_TRACE(testing::Message() << kScheduleNames[schedule] << " p " << p << " m " << m);
        const Drawn drawn = Draw(schedule, p, m);
        EXPECT_DOUBLE_EQ(CompiledMakespan(schedule, p, m, Turns(schedule) ? 2 : 1),
                         RunSteps(drawn.table, drawn.placement).makespan);
      }
    }
  }
}

}  // namespace
}  // namespace plancast
