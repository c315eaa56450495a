// Schedules with gradients of weights put off: bubbles and memory against the closed forms of
// Qi et al. 2023, from the orders alone and through compiler and executor; what the two halves of
// a backward pass do, against the whole.

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "compiler/schedule/pipeline_schedule.h"
#include "compiler/schedule/schedule_run.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strategy/schedule/check_schedule.h"
#include "tests/compiler/folded_against_reference.h"
#include "tests/compiler/plan_under_test.h"
#include "tests/compiler/schedule/compiled_makespan.h"
#include "tests/executor/graph_builder.h"
#include "tests/executor/memory/event_replay.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using Steps = std::vector<ScheduleStep>;

struct Times {
  int64_t forward = 1, backward = 1, weights = 1;
  int64_t all() const { return forward + backward + weights; }
};

// One chunk a stage, transfers take no time.
ScheduleRun RunPipeline(const std::vector<Steps>& stages, int64_t micro_batches,
                        const Times& times) {
  PassTime pass;
  pass.forward = times.forward, pass.backward = times.backward, pass.weights = times.weights;
  const absl::StatusOr<ScheduleRun> run = RunSchedule(
      {stages}, micro_batches, PipelineTimes::Equal(static_cast<int64_t>(stages.size()), 1, pass));
  EXPECT_TRUE(run.ok()) << run.status();
  return *run;
}

std::vector<Steps> AllStages(Schedule schedule, int64_t p, int64_t m) {
  std::vector<Steps> stages;
  for (int64_t s = 0; s < p; ++s) stages.push_back(StageSchedule(schedule, p, s, m, 1));
  return stages;
}

// Of passes that are about equal: W no longer than F and B.
constexpr Times kTimes[] = {{1, 1, 1}, {2, 3, 1}, {3, 3, 2}, {10, 12, 9}};

TEST(ZeroBubbleTest, StepsOfASmallPipeline) {
  EXPECT_EQ(ScheduleString(StageSchedule(Schedule::kZbH1, 3, 0, 4, 1)),
            "F0.0 F1.0 F2.0 B0.0 W0.0 F3.0 B1.0 W1.0 B2.0 W2.0 B3.0 W3.0");
  EXPECT_EQ(ScheduleString(StageSchedule(Schedule::kZbH1, 3, 2, 4, 1)),
            "F0.0 B0.0 F1.0 B1.0 F2.0 B2.0 W0.0 F3.0 B3.0 W1.0 W2.0 W3.0");
  EXPECT_EQ(ScheduleString(StageSchedule(Schedule::kZb2p, 2, 1, 3, 1)),
            "F0.0 B0.0 F1.0 B1.0 F2.0 B2.0 W0.0 W1.0 W2.0");
}

// 1F1B's bubble is (p-1)(F+B+W); with the memory of 1F1B it is (p-1)(F+B-W), a third for passes of
// equal length. A whole backward pass is B+W: (p-1)(F+B'-2W).
TEST(ZeroBubbleTest, H1HasABubbleOfFAndBLessWWithTheMemoryOf1f1b) {
  for (const Schedule schedule : {Schedule::kZbH1, Schedule::kZb1p}) {
    for (int64_t p = 2; p <= 16; ++p) {
      for (int64_t m = 1; m <= 64; ++m) {
        SCOPED_TRACE(testing::Message() << "p " << p << " m " << m);
        const std::vector<Steps> stages = AllStages(schedule, p, m);
        ASSERT_OK_AND_ASSIGN(const std::vector<int64_t> most, CheckSchedule({stages}, {p, m, 1}));
        EXPECT_EQ(most, std::vector<int64_t>(p, std::min(p, m)));
        for (const Times& t : kTimes) {
          const int64_t bubble = RunPipeline(stages, m, t).makespan - m * t.all();
          if (m >= p) EXPECT_EQ(bubble, (p - 1) * (t.forward + t.backward - t.weights));
          EXPECT_LE(bubble, (p - 1) * t.all());
        }
      }
    }
  }
}

// The last stage begins (p-1) F late, whatever happens; a stage waits (p-1)(F+B-2W) in all, and
// not at all for passes of equal length.
TEST(ZeroBubbleTest, TwiceTheMemoryLeavesNoBubble) {
  for (int64_t p = 2; p <= 16; ++p) {
    for (int64_t m = 1; m <= 64; ++m) {
      SCOPED_TRACE(testing::Message() << "p " << p << " m " << m);
      const std::vector<Steps> stages = AllStages(Schedule::kZb2p, p, m);
      ASSERT_OK_AND_ASSIGN(const std::vector<int64_t> most, CheckSchedule({stages}, {p, m, 1}));
      EXPECT_EQ(most, std::vector<int64_t>(p, std::min(2 * p - 1, m)));
      if (m < 2 * p) continue;
      for (const Times& t : kTimes) {
        const ScheduleRun run = RunPipeline(stages, m, t);
        EXPECT_EQ(run.longest_stage - m * t.all(),
                  (p - 1) * (t.forward + t.backward - 2 * t.weights));
      }
      EXPECT_EQ(RunPipeline(stages, m, kTimes[0]).makespan - 3 * m, p - 1);
    }
  }
}

