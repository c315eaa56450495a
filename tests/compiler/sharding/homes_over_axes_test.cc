// Homes over other axes than the data-parallel ones, and whole on the host: what is cut over a
// stage's ranks is as if all of them were data-parallel, and bytes are what closed forms say.

#include <cstdint>
#include <map>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/sharding/home_plans.h"
#include "tests/compiler/small_model.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

constexpr auto kGather = CollectiveKind::kAllGather;
constexpr auto kScatter = CollectiveKind::kReduceScatter;
constexpr auto kReduce = CollectiveKind::kAllReduce;
constexpr auto kOut = CollectiveKind::kCopyToHost;
constexpr auto kIn = CollectiveKind::kCopyToDevice;

PlanUnderTest Small(int64_t dp, int64_t tp) {
  PlanUnderTest plan = PlanUnderTest::Of(SmallModel());
  plan.Dp(dp).Tp(tp).MicroBatches(1, 1);
  plan.options().sync_each = true;
  return plan;
}

// The same without the axes.
std::map<CollectiveKind, double> MovedInAll(const ExecutionGraph& graph) {
  std::map<CollectiveKind, double> moved;
  for (const auto& [text, bytes] : MovedByAxes(graph)) {
    moved[*kCollectiveKindNames.Find(text.substr(0, text.find('(')))] += bytes;
  }
  return moved;
}

// Parameters of the layers on one device of two tensor-parallel ones: those that tp cuts, and
// those that it does not.
struct Parts {
  double cut = 0, whole = 0;
};
Parts LayersOver(int64_t tp) {
  const auto layers = [](int64_t ranks) {
    const auto all = [&](int64_t count) {
      PlanUnderTest plan = PlanUnderTest::Of(SmallModel(count));
      return Static(Compiled(plan.Tp(ranks)), MemoryKind::kParameters) / 2;
    };
    return 2 * (all(6) - all(3));
  };
  const double one = layers(1), several = layers(tp);
  const auto n = static_cast<double>(tp);
  const double cut = (one - several) / (1 - 1 / n);  // on all ranks together
  return {cut / n, one - cut};
}

// --- Weights that tp does not cut.

TEST(HomesOverAxesTest, NormsAreShardedOverTheRanksOfTheirTensors) {
  const Parts parts = LayersOver(2);
  ASSERT_GT(parts.whole, 0);
  PlanUnderTest plain = Small(1, 2);
  plain.Sp();
  const ExecutionGraph before = Compiled(plain);
  for (const int zero : {1, 2, 3}) {
    SCOPED_TRACE(zero);
    PlanUnderTest plan = Small(1, 2);
    Homes(plan.Sp(), "layers.*", "shard(tp)", zero);
    const ExecutionGraph graph = Compiled(plan);
    auto moved = MovedByAxes(graph), moved_before = MovedByAxes(before);
    // Partial gradients are reduce-scattered, and no more summed whole at the end.
    EXPECT_EQ(moved["reduce_scatter(tp)"], 4 * parts.whole);
    EXPECT_EQ(moved_before["all_reduce(tp)"] - moved["all_reduce(tp)"], 4 * parts.whole);
    EXPECT_EQ(moved["all_gather(tp)"], 2 * parts.whole * (zero == 3 ? 2 : 1));
    const auto spared = [&](MemoryKind kind) { return Static(before, kind) - Static(graph, kind); };
    EXPECT_EQ(spared(MemoryKind::kOptimizer), 12 * parts.whole / 2);
    EXPECT_EQ(spared(MemoryKind::kParameters), zero == 3 ? 2 * parts.whole / 2 : 0);
  }
}

