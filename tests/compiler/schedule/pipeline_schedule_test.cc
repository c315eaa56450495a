#include "compiler/schedule/pipeline_schedule.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler/schedule/schedule_run.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strategy/schedule/check_schedule.h"
#include "tests/compiler/plan_under_test.h"
#include "tests/compiler/schedule/compiled_makespan.h"

namespace plancast {
namespace {

// One chunk's pass takes this long; communication takes no time.
constexpr int64_t kForward = 1, kBackward = 2;

using Steps = std::vector<ScheduleStep>;

// What a pipeline does, and when, without the executor.
struct PipelineRun {
  bool deadlock = false;
  int64_t makespan = 0;
  std::vector<int64_t> peak_in_flight;  // per stage: chunk passes forward and not yet back
};

PipelineRun RunPipeline(const std::vector<Steps>& stages, int64_t chunks) {
  const auto p = static_cast<int64_t>(stages.size());
  const int64_t micro_batches = static_cast<int64_t>(stages[0].size()) / (2 * chunks);
  PassTime pass;
  pass.forward = kForward;
  pass.whole = kBackward;
  absl::StatusOr<ScheduleRun> run =
      RunSchedule({stages}, micro_batches, PipelineTimes::Equal(p, chunks, pass));
  if (!run.ok()) return {true, 0, {}};
  return {false, run->makespan, std::move(run->most_kept)};
}

std::vector<Steps> AllStages(Schedule schedule, int64_t p, int64_t m, int64_t v = 1) {
  std::vector<Steps> stages;
  for (int64_t s = 0; s < p; ++s) stages.push_back(StageSchedule(schedule, p, s, m, v));
  return stages;
}

// Every pass of every micro-batch through every chunk once, forward first.
void ExpectComplete(const std::vector<Steps>& stages, int64_t m, int64_t v) {
  for (const Steps& steps : stages) {
    std::set<std::pair<int32_t, int32_t>> forward, backward;
    for (const ScheduleStep& step : steps) {
      const std::pair<int32_t, int32_t> pass(step.micro_batch, step.chunk);
      if (step.phase == Phase::kForward) {
        EXPECT_TRUE(forward.insert(pass).second);
      } else {
        EXPECT_TRUE(forward.count(pass)) << "backward before forward";
        EXPECT_TRUE(backward.insert(pass).second);
      }
    }
    EXPECT_EQ(forward.size(), static_cast<size_t>(m * v));
    EXPECT_EQ(backward.size(), static_cast<size_t>(m * v));
  }
}

// What a stage sends to its neighbour, in order, is what the neighbour takes.
void ExpectSameTransferOrder(const std::vector<Steps>& stages, int64_t v) {
  const int64_t p = static_cast<int64_t>(stages.size()), last = p * v - 1;
  using Border = std::pair<int64_t, int32_t>;  // lower virtual stage, micro-batch
  for (int64_t s = 0; s < p; ++s) {
    const int64_t n = (s + 1) % p;
    std::vector<Border> sent_forward, taken_forward, sent_back, taken_back;
    for (const ScheduleStep& step : stages[s]) {
      const int64_t border = step.chunk * p + s;
      if (border == last) continue;
      (step.phase == Phase::kForward ? sent_forward : taken_back)
          .emplace_back(border, step.micro_batch);
    }
    for (const ScheduleStep& step : stages[n]) {
      const int64_t border = step.chunk * p + n - 1;
      if (border < 0) continue;
      (step.phase == Phase::kForward ? taken_forward : sent_back)
          .emplace_back(border, step.micro_batch);
    }
    EXPECT_EQ(sent_forward, taken_forward) << "from stage " << s;
    EXPECT_EQ(sent_back, taken_back) << "to stage " << s;
  }
}

TEST(StageScheduleTest, GpipeRunsAllForwardsFirst) {
  EXPECT_EQ(ScheduleString(StageSchedule(Schedule::kGpipe, 2, 0, 3, 1)),
            "F0.0 F1.0 F2.0 B0.0 B1.0 B2.0");
}

TEST(StageScheduleTest, OneForwardOneBackwardWarmsUpByTheDistanceToTheEnd) {
  EXPECT_EQ(ScheduleString(StageSchedule(Schedule::k1f1b, 3, 0, 4, 1)),
            "F0.0 F1.0 F2.0 B0.0 F3.0 B1.0 B2.0 B3.0");
  EXPECT_EQ(ScheduleString(StageSchedule(Schedule::k1f1b, 3, 2, 4, 1)),
            "F0.0 B0.0 F1.0 B1.0 F2.0 B2.0 F3.0 B3.0");
}

TEST(StageScheduleTest, InterleavedRunsGroupsOfStagesThroughAllChunks) {
  EXPECT_EQ(ScheduleString(StageSchedule(Schedule::kInterleaved, 2, 1, 4, 2)),
            "F0.0 F1.0 F0.1 B0.1 F1.1 B1.1 F2.0 B0.0 F3.0 B1.0 F2.1 B2.1 F3.1 B3.1 B2.0 B3.0");
}

TEST(StageScheduleTest, WithoutAPipelineMicroBatchesFollowEachOther) {
  EXPECT_EQ(ScheduleString(StageSchedule(Schedule::kNone, 1, 0, 2, 1)), "F0.0 B0.0 F1.0 B1.0");
}

TEST(StageScheduleTest, StagesWithAsManyInFlightHaveTheSame) {
  for (const auto& [schedule, chunks] : {std::make_pair(Schedule::kGpipe, 1),
                                         {Schedule::k1f1b, 1},
                                         {Schedule::kInterleaved, 2},
                                         {Schedule::kEager1f1b, 1},
                                         {Schedule::kBreadthFirst, 2}}) {
    for (const int64_t micro_batches : {1, 4, 8}) {
      const PipelineSchedule table(schedule, 4, micro_batches, chunks);
      for (int64_t a = 0; a < 4; ++a) {
        for (int64_t b = 0; b < 4; ++b) {
          EXPECT_EQ(table.Same(a, b), table.OfStage(a) == table.OfStage(b));
        }
      }
    }
  }
}

TEST(StageScheduleTest, GpipeHasTheBubbleAndPeakOfItsClosedForm) {
  for (int64_t p = 1; p <= 16; ++p) {
    for (int64_t m = 1; m <= 64; ++m) {
      SCOPED_TRACE(testing::Message() << "p " << p << " m " << m);
      const std::vector<Steps> stages = AllStages(Schedule::kGpipe, p, m);
      const PipelineRun run = RunPipeline(stages, 1);
      ASSERT_FALSE(run.deadlock);
      EXPECT_EQ(run.makespan, (m + p - 1) * (kForward + kBackward));
      EXPECT_EQ(run.peak_in_flight, std::vector<int64_t>(p, m));
      ExpectComplete(stages, m, 1);
      ExpectSameTransferOrder(stages, 1);
    }
  }
}

TEST(StageScheduleTest, OneForwardOneBackwardHasTheSameBubbleAndLessInFlight) {
  for (int64_t p = 1; p <= 16; ++p) {
    for (int64_t m = 1; m <= 64; ++m) {
      SCOPED_TRACE(testing::Message() << "p " << p << " m " << m);
      const std::vector<Steps> stages = AllStages(Schedule::k1f1b, p, m);
      const PipelineRun run = RunPipeline(stages, 1);
      ASSERT_FALSE(run.deadlock);
      EXPECT_EQ(run.makespan, (m + p - 1) * (kForward + kBackward));
      for (int64_t s = 0; s < p; ++s) EXPECT_EQ(run.peak_in_flight[s], std::min(p - s, m));
      ExpectComplete(stages, m, 1);
      ExpectSameTransferOrder(stages, 1);
    }
  }
}

// Transfers have the time of a forward and a backward pass to arrive; for that, twice as much is
// in flight.
TEST(StageScheduleTest, EagerWarmsUpTwiceAsFar) {
  EXPECT_EQ(ScheduleString(StageSchedule(Schedule::kEager1f1b, 2, 1, 3, 1)),
            "F0.0 F1.0 B0.0 F2.0 B1.0 B2.0");
  for (int64_t p = 1; p <= 16; ++p) {
    for (int64_t m = 1; m <= 64; ++m) {
      SCOPED_TRACE(testing::Message() << "p " << p << " m " << m);
      const std::vector<Steps> stages = AllStages(Schedule::kEager1f1b, p, m);
      const PipelineRun run = RunPipeline(stages, 1);
      ASSERT_FALSE(run.deadlock);
      EXPECT_GE(run.makespan, (m + p - 1) * (kForward + kBackward));
      for (int64_t s = 0; s < p; ++s) EXPECT_EQ(run.peak_in_flight[s], std::min(2 * (p - s), m));
      ExpectComplete(stages, m, 1);
      ExpectSameTransferOrder(stages, 1);
    }
  }
}

// With as many micro-batches as stages or more, the bubble is that of the interleaved one; with
// one chunk it would be GPipe.
TEST(StageScheduleTest, BreadthFirstDividesTheBubbleByTheChunksAndKeepsAllInFlight) {
  EXPECT_EQ(ScheduleString(StageSchedule(Schedule::kBreadthFirst, 2, 1, 2, 2)),
            "F0.0 F1.0 F0.1 F1.1 B0.1 B1.1 B0.0 B1.0");
  for (int64_t p = 2; p <= 16; ++p) {
    for (int64_t v = 1; v <= 4; ++v) {
      for (int64_t m = p; m <= 64; ++m) {
        SCOPED_TRACE(testing::Message() << "p " << p << " m " << m << " v " << v);
        const std::vector<Steps> stages = AllStages(Schedule::kBreadthFirst, p, m, v);
        const PipelineRun run = RunPipeline(stages, v);
        ASSERT_FALSE(run.deadlock);
        EXPECT_EQ(run.makespan, (m * v + p - 1) * (kForward + kBackward));
        EXPECT_EQ(run.peak_in_flight, std::vector<int64_t>(p, m * v));
        ExpectComplete(stages, m, v);
        ExpectSameTransferOrder(stages, v);
      }
    }
  }
}

// What the check of tables says of every rule is what this file finds by itself.
TEST(StageScheduleTest, EveryRulePassesTheCheckOfTables) {
  for (const auto& [schedule, most_chunks] : {std::make_pair(Schedule::kGpipe, 1),
                                              {Schedule::k1f1b, 1},
                                              {Schedule::kEager1f1b, 1},
                                              {Schedule::kInterleaved, 4},
                                              {Schedule::kBreadthFirst, 4}}) {
    for (int64_t p : {1, 2, 3, 5, 8, 16}) {
      for (int64_t m : {1, 2, 3, 7, 8, 31, 64}) {
        for (int64_t v = most_chunks > 1 ? 2 : 1; v <= most_chunks; ++v) {
          if (v > 1 && p == 1) continue;
          SCOPED_TRACE(testing::Message()
                       << "p " << p << " m " << m << " v " << v << " " << kScheduleNames[schedule]);
          const std::vector<Steps> stages = AllStages(schedule, p, m, v);
          const auto most = CheckSchedule({stages}, {p, m, v});
          ASSERT_TRUE(most.ok()) << most.status();
          EXPECT_EQ(*most, RunPipeline(stages, v).peak_in_flight);
        }
      }
    }
  }
}

// A stage's whole pass takes v times kForward and kBackward.
TEST(StageScheduleTest, InterleavedDividesTheBubbleByTheChunks) {
  for (int64_t p = 2; p <= 16; ++p) {
    for (int64_t v = 2; v <= 4; ++v) {
      for (int64_t m = p; m <= 64; m += p) {
        SCOPED_TRACE(testing::Message() << "p " << p << " m " << m << " v " << v);
        const std::vector<Steps> stages = AllStages(Schedule::kInterleaved, p, m, v);
        const PipelineRun run = RunPipeline(stages, v);
        ASSERT_FALSE(run.deadlock);
        const int64_t ideal = m * v * (kForward + kBackward);
        EXPECT_EQ(run.makespan - ideal, (p - 1) * (kForward + kBackward));
        for (int64_t s = 0; s < p; ++s) {
          EXPECT_EQ(run.peak_in_flight[s], std::min(2 * (p - s - 1) + (v - 1) * p + 1, m * v));
        }
        ExpectComplete(stages, m, v);
        ExpectSameTransferOrder(stages, v);
      }
    }
  }
}

TEST(StageScheduleTest, InterleavedWithGroupsOfUnequalSizeStaysInOrder) {
  for (int64_t p = 2; p <= 16; ++p) {
    for (int64_t v = 2; v <= 4; ++v) {
      for (int64_t m = 1; m <= 64; ++m) {
        if (m % p == 0) continue;
        SCOPED_TRACE(testing::Message() << "p " << p << " m " << m << " v " << v);
        const std::vector<Steps> stages = AllStages(Schedule::kInterleaved, p, m, v);
        const PipelineRun run = RunPipeline(stages, v);
        ASSERT_FALSE(run.deadlock);
        // At least the work of a stage behind the first pass through the others.
        EXPECT_GE(run.makespan, m * v * (kForward + kBackward) + (p - 1) * kForward);
        // Never a larger bubble than without chunks.
        EXPECT_LE(run.makespan, (m + p - 1) * v * (kForward + kBackward));
        ExpectComplete(stages, m, v);
        ExpectSameTransferOrder(stages, v);
      }
    }
  }
}

// ---- the same through compiler and executor ----

// Makespan of a compiled plan of p * v equal layers, in seconds of unit cost.
double CompiledMakespan(Schedule schedule, int64_t p, int64_t m, int64_t v = 1,
                        bool blocking = false) {
  PlanUnderTest plan({{"hidden", 8}});
  plan.profile().pipeline.p2p_blocking = plan.profile().pipeline.p2p_host_sync = blocking;
  BodyWriter& body = plan.Segment("layers", p * v);
  body.OutPort(body.Op1("op", "gelu", {body.InPort("x", {"batch", "seq", "ffn"})}));
  return CompiledMakespan(plan.Pp(p, schedule, v).MicroBatches(1, m), p,
                          [](const KernelSpec& kernel) -> double {
                            if (kernel.family == KernelFamily::kOptimizer) return 0;
                            return kernel.pass == GemmPass::kForward ? kForward : kBackward;
                          });
}

TEST(CompiledScheduleTest, HasTheBubbleOfTheClosedForm) {
  for (int64_t p : {2, 3, 4, 8}) {
    for (int64_t m : {1, 2, 5, 8, 16}) {
      SCOPED_TRACE(testing::Message() << "p " << p << " m " << m);
      const double expected = static_cast<double>((m + p - 1) * (kForward + kBackward));
      EXPECT_DOUBLE_EQ(CompiledMakespan(Schedule::kGpipe, p, m), expected);
      EXPECT_DOUBLE_EQ(CompiledMakespan(Schedule::k1f1b, p, m), expected);
      for (const auto& [schedule, v] :
           {std::make_pair(Schedule::kEager1f1b, 1), {Schedule::kBreadthFirst, 3}}) {
        const PipelineRun run = RunPipeline(AllStages(schedule, p, m, v), v);
        EXPECT_DOUBLE_EQ(CompiledMakespan(schedule, p, m, v), static_cast<double>(run.makespan));
      }
    }
  }
}

TEST(CompiledScheduleTest, InterleavedDividesTheBubbleByTheChunks) {
  for (int64_t p : {2, 3, 4}) {
    for (int64_t v : {2, 3, 4}) {
      for (int64_t m : {p, 4 * p}) {
        SCOPED_TRACE(testing::Message() << "p " << p << " m " << m << " v " << v);
        EXPECT_DOUBLE_EQ(CompiledMakespan(Schedule::kInterleaved, p, m, v),
                         static_cast<double>((m * v + p - 1) * (kForward + kBackward)));
      }
    }
  }
}

TEST(CompiledScheduleTest, InterleavedWithGroupsOfUnequalSizeRuns) {
  for (int64_t p : {2, 3, 4}) {
    for (int64_t m : {1, 5, 7}) {
      const PipelineRun run = RunPipeline(AllStages(Schedule::kInterleaved, p, m, 2), 2);
      EXPECT_DOUBLE_EQ(CompiledMakespan(Schedule::kInterleaved, p, m, 2),
                       static_cast<double>(run.makespan));
    }
  }
}

// Blocking transfers hold the pipeline up, but never for ever.
TEST(CompiledScheduleTest, BlockingTransfersDoNotLockUp) {
  for (int64_t p : {2, 3, 4, 5, 6, 8}) {
    for (int64_t v : {1, 2, 3, 4}) {
      for (int64_t m : {int64_t{1}, int64_t{2}, p - 1, p, p + 1, 2 * p, 2 * p + 1, 3 * p}) {
        SCOPED_TRACE(testing::Message() << "p " << p << " m " << m << " v " << v);
        const Schedule schedule = v > 1 ? Schedule::kInterleaved : Schedule::k1f1b;
        EXPECT_GE(CompiledMakespan(schedule, p, m, v, true), CompiledMakespan(schedule, p, m, v));
      }
    }
  }
}

}  // namespace
}  // namespace plancast