TEST(ZeroBubbleTest, StagesWithAsManyInFlightHaveTheSame) {
  for (const Schedule schedule : {Schedule::kZbH1, Schedule::kZb2p}) {
    for (const int64_t m : {1, 2, 4, 9}) {
      const PipelineSchedule table(schedule, 4, m, 1);
      for (int64_t a = 0; a < 4; ++a) {
        for (int64_t b = 0; b < 4; ++b) {
          EXPECT_EQ(table.Same(a, b), table.OfStage(a) == table.OfStage(b));
        }
      }
    }
  }
}

// ---- through compiler and executor ----

// A linear layer a stage: a pass of each phase takes a second.
double CompiledMakespan(Schedule schedule, int64_t p, int64_t m,
                        StepTime optimizer = StepTime::kAtEnd, bool clips = false) {
  PlanUnderTest plan = LinearLayers(p);
  plan.options().optimizer = optimizer;
  plan.profile().update.grad_clip = clips;
  return CompiledMakespan(plan.Pp(p, schedule).MicroBatches(1, m), p, ProductSeconds);
}

TEST(CompiledZeroBubbleTest, HasTheBubbleOfTheClosedForm) {
  for (int64_t p : {2, 3, 4, 8}) {
    for (int64_t m : {p, 2 * p, 3 * p + 1}) {
      SCOPED_TRACE(testing::Message() << "p " << p << " m " << m);
      // A backward pass sends its gradient before it makes those of its weights.
      EXPECT_DOUBLE_EQ(CompiledMakespan(Schedule::k1f1b, p, m), 3 * m + 2 * (p - 1));
      EXPECT_DOUBLE_EQ(CompiledMakespan(Schedule::kZbH1, p, m), 3 * m + p - 1);
      if (m < 2 * p) continue;
      EXPECT_DOUBLE_EQ(CompiledMakespan(Schedule::kZb2p, p, m), 3 * m + p - 1);
    }
  }
}

// Iterations follow each other at the longest time of a stage from its first step to its last,
// whatever else the stages wait for together; the norm, which goes from stage to stage, is there
// in time.
TEST(CompiledZeroBubbleTest, PostValidatedStepsLetIterationsOverlap) {
  const Times seconds;
  for (const bool clips : {false, true}) {
    for (int64_t p : {2, 3, 4, 8}) {
      for (int64_t m : {p, 2 * p, 3 * p + 1}) {
        SCOPED_TRACE(testing::Message() << "p " << p << " m " << m);
        for (const Schedule schedule : {Schedule::k1f1b, Schedule::kZbH1, Schedule::kZb2p}) {
          const double iteration =
              CompiledMakespan(schedule, p, m, StepTime::kPostValidated, clips);
          EXPECT_LE(iteration, CompiledMakespan(schedule, p, m, StepTime::kAtEnd, clips));
          if (schedule == Schedule::k1f1b) continue;
          EXPECT_DOUBLE_EQ(iteration,
                           RunPipeline(AllStages(schedule, p, m), m, seconds).longest_stage);
          if (schedule == Schedule::kZb2p && m >= 2 * p) EXPECT_DOUBLE_EQ(iteration, 3 * m);
        }
      }
    }
  }
}

// ---- the two halves of a backward pass ----

// What all devices of each stage do in an iteration: kernels and communications by all that they
// are, with how often.
std::map<std::string, int64_t> WorkOf(const ExecutionGraph& graph) {
  std::map<std::string, int64_t> work;
  for (size_t p = 0; p < graph.programs.size(); ++p) {
    for (const Instance& instance : graph.programs[p].instances) {
      const Block& block = graph.blocks[instance.block];
      for (int32_t t = 0; t < block.size(); ++t) {
        const std::string what =
            block.kind[t] == TaskKind::kKernel
                ? testing::PrintToString(std::make_tuple(graph.kernels[block.spec[t]].label,
                                                         graph.kernels[block.spec[t]].flops,
                                                         graph.kernels[block.spec[t]].read_bytes,
                                                         graph.kernels[block.spec[t]].write_bytes))
                : CommText(graph, graph.comms[block.spec[t]]);
        work[testing::PrintToString(std::make_tuple(p, block.label[t], what))] +=
            instance.layer_count;
      }
    }
  }
  return work;
}

