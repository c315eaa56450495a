// Programs of stages whose layers turn back, or that hold two copies of the model.

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "tests/compiler/plan_under_test.h"
#include "tests/compiler/small_model.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kStages = 4, kMicroBatches = 8;

PlanUnderTest PlanOf(Schedule schedule, bool tied) {
  TransformerConfig config = SmallGpt();
  config.layers = 8;
  config.tied_embeddings = tied;
  PlanUnderTest plan = PlanUnderTest::Of(config);
  plan.Dp(2).Pp(kStages, schedule, UsualChunks(schedule)).MicroBatches(1, kMicroBatches);
  return plan;
}

int64_t Count(const ExecutionGraph& graph, const Program& program, const std::string& name) {
  int64_t count = 0;
  for (const Instance& instance : program.instances) {
    count += graph.blocks[instance.block].name == name ? 1 : 0;
  }
  return count;
}

// That a program swaps with other stages behind its last backward pass.
int64_t SwappedBytes(const ExecutionGraph& graph, const Program& program) {
  int64_t bytes = 0;
  for (const Instance& instance : program.instances) {
    const Block& block = graph.blocks[instance.block];
    if (block.name == "tied gradient") bytes += graph.comms[block.spec[0]].bytes;
  }
  return bytes;
}

int64_t StaticBytes(const Program& program, MemoryKind kind) {
  return program.static_bytes[static_cast<int>(kind)];
}

TEST(PlacedStagesTest, NothingIsSentAtATurn) {
  PlanUnderTest plan = PlanOf(Schedule::kZbV, /*tied=*/true);
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, plan.Compile());
  for (int64_t stage = 0; stage < kStages; ++stage) {
    // Down and up again; the first and the last stage have one neighbour.
    const int64_t neighbours = stage == 0 || stage == kStages - 1 ? 1 : 2;
    const Program& program = graph.programs[stage];
    for (const char* name :
         {"send activation", "receive activation", "send gradient", "receive gradient"}) {
      EXPECT_EQ(Count(graph, program, name), neighbours * kMicroBatches) << name;
    }
    // Both users of the embedding are on the first stage.
    EXPECT_EQ(SwappedBytes(graph, program), 0);
  }
  PlanUnderTest apart = PlanOf(Schedule::kZbV, /*tied=*/false);
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph other, apart.Compile());
  const TransformerConfig config = SmallGpt();
  EXPECT_EQ(StaticBytes(other.programs[0], MemoryKind::kParameters) -
                StaticBytes(graph.programs[0], MemoryKind::kParameters),
            2 * config.vocab * config.hidden);
}

// Each stage and the one with the same layers sum all that they hold.
TEST(PlacedStagesTest, CopiesHoldParametersTwiceAndSumTheirGradients) {
  for (const bool tied : {false, true}) {
    SCOPED_TRACE(tied);
    PlanUnderTest one = PlanOf(Schedule::k1f1b, tied), two = PlanOf(Schedule::kChimera, tied);
    ASSERT_OK_AND_ASSIGN(const ExecutionGraph whole, one.Compile());
    ASSERT_OK_AND_ASSIGN(const ExecutionGraph copies, two.Compile());
    int64_t of_model = 0, of_copies = 0;
    for (int64_t stage = 0; stage < kStages; ++stage) {
      const Program& program = copies.programs[stage];
      of_model += StaticBytes(whole.programs[stage], MemoryKind::kParameters);
      of_copies += StaticBytes(program, MemoryKind::kParameters);
      EXPECT_EQ(SwappedBytes(copies, program), StaticBytes(program, MemoryKind::kGradients));
      EXPECT_EQ(StaticBytes(program, MemoryKind::kParameters),
                StaticBytes(copies.programs[kStages - 1 - stage], MemoryKind::kParameters));
    }
    // Tied ones are on the first and the last stage either way.
    const TransformerConfig config = SmallGpt();
    EXPECT_EQ(of_copies, 2 * (of_model - (tied ? 2 * config.vocab * config.hidden : 0)));
  }
}

TEST(PlacedStagesTest, CopiesThatShardSwapShards) {
  PlanUnderTest whole = PlanOf(Schedule::kDualPipe, false),
                shards = PlanOf(Schedule::kDualPipe, false);
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph a, whole.Compile());
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph b, shards.Zero1().Compile());
  for (int64_t stage = 0; stage < kStages; ++stage) {
    EXPECT_NEAR(static_cast<double>(SwappedBytes(a, a.programs[stage])),
                2.0 * static_cast<double>(SwappedBytes(b, b.programs[stage])), 8);
  }
}

// Nodes on some ranks: each rank swaps the gradients that it holds.
TEST(PlacedStagesTest, RanksSwapWhatTheyHold) {
  PlanUnderTest plan = PlanOf(Schedule::kChimera, false);
  plan.On("layers.*.mlp", "dp", "0");
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, plan.Compile());
  ASSERT_OK(graph.Verify());
  EXPECT_GT(graph.programs.size(), kStages);
  std::set<int64_t> swapped;
  for (const Program& program : graph.programs) {
    swapped.insert(SwappedBytes(graph, program));
    EXPECT_EQ(SwappedBytes(graph, program), StaticBytes(program, MemoryKind::kGradients))
        << program.name;
  }
  EXPECT_GT(swapped.size(), 1);
}

TEST(PlacedStagesTest, WhatIsNotSimulatedIsRefusedInWords) {
  PlanUnderTest host = PlanOf(Schedule::kChimera, false);
  host.options().offload = {Offload::kOptimizer};
  EXPECT_THAT(host.Compile(), StatusIs(absl::StatusCode::kUnimplemented,
                                       HasSubstr("offload=optimizer with schedule=chimera, whose "
                                                 "stages hold two copies")));
}

}  // namespace
}  // namespace plancast
