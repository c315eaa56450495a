// Stages with meshes of their own: those that are alike equal the regular plan, and what crosses
// borders is what the closed forms say. tests/planner/language compares random ones with flat.

#include "compiler/unlike_stages.h"

#include <cstdint>
#include <string>
#include <vector>

#include "executor/executor.h"
#include "executor/runtime.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/folded_against_reference.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kBatch = 12;  // samples of a micro-batch on all ranks of a stage

TransformerConfig Tiny(int64_t layers) {
  TransformerConfig config;
  config.name = "tiny";
  config.layers = layers;
  config.hidden = 32;
  config.heads = 4;
  config.kv_heads = 4;
  config.head_dim = 8;
  config.ffn = 64;
  config.vocab = 120;
  config.seq = 16;
  config.max_positions = 16;
  return config;
}

// One stage after the other, on devices in this order.
void Place(PlanOptions& options) {
  int64_t first = 0;
  for (StageOptions& stage : options.stages) {
    stage.micro_batch = kBatch / stage.dp;
    stage.first_device = first;
    first += stage.devices();
  }
  options.dp = options.stages[0].dp;
  options.tp = options.stages[0].tp;
  options.micro_batch = options.stages[0].micro_batch;
}

int64_t Makespan(const ExecutionGraph& graph, const Machine& machine) {
  const auto run = Simulation::Run(graph, machine, RealiseOn(machine, graph));
  EXPECT_OK(run.status());
  return run.ok() ? (*run)->trace().makespan_ps : -1;
}

TEST(UnlikeStagesTest, StagesThatAreAlikeAreTheRegularPlan) {
  for (const int64_t dp : {1, 2, 4}) {
    for (const int64_t tp : {1, 2}) {
      PlanUnderTest regular = PlanUnderTest::Of(Tiny(8)), own = PlanUnderTest::Of(Tiny(8));
      for (PlanUnderTest* plan : {&regular, &own}) {
        plan->Dp(dp).Tp(tp).Pp(4).MicroBatches(kBatch / dp, 8);
      }
      own.options().stages.assign(4, StageOptions{dp, tp});
      Place(own.options());
      ASSERT_OK_AND_ASSIGN(const ExecutionGraph a, CompileWithTimes(regular));
      ASSERT_OK_AND_ASSIGN(const ExecutionGraph b, CompileWithTimes(own));
      ASSERT_OK_AND_ASSIGN(const Machine machine, Machine::Create(UnitMachine(2, 16, 4)));
      // Where receivers hold copies they may gather instead, if that is faster.
      const int64_t usual = Makespan(a, machine), chosen = Makespan(b, machine);
      EXPECT_LE(chosen, usual) << dp << "x" << tp;
      if (tp == 1) {
        EXPECT_EQ(chosen, usual);
      }
      for (size_t p = 0; p < 4; ++p) {
        EXPECT_EQ(ReplayMemory(a, RuntimeParams())[p].allocated,
                  ReplayMemory(b, RuntimeParams())[p].allocated);
      }
    }
  }
}

// The stream of a micro-batch, bf16.
constexpr int64_t kStream = 2 * kBatch * 16 * 32;

int64_t Crossing(const Reshard::Way& way) {
  int64_t bytes = 0;
  for (const Reshard::Flow& flow : way.flows) bytes += flow.bytes;
  return bytes;
}

// Four ranks of data parallelism send to two with two of tensor parallelism each: every copy
// gets all of it, or each its half, which they gather.
TEST(UnlikeStagesTest, WhatCrossesABorderIsTheClosedForm) {
  PlanUnderTest plan = PlanUnderTest::Of(Tiny(4));
  plan.Pp(2).MicroBatches(1, 2);
  plan.options().stages = {StageOptions{4, 1}, StageOptions{2, 2}};
  Place(plan.options());
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, plan.Compile());
  ASSERT_EQ(graph.reshards.size(), 2);
  const Reshard& forward = graph.reshards[0];
  ASSERT_EQ(forward.ways.size(), 3);
  EXPECT_EQ(forward.ways[0].name, "send_receive");
  EXPECT_EQ(Crossing(forward.ways[0]), 2 * kStream);
  EXPECT_EQ(Crossing(forward.ways[1]), kStream);
  EXPECT_EQ(forward.ways[1].after.kind, CollectiveKind::kAllGather);
  EXPECT_EQ(forward.ways[1].after.bytes, kStream / 2);
  EXPECT_EQ(Crossing(forward.ways[2]), kStream);
  // The gradient is whole on both ranks of a pair: each sends a half of it.
  EXPECT_EQ(Crossing(graph.reshards[1].ways[0]), kStream);
}

// The work of all devices is that of one.
TEST(UnlikeStagesTest, FlopsAreConserved) {
  const auto flops = [](const ExecutionGraph& graph) {
    double sum = 0;
    for (const Program& program : graph.programs) {
      for (const Instance& instance : program.instances) {
        const Block& block = graph.blocks[instance.block];
        for (int32_t t = 0; t < block.size(); ++t) {
          if (block.kind[t] != TaskKind::kKernel) continue;
          const KernelSpec& kernel = graph.kernels[block.spec[t]];
          if (kernel.family != KernelFamily::kGemm) continue;
          sum +=
              kernel.flops * instance.layer_count * static_cast<double>(graph.DevicesOf(program));
        }
      }
    }
    return sum;
  };
  PlanUnderTest one = PlanUnderTest::Of(Tiny(4));
  one.MicroBatches(kBatch, 3);
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph whole, one.Compile());
  PlanUnderTest plan = PlanUnderTest::Of(Tiny(4));
  plan.Pp(2).MicroBatches(1, 3);
  plan.options().stages = {StageOptions{3, 2}, StageOptions{1, 4}};
  Place(plan.options());
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, plan.Compile());
  EXPECT_NEAR(flops(graph) / flops(whole), 1, 1e-9);
}

TEST(UnlikeStagesTest, WhatCannotBeSaidYetIsRefused) {
  TransformerConfig tied = Tiny(4);
  tied.tied_embeddings = true;
  PlanUnderTest plan = PlanUnderTest::Of(tied);
  plan.Pp(2).MicroBatches(1, 2);
  plan.options().stages = {StageOptions{2, 1}, StageOptions{1, 2}};
  Place(plan.options());
  EXPECT_THAT(plan.Compile(), StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("tied")));
  PlanUnderTest order = PlanUnderTest::Of(Tiny(4));
  order.Pp(2).MicroBatches(1, 2);
  order.options().order = {"pp", "tp", "cp", "ep", "dp"};
  order.options().stages = {StageOptions{2, 1}, StageOptions{1, 2}};
  Place(order.options());
  EXPECT_THAT(order.Compile(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("order")));
}

}  // namespace
}  // namespace plancast
