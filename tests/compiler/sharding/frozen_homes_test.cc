// Homes of nodes in plans that train a part of the model: what nodes spell out is the plan's, and
// frozen weights are gathered or fetched, but never reduced, and have no state.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "graph/model/nf4.h"
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
constexpr int64_t kRank = 4;
// Beside qkv and proj of six layers of 64: A and B of each.
constexpr double kAdapters = 6 * kRank * ((64 + 3 * 64) + (64 + 64));

PlanUnderTest Small(int64_t dp) {
  PlanUnderTest plan = PlanUnderTest::Of(SmallModel());
  plan.Dp(dp).MicroBatches(1, 2);
  return plan;
}

PlanUnderTest Tuned(int64_t dp, const std::string& base = "") {
  PlanUnderTest plan = Small(dp);
  plan.Lora("", kRank, {"attn.qkv", "attn.proj"}, base).FineTune();
  plan.options().sync_each = true;
  return plan;
}

std::string Text(PlanUnderTest& plan) {
  const ExecutionGraph graph = Compiled(plan);
  std::string text = graph.DebugString();
  for (const Program& program : graph.programs) text += std::to_string(program.host_bytes) + ";";
  return text;
}

const std::vector<std::string> kModules = {"embedding", "layers.*", "head"};

TEST(FrozenHomesTest, WhatNodesSpellOutIsThePlanWithAdapters) {
  for (const char* base : {"", "nf4"}) {
    for (const int zero : {1, 2, 3}) {
      for (const bool elsewhere : {false, true}) {
        if (elsewhere && *base != 0) continue;  // bytes of the mean parameter, by stage
        SCOPED_TRACE(testing::Message() << base << zero << elsewhere);
        PlanUnderTest plan = Tuned(4, base), nodes = Tuned(4, base);
        for (PlanUnderTest* p : {&plan, &nodes}) {
          p->Pp(elsewhere ? 2 : 1, elsewhere ? Schedule::k1f1b : Schedule::kNone);
          p->options().sync_each = zero >= 2;
          p->profile().data_parallel.shard_cut = elsewhere ? ShardCut::kUnit : ShardCut::kRows;
          p->profile().data_parallel.sharded_master = !elsewhere;
          p->profile().data_parallel.root_unit = elsewhere;
        }
        plan.options().zero = zero;
        if (elsewhere) plan.options().offload.insert(Offload::kOptimizer);
        if (elsewhere && zero == 3) plan.options().offload.insert(Offload::kParameters);
        // Frozen modules have weights alone.
        for (const char* module : {"embedding", "head"}) {
          const std::string home = elsewhere ? "shard(dp)+host" : "shard(dp)";
          nodes.Home(module, HomeKind::kWeights, zero == 3 ? home : "replicate");
        }
        nodes.Shard("layers.*", zero);
        if (elsewhere) nodes.Home("layers.*", HomeKind::kState, "shard(dp)+host");
        if (elsewhere && zero == 3) nodes.Home("layers.*", HomeKind::kWeights, "shard(dp)+host");
        EXPECT_EQ(Text(plan), Text(nodes));
      }
    }
  }
}

TEST(FrozenHomesTest, FrozenLayersThatAreShardedAreThoseOfStageThree) {
  PlanUnderTest plan = Small(4), nodes = Small(4);
  for (PlanUnderTest* p : {&plan, &nodes}) {
    p->Train("embedding", false).Train("layers[0:4]", false).FineTune();
    p->options().sync_each = true;
  }
  plan.options().zero = 3;
  for (const char* module : {"embedding", "layers[0:4]"}) {
    nodes.Home(module, HomeKind::kWeights, "shard(dp)");
  }
  nodes.Shard("layers[4:]", 3).Shard("head", 3);
  EXPECT_EQ(Text(plan), Text(nodes));
}

TEST(FrozenHomesTest, FrozenShardsAreGatheredAndNeverReduced) {
  PlanUnderTest plain = Tuned(4), plan = Tuned(4);
  const ExecutionGraph before = Compiled(plain);
  const double all = Static(before, MemoryKind::kParameters) / 2;
  for (const char* module : {"embedding", "layers.*", "head"}) {
    plan.Home(module, HomeKind::kWeights, "shard(dp)");
  }
  for (const char* adapter : {"qkv.lora_a", "qkv.lora_b", "proj.lora_a", "proj.lora_b"}) {
    plan.Shard(std::string("layers.*.attn.") + adapter, 0);
  }
  const ExecutionGraph graph = Compiled(plan);
  EXPECT_EQ(Static(graph, MemoryKind::kParameters), 2 * ((all - kAdapters) / 4 + kAdapters));
  EXPECT_EQ(Static(graph, MemoryKind::kGradients), Static(before, MemoryKind::kGradients));
  EXPECT_EQ(Static(graph, MemoryKind::kOptimizer), Static(before, MemoryKind::kOptimizer));
  EXPECT_EQ(MovedByKind(graph)[kScatter], 0);
  EXPECT_EQ(MovedByKind(graph)[kReduce], 4 * kAdapters);
  // Twice in each micro-batch, but the embedding, which no gradient reaches.
  const double embedding = 1024 * 64 + 16 * 64;
  EXPECT_LE(MovedByKind(graph)[kGather], 2 * 2 * 2 * (all - kAdapters));
  EXPECT_GE(MovedByKind(graph)[kGather], 2 * 2 * (2 * (all - kAdapters) - embedding));
}

