// Homes on one rank of an axis: what all ranks sum is reduced to it, what they need is broadcast
// from it, and it alone keeps and updates anything.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/sharding/home_plans.h"
#include "tests/compiler/small_model.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr MemoryKind kStored[] = {MemoryKind::kParameters, MemoryKind::kGradients,
                                  MemoryKind::kOptimizer};

PlanUnderTest Small(int64_t dp, int64_t tp = 1, int64_t layers = 6) {
  PlanUnderTest plan = PlanUnderTest::Of(SmallModel(layers));
  plan.Dp(dp).Tp(tp).MicroBatches(1, 1);
  plan.options().sync_each = true;
  return plan;
}

// What the update runs.
std::vector<std::string> Update(const ExecutionGraph& graph, size_t program) {
  std::vector<std::string> labels;
  ForEachTask(graph, program, [&](const Block& block, int32_t t, int64_t) {
    if (block.purpose[t] == Purpose::kOptimizer) labels.push_back(block.label[t]);
  });
  return labels;
}

// Bytes that gathers of weights allocate.
double Fetched(const ExecutionGraph& graph, size_t program) {
  double bytes = 0;
  for (const Instance& instance : graph.programs[program].instances) {
    const Block& block = graph.blocks[instance.block];
    for (const MemoryEvent& event : block.memory) {
      if (event.kind != MemoryKind::kParameters || event.delta < 0) continue;
      bytes += static_cast<double>(event.delta) * static_cast<double>(instance.layer_count);
    }
  }
  return bytes;
}

// Parameters of six layers, and of the whole model.
double Layers() {
  const auto all = [](int64_t layers) {
    PlanUnderTest plan = Small(1, 1, layers);
    return Static(Compiled(plan), MemoryKind::kParameters) / 2;
  };
  return 2 * (all(6) - all(3));
}
double All() {
  PlanUnderTest plan = Small(1);
  return Static(Compiled(plan), MemoryKind::kParameters) / 2;
}

TEST(HomesOnRanksTest, GradientsAreReducedToTheRankAndWeightsBroadcastFromIt) {
  const double layers = Layers(), others = All() - layers;
  for (const ShardCut cut :
       {ShardCut::kParameter, ShardCut::kJoined, ShardCut::kUnit, ShardCut::kRows}) {
    for (const bool overlaps : {false, true}) {
      for (const int zero : {1, 2, 3}) {
        SCOPED_TRACE(testing::Message() << static_cast<int>(cut) << overlaps << zero);
        PlanUnderTest plan = Small(3);
        plan.profile().data_parallel.shard_cut = cut;
        if (overlaps) plan.options().overlap = {Overlap::kGrad, Overlap::kParam};
        plan.options().bucket_bytes = 100'000;
        const ExecutionGraph graph = Compiled(Homes(plan, "layers.*", "on(dp=1)", zero));
        ASSERT_EQ(graph.programs.size(), 3u);
        for (size_t p = 0; p < 3; ++p) {
          auto moved = MovedByAxes(graph, p);
          EXPECT_EQ(moved["reduce(dp)"], 4 * layers);
          EXPECT_EQ(moved["broadcast(dp)"], 2 * layers * (zero == 3 ? 2 : 1));
          EXPECT_EQ(moved["all_reduce(dp)"], 4 * others);
          EXPECT_EQ(moved.size(), 3u);
        }
      }
    }
  }
}

TEST(HomesOnRanksTest, TheRankKeepsAllAndTheOthersNothing) {
  const double layers = Layers(), others = All() - layers;
  for (const int zero : {1, 2, 3}) {
    for (size_t rank = 0; rank < 3; ++rank) {
      SCOPED_TRACE(testing::Message() << zero << rank);
      PlanUnderTest plan = Small(3);
      plan.profile().update.zero_grad = true;
      Homes(plan, "layers.*", absl::StrCat("on(dp=", rank, ")").c_str(), zero);
      const ExecutionGraph graph = Compiled(plan);
      ASSERT_EQ(graph.programs.size(), 3u);
      for (size_t p = 0; p < 3; ++p) {
        const double kept = p == rank ? layers : 0;
        EXPECT_EQ(Static(graph, MemoryKind::kOptimizer, p), 12 * (others + kept));
        EXPECT_EQ(Static(graph, MemoryKind::kGradients, p),
                  4 * (others + (zero >= 2 ? kept : layers)));
        EXPECT_EQ(Static(graph, MemoryKind::kParameters, p),
                  2 * (others + (zero == 3 ? kept : layers)));
      }
    }
  }
}

// Forward and backward, for as long as a layer needs them.
TEST(HomesOnRanksTest, OthersFetchWhatTheyNeed) {
  PlanUnderTest plan = Small(2), sharded = Small(2);
  const ExecutionGraph graph = Compiled(Homes(plan, "layers.*", "on(dp=1)", 3));
  const ExecutionGraph parts = Compiled(sharded.Shard("layers.*", 3));
  EXPECT_EQ(Fetched(graph, 0), 2 * 2 * Layers());
  EXPECT_EQ(Fetched(graph, 0), Fetched(parts, 0));
  EXPECT_EQ(Fetched(graph, 1), 0);
}

