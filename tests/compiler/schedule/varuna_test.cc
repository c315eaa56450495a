// Varuna's rule and GPipe with recomputation against what Varuna's released simulator prints with
// its jitter set to 0: every stage forward in 100 ms and back in 200 ms.

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "compiler/schedule/pipeline_schedule.h"
#include "compiler/schedule/schedule_run.h"
#include "compiler/schedule/varuna_order.h"
#include "gtest/gtest.h"
#include "strategy/schedule/check_schedule.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

struct Figure {
  int64_t depth, micro_batches, send_ms, all_reduce_ms, varuna_ms, gpipe_ms;
};
constexpr Figure kFigures[] = {{4, 5, 0, 0, 2800, 2900},
                               {4, 8, 0, 0, 4200, 4100},
                               {4, 8, 20, 0, 4320, 4220},
                               {8, 32, 20, 0, 15680, 15180},
                               {18, 64, 50, 500, 34200, 32900}};

// Forward and recomputed in 100 ms, back in 200 ms.
PipelineTimes TimesOf(const Figure& figure) {
  PassTime pass;
  pass.forward = pass.recompute = 100;
  pass.whole = 200;
  PipelineTimes times = PipelineTimes::Equal(figure.depth, 1, pass, figure.send_ms);
  times.all_reduce = figure.all_reduce_ms;
  return times;
}

// With R as a part of B that waits for the gradient, as their simulator has it.
PipelineTimes WithRecomputationBehindTheGradient(PipelineTimes times) {
  for (PassTime& pass : times.passes) {
    pass.whole = pass.WholeBackward() + pass.recompute;
    pass.recompute = 0;
  }
  return times;
}

// Each R is followed by its B.
void ExpectOneRecomputedAlive(const std::vector<std::vector<VarunaStep>>& stages) {
  for (const std::vector<VarunaStep>& steps : stages) {
    for (size_t i = 0; i < steps.size(); ++i) {
      if (steps[i].kind != VarunaStep::kRecompute) continue;
      ASSERT_LT(i + 1, steps.size());
      EXPECT_EQ(steps[i + 1].kind, VarunaStep::kBackward);
      EXPECT_EQ(steps[i + 1].micro_batch, steps[i].micro_batch);
    }
  }
}

TEST(VarunaTest, TakesAsLongAsInItsSimulator) {
  for (const Figure& figure : kFigures) {
    SCOPED_TRACE(testing::Message() << figure.depth << "/" << figure.micro_batches);
    PipelineTimes times = TimesOf(figure);
    times.passes.back().recompute = 0;  // its last stage goes back at once
    const ScheduleTable table = OrderByVarunasRule(figure.micro_batches, times);
    ASSERT_OK_AND_ASSIGN(const std::vector<int64_t> most,
                         CheckSchedule(table, {figure.depth, figure.micro_batches, 1}));
    EXPECT_EQ(most.back(), 1);
    ASSERT_OK_AND_ASSIGN(
        const ScheduleRun run,
        RunSchedule(table, figure.micro_batches, WithRecomputationBehindTheGradient(times)));
    EXPECT_EQ(run.makespan, figure.varuna_ms);
    EXPECT_EQ(run.most_kept, most);
    // R need not wait for its gradient: then the same order is no slower.
    ASSERT_OK_AND_ASSIGN(const ScheduleRun early, RunSchedule(table, figure.micro_batches, times));
    EXPECT_LE(early.makespan, run.makespan);
  }
}

TEST(VarunaTest, GpipeTakesAsLongAsInItsSimulator) {
  for (const Figure& f : kFigures) {
    SCOPED_TRACE(testing::Message() << f.depth << "/" << f.micro_batches);
    ScheduleTable table;
    for (int64_t s = 0; s < f.depth; ++s) {
      table.stages.push_back(StageSchedule(Schedule::kGpipe, f.depth, s, f.micro_batches, 1));
    }
    ASSERT_OK_AND_ASSIGN(const ScheduleRun run, RunSchedule(table, f.micro_batches, TimesOf(f)));
    EXPECT_EQ(run.makespan, f.gpipe_ms);
    EXPECT_EQ(run.makespan, (f.micro_batches + f.depth - 1) * 100 + f.micro_batches * 300 +
                                (f.depth - 1) * 200 + 2 * (f.depth - 1) * f.send_ms +
                                f.all_reduce_ms);
  }
}

// On any times: a legal order, of stages that never wait with both a gradient and an R done.
TEST(VarunaTest, MakesALegalOrderOnAnyTimes) {
  for (uint32_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % n); };
    const int64_t stages = 1 + below(8), micro_batches = 1 + below(20);
    PipelineTimes times = PipelineTimes::Equal(stages, 1, PassTime(), below(5));
    for (PassTime& pass : times.passes) {
      pass.forward = 1 + below(20);
      pass.whole = 1 + below(40);
      pass.recompute = below(2) * below(20);
    }
    std::vector<int64_t> most;  // in flight
    for (int64_t s = 0; s < stages && seed % 2 == 0; ++s) most.push_back(1 + below(8));
    const ScheduleTable table = OrderByVarunasRule(micro_batches, times, most);
    ASSERT_OK_AND_ASSIGN(const std::vector<int64_t> in_flight,
                         CheckSchedule(table, {stages, micro_batches, 1}));
    for (size_t s = 0; s < most.size(); ++s) EXPECT_LE(in_flight[s], most[s]);
    EXPECT_EQ(table, OrderByVarunasRule(micro_batches, times, most));
    ExpectOneRecomputedAlive(StepsByVarunasRule(micro_batches, times, most));
  }
}

// What the paper bounds: recomputed activations are those of one micro-batch at a time. A bound of
// what is in flight, as many as there are stages, is one more rule with other figures: a forward
// pass that has to wait comes behind all that can go back.
TEST(VarunaTest, InFlightCanBeBoundedByTheDepth) {
  constexpr int64_t kBoundedMs[] = {3600, 4900, 5180, 22520, 54000};
  size_t at = 0;
  for (const Figure& figure : kFigures) {
    SCOPED_TRACE(testing::Message() << figure.depth << "/" << figure.micro_batches);
    PipelineTimes times = TimesOf(figure);
    times.passes.back().recompute = 0;
    const std::vector<int64_t> depth(figure.depth, figure.depth);
    ExpectOneRecomputedAlive(StepsByVarunasRule(figure.micro_batches, times));
    const ScheduleTable table = OrderByVarunasRule(figure.micro_batches, times, depth);
    ASSERT_OK_AND_ASSIGN(const std::vector<int64_t> most,
                         CheckSchedule(table, {figure.depth, figure.micro_batches, 1}));
    for (const int64_t own : most) EXPECT_LE(own, figure.depth);
    ASSERT_OK_AND_ASSIGN(
        const ScheduleRun run,
        RunSchedule(table, figure.micro_batches, WithRecomputationBehindTheGradient(times)));
    EXPECT_EQ(run.makespan, kBoundedMs[at++]);
  }
}

}  // namespace
}  // namespace plancast