TEST(HomesOverAxesTest, GradientsThatAreAlikeAreNotExchanged) {
  const Parts parts = LayersOver(2);
  for (const int zero : {1, 2, 3}) {
    SCOPED_TRACE(zero);
    PlanUnderTest one = Small(1, 2);  // without sp each rank has the whole gradient
    Homes(one, "layers.*", "shard(tp)", zero);
    auto moved = MovedByAxes(Compiled(one));
    EXPECT_EQ(moved["reduce_scatter(tp)"] + moved["all_reduce(tp)"], 0);
    EXPECT_EQ(moved["all_gather(tp)"], 2 * parts.whole * (zero == 3 ? 2 : 1));
    // With replicas each sums its part of them; what tp cuts is reduced as in any plan.
    PlanUnderTest plain = Small(2, 2), two = Small(2, 2);
    Homes(two, "layers.*", "shard(tp)", zero);
    moved = MovedByAxes(Compiled(two));
    EXPECT_EQ(MovedByAxes(Compiled(plain))["all_reduce(dp)"] - moved["all_reduce(dp)"],
              4 * parts.whole / 2);
    // Or all ranks of both axes have a part, and dp sums it.
    PlanUnderTest both = Small(2, 2);
    Homes(both, "layers.*", "shard(dp,tp)", zero);
    moved = MovedByAxes(Compiled(both));
    EXPECT_EQ(moved["reduce_scatter(dp)"], 4 * (parts.cut + parts.whole / 2));
    EXPECT_EQ(moved["all_gather(dp*tp)"], 2 * parts.whole * (zero == 3 ? 2 : 1));
    EXPECT_EQ(moved["all_gather(dp)"], 2 * parts.cut * (zero == 3 ? 2 : 1));
  }
}

// --- Nothing is cut: the ranks of tp are as those of dp.

TEST(HomesOverAxesTest, WhatIsShardedOverBothAxesIsAsOverOneOfAllRanks) {
  for (const char* dim : {"seq", "batch"}) {
    for (const int zero : {1, 2, 3}) {
      for (const bool overlaps : {false, true}) {
        SCOPED_TRACE(testing::Message() << dim << zero << overlaps);
        PlanUnderTest one = Small(4, 1), two = Small(2, 2);
        const bool batch = std::string(dim) == "batch";
        two.Split("*", "tp", {dim}).MicroBatches(batch ? 2 : 1, 1);
        one.Shard("*", zero);
        Homes(two, "*", "shard(dp,tp)", zero);
        for (PlanUnderTest* plan : {&one, &two}) {
          plan->options().bucket_bytes = 100'000;
          plan->profile().data_parallel.shard_cut = ShardCut::kUnit;
          if (overlaps) plan->options().overlap = {Overlap::kGrad, Overlap::kParam};
        }
        const ExecutionGraph a = Compiled(one), b = Compiled(two);
        for (const CollectiveKind kind : {kGather, kScatter, kReduce}) {
          EXPECT_DOUBLE_EQ(MovedInAll(a)[kind], MovedInAll(b)[kind]) << kCollectiveKindNames[kind];
        }
        for (const MemoryKind kind :
             {MemoryKind::kParameters, MemoryKind::kGradients, MemoryKind::kOptimizer}) {
          EXPECT_EQ(Static(a, kind), Static(b, kind));
        }
      }
    }
  }
}

TEST(HomesOverAxesTest, HybridShardsAreSummedOverTheirReplicas) {
  PlanUnderTest plan = Small(4, 2);
  plan.Split("*", "tp", {"batch"}).MicroBatches(2, 1).options().hsdp = 2;
  Homes(plan, "*", "shard(dp,tp)", 3);
  auto moved = MovedByAxes(Compiled(plan));
  const double scattered = moved["reduce_scatter(dp.1*tp)"];
  EXPECT_GT(scattered, 0);
  EXPECT_EQ(moved["all_reduce(dp.0)"], scattered / 4);
  EXPECT_EQ(moved["all_gather(dp.1*tp)"], scattered);  // twice in half of the bytes
}

TEST(HomesOverAxesTest, AnAxisThatCutsAWeightCutsItNoFurther) {
  PlanUnderTest dp = Small(2, 2), both = Small(2, 2);
  for (const char* node : {"layers.*.attn.qkv", "layers.*.mlp.fc1"}) {
    dp.Shard(node, 3);
    both.Shard(node, 3);
  }
  // A fused product with nothing uncut beside it says `dp` alone; all of a layer may say both.
  Homes(both, "layers.*", "shard(dp,tp)", 3);
  dp.Shard("layers.*", 3);
  auto of_dp = MovedByAxes(Compiled(dp)), of_both = MovedByAxes(Compiled(both));
  const Parts parts = LayersOver(2);
  EXPECT_EQ(of_dp["all_gather(dp)"], 2 * 2 * (parts.cut + parts.whole));
  EXPECT_EQ(of_both["all_gather(dp)"], 2 * 2 * parts.cut);
  EXPECT_EQ(of_both["all_gather(dp*tp)"], 2 * 2 * parts.whole);
}