TEST(HomesOnRanksTest, LayersDealtToRanksKeepWhatTheirShardsWould) {
  for (const int zero : {1, 2, 3}) {
    SCOPED_TRACE(zero);
    PlanUnderTest dealt = Small(2), sharded = Small(2);
    for (PlanUnderTest* plan : {&dealt, &sharded}) plan->profile().update.zero_grad = true;
    Homes(dealt, "layers[0::2]", "on(dp=0)", zero);
    Homes(dealt, "layers[1::2]", "on(dp=1)", zero);
    const ExecutionGraph a = Compiled(dealt), b = Compiled(sharded.Shard("layers.*", zero));
    ASSERT_EQ(a.programs.size(), 2u);
    for (const MemoryKind kind : kStored) {
      EXPECT_EQ(Static(a, kind, 0), Static(b, kind)) << static_cast<int>(kind);
      EXPECT_EQ(Static(a, kind, 1), Static(b, kind)) << static_cast<int>(kind);
    }
    auto moved = MovedByAxes(a, 0), parts = MovedByAxes(b, 0);
    EXPECT_EQ(moved["reduce(dp)"], parts["reduce_scatter(dp)"]);
    EXPECT_EQ(moved["broadcast(dp)"], parts["all_gather(dp)"]);
  }
}

TEST(HomesOnRanksTest, WhoKeepsNothingUpdatesNothing) {
  for (const int zero : {1, 2, 3}) {
    for (const bool fresh : {false, true}) {
      SCOPED_TRACE(testing::Message() << zero << fresh);
      PlanUnderTest plan = Small(2);
      plan.profile().update.fresh_gradients = fresh;
      plan.profile().update.zero_grad = zero > 1 && !fresh;
      Homes(plan, "*", "on(dp=0)", zero);
      const ExecutionGraph graph = Compiled(plan);
      EXPECT_THAT(Update(graph, 1), IsEmpty());
      EXPECT_THAT(Update(graph, 0), testing::Contains("adam"));
      EXPECT_EQ(Static(graph, MemoryKind::kOptimizer, 1), 0);
      plan.profile().update.grad_clip = true;
      EXPECT_THAT(Update(Compiled(plan), 1), ElementsAre("all_reduce grad_norm"));
    }
  }
}

// With no update, norm or broadcast after it, there is no time at which it gives gradients up.
TEST(HomesOnRanksTest, WhoGetsWeightsInTheNextIterationUpdatesSomethingInThisOne) {
  PlanUnderTest plan = Small(2);
  plan.profile().update.fresh_gradients = true;
  plan.options().overlap = {Overlap::kParam};
  EXPECT_THAT(Refused(Homes(plan, "*", "on(dp=0)", 1)), HasSubstr("Leave `overlap=param` out"));
  EXPECT_OK(Homes(plan, "head", "on(dp=1)", 1).Compile());
}

TEST(HomesOnRanksTest, GradientsThatAreAlikeAreNotReducedAndReplicasSumWhereTheyAreKept) {
  const double all = All();
  for (const int zero : {1, 2, 3}) {
    SCOPED_TRACE(zero);
    PlanUnderTest plan = Small(2, 2);
    plan.Split("", "tp", {});
    Homes(plan, "*", "on(tp=1)", zero);
    const ExecutionGraph graph = Compiled(plan);
    ASSERT_EQ(graph.programs.size(), 2u);
    for (size_t p = 0; p < 2; ++p) {
      auto moved = MovedByAxes(graph, p);
      EXPECT_EQ(moved["reduce(tp)"], 0);
      EXPECT_EQ(moved["broadcast(tp)"], 2 * all * (zero == 3 ? 2 : 1));
      EXPECT_EQ(moved["all_reduce(dp)"], p == 1 ? 4 * all : 0);
    }
    // Where tokens are cut, gradients are partial and are reduced to the rank.
    PlanUnderTest cut = Small(1, 2);
    cut.Split("*", "tp", {"seq"});
    const ExecutionGraph summed = Compiled(Homes(cut, "*", "on(tp=1)", zero));
    EXPECT_EQ(MovedByAxes(summed, 0)["reduce(tp)"], 4 * all);
  }
}

TEST(HomesOnRanksTest, OnAnAxisOfOneRankItIsWhole) {
  for (const int zero : {1, 2, 3}) {
    PlanUnderTest one = Small(1, 2), whole = Small(1, 2);
    const ExecutionGraph a = Compiled(Homes(one, "layers.*", "on(dp=0)", zero));
    const ExecutionGraph b = Compiled(Homes(whole, "layers.*", "replicate", 3));
    EXPECT_EQ(a.DebugString(), b.DebugString());
  }
}

TEST(HomesOnRanksTest, WhatOneRankCannotKeepIsRefused) {
  PlanUnderTest cut = Small(2, 2);
  EXPECT_THAT(Refused(Homes(cut, "layers.*.mlp", "on(tp=0)", 1)),
              HasSubstr("is not whole on all ranks of `tp`"));
  PlanUnderTest missing = Small(2);
  EXPECT_THAT(Refused(Homes(missing, "layers.*", "on(dp=2)", 1)), HasSubstr("`dp` has 2 ranks"));
  PlanUnderTest placed = Small(2);
  placed.On("layers.*.mlp", "dp", "1");
  EXPECT_THAT(Refused(Homes(placed, "layers.*", "on(dp=0)", 1)),
              HasSubstr("or a node is on some of them"));
  TransformerConfig config = SmallModel();
  config.tied_embeddings = true;
  PlanUnderTest tied = PlanUnderTest::Of(config);
  tied.Dp(2).MicroBatches(1, 1).Home("embedding", HomeKind::kState, "on(dp=0)");
  EXPECT_THAT(Refused(tied.Home("head", HomeKind::kState, "on(dp=1)")),
              HasSubstr("share a weight, and nodes give it two homes"));
  EXPECT_THAT(Refused(tied.Home("head", HomeKind::kState, "on(dp=0)")), HasSubstr("on one rank"));
  PlanUnderTest kept = Small(4);
  kept.options().reshard_ranks = 2;
  EXPECT_THAT(Refused(Homes(kept, "layers.*", "on(dp=0)", 3)),
              HasSubstr("not supported yet: `layers"));
}

}  // namespace
}  // namespace plancast