TEST(FrozenHomesTest, AdaptersAloneAreSharded) {
  for (const char* base : {"", "nf4"}) {
    SCOPED_TRACE(base);
    PlanUnderTest plain = Tuned(4, base), plan = Tuned(4, base);
    plan.profile().data_parallel.sharded_master = false;
    for (const char* adapter : {"qkv.lora_a", "qkv.lora_b", "proj.lora_a", "proj.lora_b"}) {
      plan.Shard(std::string("layers.*.attn.") + adapter, 3);
    }
    const ExecutionGraph before = Compiled(plain), graph = Compiled(plan);
    const auto spared = [&](MemoryKind kind) { return Static(before, kind) - Static(graph, kind); };
    EXPECT_EQ(spared(MemoryKind::kParameters), 2 * kAdapters * 3 / 4);
    EXPECT_EQ(spared(MemoryKind::kOptimizer), 12 * kAdapters * 3 / 4);
    auto moved = MovedByKind(graph);
    EXPECT_EQ(moved[kGather], 2 * 2 * 2 * kAdapters);  // 16 bits, whatever the base rests in
    EXPECT_EQ(moved[kScatter], 2 * 4 * kAdapters);
  }
}

TEST(FrozenHomesTest, AdaptersInheritTheHomesOfTheirProduct) {
  PlanUnderTest product = Tuned(4), adapters = Tuned(4);
  product.Home("layers.*.attn.qkv", HomeKind::kState, "shard(dp)");
  adapters.Home("layers.*.attn.qkv.lora_a", HomeKind::kState, "shard(dp)");
  adapters.Home("layers.*.attn.qkv.lora_b", HomeKind::kState, "shard(dp)");
  auto moved = MovedByKind(Compiled(product));
  EXPECT_EQ(moved[kScatter], 4 * 6 * kRank * (64 + 3 * 64));  // in the last micro-batch
  // Of the frozen product nothing is left to say.
  EXPECT_EQ(MovedByKind(Compiled(adapters)), moved);
}

// QLoRA with the base in the host's memory: one device fetches its layers in 4 bits.
TEST(FrozenHomesTest, AFrozenBaseIsFetchedFromTheHost) {
  for (const char* base : {"", "nf4"}) {
    for (const int64_t dp : {1, 4}) {
      SCOPED_TRACE(testing::Message() << base << dp);
      PlanUnderTest plain = Tuned(dp, base), plan = Tuned(dp, base);
      const ExecutionGraph before = Compiled(plain);
      plan.Home("layers.*", HomeKind::kWeights, dp == 1 ? "host" : "shard(dp)+host");
      for (const char* adapter : {"qkv.lora_a", "qkv.lora_b", "proj.lora_a", "proj.lora_b"}) {
        plan.Shard(std::string("layers.*.attn.") + adapter, 0);
      }
      const ExecutionGraph graph = Compiled(plan);
      const auto host = static_cast<double>(graph.programs[0].host_bytes);
      EXPECT_EQ(Static(before, MemoryKind::kParameters) - Static(graph, MemoryKind::kParameters),
                host * static_cast<double>(dp));
      const double layer = 12 * 64 * 64;  // without norms
      const double matrices = *base == 0 ? 2 * 6 * layer : kNf4ElementBytes * 6 * layer;
      EXPECT_NEAR(host * static_cast<double>(dp), matrices, 0.1 * matrices);
      auto moved = MovedByKind(graph);
      // Twice in each of two micro-batches; the first layer's backward pass needs its own, too.
      EXPECT_NEAR(moved[kIn], 2 * 2 * host, 1e-3 * host);
      EXPECT_EQ(moved[kOut], 0);
      EXPECT_EQ(moved[kReduce], dp == 1 ? 0 : 4 * kAdapters);
      EXPECT_EQ(Static(graph, MemoryKind::kOptimizer), 12 * kAdapters);
    }
  }
}

TEST(FrozenHomesTest, WhatFrozenWeightsDoNotHaveIsRefused) {
  for (const auto& [kind, home] : std::map<HomeKind, const char*>{
           {HomeKind::kState, "shard(dp)"}, {HomeKind::kGradients, "shard(dp)"}}) {
    PlanUnderTest plan = Tuned(4);
    plan.Home("head", kind, home);
    EXPECT_THAT(std::string(plan.Compile().status().message()),
                HasSubstr("is the home of nothing: what is frozen has no gradients and no state"));
  }
  PlanUnderTest bucket = Tuned(4);
  (*bucket.tree().Node("head"))->bucket_bytes = 1 << 20;
  EXPECT_THAT(std::string(bucket.Compile().status().message()), HasSubstr("has no effect"));
}

}  // namespace
}  // namespace plancast