constexpr int kVariants = 48;

PlanUnderTest Transformer(int variant) {
  PlanUnderTest plan = PlanUnderTest::Of(variant % 2 == 0 ? SmallGpt() : SmallLlama());
  plan.Dp(2).Tp(2);
  if (variant % 3 == 1) plan.Sp();
  if (variant % 3 == 2) plan.Zero1();
  if (variant % 24 >= 12) plan.options().zero = 2 + variant % 2;
  const Recompute recompute[] = {Recompute::kNone, Recompute::kSelective, Recompute::kFull};
  plan.Recomputing(recompute[variant / 2 % 3]);
  if (variant % 12 >= 6) plan.profile().kernels.fusions = {"bias_gelu", "bias_dropout_add", "norm"};
  plan.profile().kernels.wgrad_overlaps_tp = variant % 4 != 3;
  if (variant >= kVariants / 2) return plan;
  if (variant % 3 == 0) {  // activations go out in forward passes and come back for B
    plan.options().offload = {Offload::kActivations};
    plan.options().offload_layers = variant % 4 == 0 ? -1 : 1;
  } else if (variant % 3 == 1) {
    plan.On("layers.*.mlp", variant % 2 == 0 ? "dp" : "tp", variant % 4 < 2 ? "0" : "1/2");
  }
  return plan;
}

// Also of layers that are gathered and reduced unit by unit, whose activations go to the host, or
// that run in part on some ranks.
TEST(SplitBackwardTest, TheHalvesDoTheWorkOfTheWhole) {
  for (int variant = 0; variant < kVariants; ++variant) {
    SCOPED_TRACE(variant);
    PlanUnderTest whole = Transformer(variant), halves = Transformer(variant);
    ASSERT_OK_AND_ASSIGN(const ExecutionGraph a,
                         whole.Pp(4, Schedule::k1f1b).MicroBatches(2, 4).Compile());
    ASSERT_OK_AND_ASSIGN(const ExecutionGraph b,
                         halves.Pp(4, Schedule::kZbH1).MicroBatches(2, 4).Compile());
    EXPECT_EQ(WorkOf(a), WorkOf(b));
    bool any = false;
    for (const Instance& instance : b.programs[1].instances) {
      any = any || instance.phase == Phase::kWeight;
    }
    EXPECT_TRUE(any);
  }
}

// Memory comes back to what it was, and is never less than with backward passes in one.
TEST(SplitBackwardTest, WhatIsPutOffIsKeptAndGivenUp) {
  for (int variant = 0; variant < kVariants; ++variant) {
    SCOPED_TRACE(variant);
    std::vector<int64_t> highest;
    for (const Schedule schedule : {Schedule::k1f1b, Schedule::kZbH1}) {
      PlanUnderTest plan = Transformer(variant);
      ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph,
                           plan.Pp(4, schedule).MicroBatches(2, 6).Compile());
      for (int32_t p = 0; p < static_cast<int32_t>(graph.programs.size()); ++p) {
        const std::vector<ReplayedEvent> events = ReplayEvents(graph, p);
        const int kind = static_cast<int>(MemoryKind::kActivations);
        int64_t most = 0;
        for (const ReplayedEvent& event : events) {
          ASSERT_GE(event.live.of[kind], 0);
          most = std::max(most, event.live.of[kind]);
        }
        EXPECT_EQ(events.back().live.of[kind], 0);
        highest.push_back(most);
      }
    }
    const size_t programs = highest.size() / 2;
    for (size_t p = 0; p < programs; ++p) {
      EXPECT_GE(highest[programs + p], highest[p]) << "program " << p;
    }
  }
}

// What comes back from the host stays until W as what never left does.
TEST(SplitBackwardTest, FromBOnOffloadedActivationsAreThereAsOthersAre) {
  std::vector<int64_t> alive;  // when W begins, with activations on the host and without
  std::vector<int64_t> most;
  for (const bool offloads : {true, false}) {
    PlanUnderTest plan = PlanUnderTest::Of(SmallGpt());
    plan.Pp(2, Schedule::kTable).MicroBatches(1, 1);
    plan.profile().tensors.offload_least_bytes = 0;
    plan.options().schedule_table = "F0.0 B0.0 W0.0;F0.0 B0.0 W0.0";
    if (offloads) plan.options().offload = {Offload::kActivations};
    plan.options().offload_layers = 100;
    ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, plan.Compile());
    const Program& program = graph.programs[0];
    int64_t live = 0, before_back = 0;
    bool back = false, weights = false;
    for (const Instance& instance : program.instances) {
      back = back || instance.phase == Phase::kBackward;
      if (instance.phase == Phase::kWeight && !weights) {
        weights = true;
        alive.push_back(live);
      }
      for (const MemoryEvent& event : graph.blocks[instance.block].memory) {
        if (event.kind != MemoryKind::kActivations) continue;
        live += event.delta * instance.layer_count;
      }
      if (!back) before_back = live;
    }
    EXPECT_TRUE(weights);
    most.push_back(before_back);
  }
  EXPECT_EQ(alive[0], alive[1]);
  EXPECT_LT(most[0], most[1]);
}

