// Gradients that backward passes make and the optimizer gives up.

#include "compiler/sharding/gradient_blocks.h"

#include <cstdint>

#include "executor/memory/replay.h"
#include "gtest/gtest.h"
#include "tests/compiler/plan_under_test.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

PlanUnderTest Fresh(int64_t pp, int64_t micro_batches) {
  PlanUnderTest plan = PlanUnderTest::Of(SmallGpt());
  if (pp > 1) plan.Pp(pp);
  plan.MicroBatches(1, micro_batches);
  plan.profile().update.fresh_gradients = true;
  return plan;
}

int64_t Static(const ExecutionGraph& graph, int program, MemoryKind kind) {
  return graph.programs[program].static_bytes[static_cast<int>(kind)];
}

// What the instances of a program make, add up and give up of gradients.
struct Gradients {
  int64_t net = 0, most = 0, made = 0;
};
Gradients GradientsOf(const ExecutionGraph& graph, int program) {
  Gradients sum;
  for (const Instance& instance : graph.programs[program].instances) {
    for (int32_t copy = 0; copy < instance.layer_count; ++copy) {
      for (const MemoryEvent& event : graph.blocks[instance.block].memory) {
        if (event.kind != MemoryKind::kGradients) continue;
        sum.net += event.delta;
        sum.most = std::max(sum.most, sum.net);
        if (graph.blocks[instance.block].tensors[event.tensor] == kFreshGradients) {
          sum.made += std::max<int64_t>(event.delta, 0);
        }
      }
    }
  }
  return sum;
}

TEST(FreshGradientsTest, AreMadeOnceForEachParameterAndGivenUpByTheOptimizer) {
  for (const int64_t pp : {1, 2, 4}) {
    for (const int64_t micro_batches : {1, 2, 9}) {
      PlanUnderTest plan = Fresh(pp, micro_batches), kept = Fresh(pp, micro_batches);
      kept.profile().update.fresh_gradients = false;
      ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, plan.Compile());
      ASSERT_OK_AND_ASSIGN(const ExecutionGraph whole, kept.Compile());
      for (int p = 0; p < pp; ++p) {
        const Gradients gradients = GradientsOf(graph, p);
        EXPECT_EQ(Static(graph, p, MemoryKind::kGradients), 0);
        EXPECT_EQ(gradients.net, 0);
        EXPECT_EQ(gradients.made, Static(whole, p, MemoryKind::kGradients));
        EXPECT_EQ(GradientsOf(whole, p).made, 0);
      }
    }
  }
}

TEST(FreshGradientsTest, ATiedParameterHasOneGradient) {
  TransformerConfig config = SmallGpt();
  config.tied_embeddings = true;
  PlanUnderTest plan = PlanUnderTest::Of(config), kept = PlanUnderTest::Of(config);
  plan.profile().update.fresh_gradients = true;
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, plan.Compile());
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph whole, kept.Compile());
  EXPECT_EQ(GradientsOf(graph, 0).made, Static(whole, 0, MemoryKind::kGradients));
}

TEST(FreshGradientsTest, LaterOnesLieBesideTheSumUntilTheyAreAdded) {
  PlanUnderTest one = Fresh(1, 1), two = Fresh(1, 2);
  for (PlanUnderTest* plan : {&one, &two}) plan->profile().kernels.fuse_wgrad_accumulation = false;
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph first, one.Compile());
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph second, two.Compile());
  EXPECT_EQ(GradientsOf(first, 0).most, GradientsOf(first, 0).made);
  // The largest by itself is the embedding's, in two bytes.
  const TransformerConfig config = SmallGpt();
  EXPECT_EQ(GradientsOf(second, 0).most - GradientsOf(second, 0).made,
            2 * config.vocab * config.hidden);
  EXPECT_EQ(GradientsOf(second, 0).net, 0);
}

TEST(FreshGradientsTest, PeaksAreThoseOfOneBufferOnceAllAreThere) {
  // With several micro-batches the fullest moment is in a later one.
  for (const int64_t pp : {1, 2, 4}) {
    PlanUnderTest plan = Fresh(pp, 9), kept = Fresh(pp, 9);
    kept.profile().update.fresh_gradients = false;
    ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, plan.Compile());
    ASSERT_OK_AND_ASSIGN(const ExecutionGraph whole, kept.Compile());
    for (int32_t p = 0; p < pp; ++p) {
      EXPECT_EQ(FindPeak(graph, p, ProfileBlocks(graph, {})).allocated,
                FindPeak(whole, p, ProfileBlocks(whole, {})).allocated);
    }
  }
}

TEST(FreshGradientsTest, OneMicroBatchIsAtItsFullestBeforeTheyAre) {
  PlanUnderTest plan = Fresh(1, 1), kept = Fresh(1, 1);
  kept.profile().update.fresh_gradients = false;
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, plan.Compile());
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph whole, kept.Compile());
  EXPECT_LT(FindPeak(graph, 0, ProfileBlocks(graph, {})).allocated,
            FindPeak(whole, 0, ProfileBlocks(whole, {})).allocated);
}

}  // namespace
}  // namespace plancast