// --- Whole on the host.

TEST(HomesOverAxesTest, WholeWeightsComeFromTheHostLayerByLayer) {
  for (const int64_t dp : {1, 2}) {
    SCOPED_TRACE(dp);
    PlanUnderTest plain = Small(dp, 1), plan = Small(dp, 1);
    plan.Home("*", HomeKind::kWeights, "host");
    const double psi = Static(Compiled(plain), MemoryKind::kParameters) / 2;
    const ExecutionGraph graph = Compiled(plan);
    for (const MemoryKind kind :
         {MemoryKind::kParameters, MemoryKind::kGradients, MemoryKind::kOptimizer}) {
      EXPECT_EQ(Static(graph, kind), 0);
    }
    // Weights, state with its master, and gradients that it is updated with.
    EXPECT_EQ(graph.programs[0].host_bytes, (2 + 12 + 4) * psi);
    auto moved = MovedInAll(graph);
    EXPECT_EQ(moved[kIn], 2 * 2 * psi);
    EXPECT_EQ(moved[kOut], 4 * psi);
    EXPECT_EQ(moved[kReduce], dp == 1 ? 0 : 4 * psi);
    EXPECT_EQ(moved[kGather] + moved[kScatter], 0);
  }
}

TEST(HomesOverAxesTest, WholeGradientsGoToTheHostLayerByLayer) {
  PlanUnderTest plain = Small(1, 1), plan = Small(1, 1);
  plan.Home("layers.*", HomeKind::kGradients, "host");
  const ExecutionGraph before = Compiled(plain), graph = Compiled(plan);
  const Parts parts = LayersOver(2);
  const double layers = 2 * parts.cut + parts.whole;
  EXPECT_EQ(Static(graph, MemoryKind::kParameters), Static(before, MemoryKind::kParameters));
  EXPECT_EQ(Static(before, MemoryKind::kGradients) - Static(graph, MemoryKind::kGradients),
            4 * layers);
  EXPECT_EQ(Static(before, MemoryKind::kOptimizer) - Static(graph, MemoryKind::kOptimizer),
            12 * layers);
  EXPECT_EQ(graph.programs[0].host_bytes, (12 + 4) * layers);
  auto moved = MovedInAll(graph);
  EXPECT_EQ(moved[kOut], 4 * layers);
  EXPECT_EQ(moved[kIn], 2 * layers);  // updated
}

// --- Bad input.

TEST(HomesOverAxesTest, WhatCannotBeIsRefused) {
  PlanUnderTest cut = Small(2, 2);
  cut.Home("layers.*.mlp.fc1", HomeKind::kWeights, "shard(dp,tp)");
  EXPECT_THAT(Refused(cut), HasSubstr("`layers.*.mlp.fc1`: `weights: shard(dp,tp)` shares out "
                                      "nothing over `tp`: `split` cuts all weights below over the "
                                      "ranks of `tp` already"));
  PlanUnderTest nodes = Small(2, 2);
  nodes.Home("layers.*", HomeKind::kWeights, "shard(dp)");
  nodes.Home("layers[0:2]", HomeKind::kState, "shard(tp)");
  EXPECT_THAT(Refused(nodes), HasSubstr("`weights: shard(dp)` (from `layers.*`) and `state: "
                                        "shard(tp)` (from `layers[0:2]`) contradict each other"));
  PlanUnderTest host = Small(2, 2);
  host.Home("layers.*", HomeKind::kWeights, "host");
  host.Home("layers[0:2]", HomeKind::kState, "shard(dp)");
  EXPECT_THAT(Refused(host), HasSubstr("`weights: host` (from `layers.*`) and `state: shard(dp)` "
                                       "(from `layers[0:2]`) contradict each other"));
  TransformerConfig config = SmallModel();
  config.tied_embeddings = true;
  PlanUnderTest tied = PlanUnderTest::Of(config);
  tied.Dp(2).Tp(2).Split("*", "tp", {"seq"}).Home("*", HomeKind::kWeights, "shard(dp,tp)");
  EXPECT_THAT(Refused(tied), HasSubstr("share a weight whose home is over other axes than `dp`"));
}

}  // namespace
}  // namespace plancast