// All that meet in an exchange do so in B, or in W: the head on some ranks, whose input others
// hold the gradient of. Each rank by itself runs to its end, and in the same time.
TEST(SplitBackwardTest, ExchangesOfNodesOnSomeRanksAreInOneHalf) {
  for (const char* node : {"head", "embedding", "layers.*.mlp", "layers.*.attn"}) {
    for (const char* axis : {"dp", "tp"}) {
      for (const char* ranks : {"0", "1", "0/2"}) {
        SCOPED_TRACE(testing::Message() << node << " on " << axis << " " << ranks);
        PlanUnderTest plan = PlanUnderTest::Of(SmallLlama());
        plan.Dp(2).Tp(2).Sp().Pp(2, Schedule::kZb2p).MicroBatches(2, 4).On(node, axis, ranks);
        ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, CompileWithTimes(plan));
        EXPECT_OK(graph.Verify());
        Dice dice(7);
        ExpectFoldedEqualsFlat(dice, graph);
      }
    }
  }
}

// W reads no weights: what B gathered is given up before, and gradients are reduced behind W.
TEST(SplitBackwardTest, ShardedLayersAreGatheredForBAndReducedBehindW) {
  PlanUnderTest plan = Transformer(13);  // zero=3
  plan.Pp(2, Schedule::kTable).MicroBatches(1, 1);
  plan.options().schedule_table = "F0.0 B0.0 W0.0;F0.0 B0.0 W0.0";
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, plan.Compile());
  std::map<std::pair<Phase, CollectiveKind>, int64_t> count;
  for (const Instance& instance : graph.programs[1].instances) {
    const Block& block = graph.blocks[instance.block];
    for (int32_t t = 0; t < block.size(); ++t) {
      if (block.kind[t] != TaskKind::kComm || block.purpose[t] != Purpose::kDp) continue;
      count[{instance.phase, graph.comms[block.spec[t]].kind}] += instance.layer_count;
    }
  }
  EXPECT_GT((count[{Phase::kBackward, CollectiveKind::kAllGather}]), 0);
  EXPECT_EQ((count[{Phase::kBackward, CollectiveKind::kReduceScatter}]), 0);
  EXPECT_EQ((count[{Phase::kWeight, CollectiveKind::kAllGather}]), 0);
  EXPECT_GT((count[{Phase::kWeight, CollectiveKind::kReduceScatter}]), 0);
}

// Between B and W of `fc1 -> relu -> fc2` there are what the two products read: x, the result of
// relu, and the gradients of both results.
TEST(SplitBackwardTest, BetweenBAndWThereIsWhatProductsRead) {
  constexpr int64_t kHidden = 8, kFfn = 16, kTokens = 4;
  PlanUnderTest plan({{"hidden", kHidden}, {"ffn", kFfn}, {"seq", kTokens}});
  BodyWriter& body = plan.Segment("layers", 2);
  int x = body.InPort("x", {"batch", "seq", "hidden"});
  x = body.Op1("fc1", "linear", {x}, {{"n", "ffn"}});
  x = body.Op1("act", "relu", {x});
  body.OutPort(body.Op1("fc2", "linear", {x}, {{"n", "hidden"}}));
  plan.Pp(2, Schedule::kTable).MicroBatches(1, 1);
  plan.options().schedule_table = "F0.0 B0.0 W0.0;F0.0 B0.0 W0.0";
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, plan.Compile());
  const Program& program = graph.programs[1];
  int64_t live = 0;
  bool met = false;
  for (const Instance& instance : program.instances) {
    if (instance.phase == Phase::kWeight) {
      met = true;
      EXPECT_EQ(live, 2 * kTokens * (2 * kHidden + 2 * kFfn));
    }
    for (const MemoryEvent& event : graph.blocks[instance.block].memory) {
      if (event.kind == MemoryKind::kActivations) live += event.delta;
    }
    // What is passed on to the stage before goes with its transfer.
  }
  EXPECT_TRUE(met);
  EXPECT_EQ(live, 0);
}

}  // namespace
}  // namespace plancast
