// Several layers as one unit of sharding: what a unit gathers and reduces at once is what its
// layers do one by one, in fewer messages and with more in memory.

#include "compiler/bind/shard_units.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/sharding/home_plans.h"
#include "tests/compiler/small_model.h"
#include "tests/executor/memory/event_replay.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kParameters = static_cast<int>(MemoryKind::kParameters);

PlanUnderTest Sharded(int64_t unit, int64_t layers = 6, int zero = 3) {
  PlanUnderTest plan = PlanUnderTest::Of(SmallModel(layers));
  plan.Dp(4).MicroBatches(1, 2);
  plan.options().zero = zero;
  plan.options().sync_each = true;
  plan.options().unit_layers = unit;
  return plan;
}

PlanUnderTest& Unit(PlanUnderTest& plan, const char* node, int64_t layers) {
  (*plan.tree().Node(node))->unit_layers = layers;
  return plan;
}

// How often the device runs collectives of units of layers, by their labels.
std::map<std::string, int64_t> CollectivesOfLayers(const ExecutionGraph& graph,
                                                   size_t program = 0) {
  std::map<std::string, int64_t> times;
  ForEachTask(graph, program, [&](const Block& block, int32_t t, int64_t count) {
    const std::string label(block.label[t]);
    if (block.kind[t] == TaskKind::kComm && absl::StrContains(label, "layer")) {
      times[label.substr(0, label.find("layer"))] += count;
    }
  });
  return times;
}

int64_t UnitsOf(int64_t layers, int64_t unit) { return (layers + unit - 1) / unit; }

TEST(ShardUnitsTest, OneLayerIsWhatThereIsWithoutAWord) {
  PlanUnderTest none = Sharded(PlanOptions().unit_layers), one = Sharded(1);
  EXPECT_EQ(Compiled(one).DebugString(), Compiled(none).DebugString());
  Unit(one, "layers.*", 1);
  EXPECT_EQ(Compiled(one).DebugString(), Compiled(none).DebugString());
}

TEST(ShardUnitsTest, UnitsMoveTheSameBytesInFewerMessages) {
  for (const int zero : {2, 3}) {
    for (const ShardCut cut :
         {ShardCut::kParameter, ShardCut::kJoined, ShardCut::kUnit, ShardCut::kRows}) {
      PlanUnderTest single = Sharded(1, 6, zero);
      single.profile().data_parallel.shard_cut = cut;
      const ExecutionGraph one = Compiled(single);
      for (const int64_t unit : {2, 3, 4, 6, 100}) {
        SCOPED_TRACE(testing::Message() << "zero " << zero << " unit " << unit);
        PlanUnderTest plan = Sharded(unit, 6, zero);
        plan.profile().data_parallel.shard_cut = cut;
        const ExecutionGraph graph = Compiled(plan);
        EXPECT_EQ(MovedByKind(graph), MovedByKind(one));
        const int64_t units = UnitsOf(6, unit), micro_batches = 2;
        std::map<std::string, int64_t> times = CollectivesOfLayers(graph);
        EXPECT_EQ(times["all_gather "], zero == 3 ? 2 * units * micro_batches : 0);
        EXPECT_EQ(times["reduce_scatter d "], units * micro_batches);
        for (int kind = 0; kind < kNumMemoryKinds; ++kind) {
          EXPECT_EQ(graph.programs[0].static_bytes[kind], one.programs[0].static_bytes[kind]);
        }
      }
    }
  }
}

// A unit that is flattened is padded once.
TEST(ShardUnitsTest, BytesDifferByPaddingAlone) {
  PlanUnderTest single = Sharded(1), three = Sharded(3);
  for (PlanUnderTest* plan : {&single, &three}) {
    plan->Dp(7).profile().data_parallel.shard_cut = ShardCut::kUnit;
  }
  const double one = MovedByKind(Compiled(single))[CollectiveKind::kAllGather];
  const double joined = MovedByKind(Compiled(three))[CollectiveKind::kAllGather];
  EXPECT_LT(joined, one);
  EXPECT_LE(one - joined, 2.0 * 2 * 2 * 6 * 7);  // 2 B, both passes of two micro-batches, 6 layers
}

TEST(ShardUnitsTest, OneMoreUnitThanThePrefetchIsGathered) {
  const auto parameters = [](int64_t layers) {
    PlanUnderTest plan = PlanUnderTest::Of(SmallModel(layers));
    return Compiled(plan).programs[0].static_bytes[kParameters] / 2;
  };
  const int64_t layer = (parameters(12) - parameters(6)) / 6, root = parameters(12) - 12 * layer;
  for (const int64_t unit : {1, 2, 3}) {
    for (const int64_t prefetch : {0, 1, 2}) {
      PlanUnderTest plan = Sharded(unit, 12);
      plan.options().prefetch = prefetch;
      plan.profile().data_parallel.shard_cut = ShardCut::kUnit;
      plan.profile().data_parallel.root_unit = true;
      const ExecutionGraph graph = Compiled(plan);
      int64_t most = 0;
      for (const ReplayedEvent& event : ReplayEvents(graph, 0)) {
        most = std::max(most, event.live.of[kParameters]);
      }
      EXPECT_EQ(most, graph.programs[0].static_bytes[kParameters] +
                          2 * (root + (prefetch + 1) * unit * layer));
    }
  }
}

TEST(ShardUnitsTest, ANodeOfAllLayersSaysWhatThePlanDoes) {
  PlanUnderTest plan = Sharded(3), node = Sharded(1), other = Sharded(2);
  Unit(node, "layers.*", 3);
  EXPECT_EQ(Compiled(node).DebugString(), Compiled(plan).DebugString());
  Unit(other, "layers", 1);
  Unit(other, "layers.*", 3);
  EXPECT_THAT(Refused(other), HasSubstr("unit=2 has no effect: nodes say otherwise"));
}

TEST(ShardUnitsTest, UnitsAreUnlike) {
  PlanUnderTest plan = Sharded(2, 8);
  Unit(plan, "layers[0:4]", 4);
  const ExecutionGraph graph = Compiled(plan);
  EXPECT_EQ(CollectivesOfLayers(graph)["reduce_scatter d "], 2 * 3);
  std::vector<std::string> forward;
  for (const Instance& instance : graph.programs[0].instances) {
    const Block& block = graph.blocks[instance.block];
    if (instance.micro_batch != 0 || !absl::EndsWith(block.name, ".F")) continue;
    for (int32_t i = 0; i < instance.layer_count; ++i) {
      if (!absl::StartsWith(block.name, "layer")) continue;
      forward.push_back(absl::StrCat(block.name, " ", LayerOf(block, instance, i)));
    }
  }
  EXPECT_THAT(forward, ElementsAre("layer*4.F 0", "layer*2.F 4", "layer*2.F 6"));
}

// Dense layers and those with experts are in one unit.
TEST(ShardUnitsTest, LayersOfAUnitMayBeUnlike) {
  TransformerConfig config = SmallModel();
  config.experts.count = 4;
  config.experts.topk = 2;
  config.experts.ffn = 64;
  config.experts.every = 2;
  for (const int64_t unit : {2, 3, 4}) {
    PlanUnderTest single = PlanUnderTest::Of(config), plan = PlanUnderTest::Of(config);
    for (PlanUnderTest* p : {&single, &plan}) {
      p->Dp(4).options().zero = 3;
      p->options().sync_each = true;
    }
    plan.options().unit_layers = unit;
    const ExecutionGraph one = Compiled(single), joined = Compiled(plan);
    EXPECT_EQ(MovedByKind(joined), MovedByKind(one));
    int64_t scatters = 0, before = 0;
    ForEachTask(joined, 0, [&](const Block& block, int32_t t, int64_t count) {
      scatters += block.label[t].find("reduce_scatter d") == 0 ? count : 0;
    });
    ForEachTask(one, 0, [&](const Block& block, int32_t t, int64_t count) {
      before += block.label[t].find("reduce_scatter d") == 0 ? count : 0;
    });
    EXPECT_EQ(before - scatters, 6 - UnitsOf(6, unit));
  }
}

// The layers after a node's begin a unit, and so do two nodes that say the same.
TEST(ShardUnitsTest, UnitsBeginAnewWithAnotherWord) {
  PlanUnderTest plan = Sharded(2);
  Unit(plan, "layers[0:3]", 2);
  EXPECT_EQ(CollectivesOfLayers(Compiled(plan))["reduce_scatter d "], 2 * 4);
  PlanUnderTest nodes = Sharded(1);
  Unit(Unit(nodes, "layers[0:3]", 3), "layers[3:6]", 3);
  EXPECT_EQ(CollectivesOfLayers(Compiled(nodes))["reduce_scatter d "], 2 * 2);
}

TEST(ShardUnitsTest, UnitsEndWithTheirStage) {
  for (const int64_t vpp : {1, 2}) {
    PlanUnderTest plan = Sharded(2, 12);
    plan.Pp(2, vpp == 1 ? Schedule::k1f1b : Schedule::kInterleaved, vpp);
    const ExecutionGraph graph = Compiled(plan);
    for (size_t stage = 0; stage < 2; ++stage) {
      const int64_t units = vpp * UnitsOf(6 / vpp, 2);
      EXPECT_EQ(CollectivesOfLayers(graph, stage)["reduce_scatter d "], 2 * units);
    }
  }
}

// --- Beside what else is said of layers.

TEST(ShardUnitsTest, PartsOfLayersAreGatheredTogetherAndTheRestIsInBuckets) {
  PlanUnderTest single = Sharded(1, 6, 1), plan = Sharded(3, 6, 1);
  for (PlanUnderTest* p : {&single, &plan})
    p->Home("layers.*.mlp", HomeKind::kWeights, "shard(dp)");
  const ExecutionGraph one = Compiled(single), joined = Compiled(plan);
  EXPECT_EQ(MovedByKind(joined), MovedByKind(one));
  EXPECT_EQ(CollectivesOfLayers(one)["reduce_scatter d "], 2 * 6);
  EXPECT_EQ(CollectivesOfLayers(joined)["reduce_scatter d "], 2 * 2);
  for (int kind = 0; kind < kNumMemoryKinds; ++kind) {
    EXPECT_EQ(joined.programs[0].static_bytes[kind], one.programs[0].static_bytes[kind]);
  }
}

// Layers that are whole stay as they are, those on the host are fetched by units.
TEST(ShardUnitsTest, OnlyWhatGoesUnitByUnitIsJoined) {
  for (const char* home : {"replicate", "host"}) {
    PlanUnderTest single = Sharded(1), plan = Sharded(2);
    for (PlanUnderTest* p : {&single, &plan}) Homes(*p, "layers[0:2]", home, 3);
    const ExecutionGraph one = Compiled(single), joined = Compiled(plan);
    EXPECT_EQ(MovedByKind(joined), MovedByKind(one)) << home;
    const auto runs = [](const ExecutionGraph& graph) {
      int64_t layers = 0;
      for (const Instance& instance : graph.programs[0].instances) {
        const Block& block = graph.blocks[instance.block];
        if (instance.micro_batch == 0 && block.name == "layer.F") layers += instance.layer_count;
      }
      return layers;
    };
    EXPECT_EQ(runs(one), 6);
    EXPECT_EQ(runs(joined), home == std::string("host") ? 0 : 2);
  }
}

TEST(ShardUnitsTest, LayersOfAUnitRunAgainOneByOne) {
  const auto peak = [](const ExecutionGraph& graph) {
    int64_t most = 0;
    for (const ReplayedEvent& event : ReplayEvents(graph, 0)) {
      most = std::max(most, event.live.of[static_cast<int>(MemoryKind::kActivations)]);
    }
    return most;
  };
  PlanUnderTest single = Sharded(1), plan = Sharded(3), uniform = Sharded(3);
  for (PlanUnderTest* p : {&single, &plan, &uniform}) p->Recomputing(Recompute::kFull);
  uniform.options().recompute_joined = 3;
  const ExecutionGraph together = Compiled(uniform), joined = Compiled(plan);
  EXPECT_EQ(peak(joined), peak(Compiled(single)));
  EXPECT_EQ(MovedByKind(together), MovedByKind(joined));
  // One input is kept of three layers, or of each.
  const auto kept = [](const Block& block) {
    int64_t bytes = 0;
    for (const MemoryEvent& event : block.memory) {
      if (event.kind == MemoryKind::kActivations) bytes += event.delta;
    }
    return bytes;
  };
  const int64_t input = kept(BlockNamed(together, "layer*3.F"));
  EXPECT_EQ(kept(BlockNamed(joined, "layer*3.F")), 3 * input);
}

// Layers that run again together keep their homes, by units or in buckets.
TEST(ShardUnitsTest, HomesOfNodesAreThoseOfJoinedLayersToo) {
  for (const int zero : {1, 3}) {
    const int64_t unit = zero == 3 ? 2 : 1;
    PlanUnderTest full = Sharded(unit, 6, 0), uniform = Sharded(unit, 6, 0);
    for (PlanUnderTest* p : {&full, &uniform}) {
      p->Recomputing(Recompute::kFull).Shard("layers[0:2]", zero).Shard("layers.*.mlp", zero);
    }
    uniform.options().recompute_joined = 2;
    const ExecutionGraph one = Compiled(full), joined = Compiled(uniform);
    EXPECT_EQ(MovedByKind(joined), MovedByKind(one)) << zero;
    for (int kind = 0; kind < kNumMemoryKinds; ++kind) {
      EXPECT_EQ(joined.programs[0].static_bytes[kind], one.programs[0].static_bytes[kind]);
    }
  }
}

TEST(ShardUnitsTest, WithoutRanksThereIsNothingToJoin) {
  PlanUnderTest one = Sharded(1), two = Sharded(2);
  EXPECT_EQ(Compiled(two.Dp(1)).DebugString(), Compiled(one.Dp(1)).DebugString());
}

// What one session remembers of a plan is not taken for another with other units.
TEST(ShardUnitsTest, PlansOfOneSessionAreThoseOfTheirOwn) {
  Session session;
  for (const int64_t unit : {1, 2, 3}) {
    for (const int zero : {1, 2, 3}) {
      for (const int64_t dp : {1, 2, 4}) {
        for (const int64_t pp : {1, 2}) {
          PlanUnderTest plan = Sharded(zero == 1 ? 1 : unit, 6, zero);
          plan.Dp(dp).Pp(pp, pp == 1 ? Schedule::kNone : Schedule::k1f1b);
          if (zero == 2 && dp > 1) Unit(plan, "layers[0:3]", unit == 1 ? 3 : 1);
          CompileRequest request = plan.Request();
          request.graph_key = "six layers";
          ASSERT_OK_AND_ASSIGN(const ExecutionGraph shared, Compile(request, session));
          Session alone;
          ASSERT_OK_AND_ASSIGN(const ExecutionGraph own, Compile(request, alone));
          ASSERT_EQ(shared.DebugString(), own.DebugString()) << unit << " " << zero << " " << dp;
        }
      }
    }
  }
}

// --- Bad input.

TEST(ShardUnitsTest, WhatHasNoEffectIsRefused) {
  PlanUnderTest whole = Sharded(2, 6, 1);
  EXPECT_THAT(Refused(whole), HasSubstr("unit=2 has no effect: no weights or gradients there are "
                                        "sharded"));
  PlanUnderTest head = Sharded(1);
  EXPECT_THAT(Refused(Unit(head, "head", 2)),
              HasSubstr("`head`: `unit: 2` has no effect: it is said of no whole layers"));
  PlanUnderTest part = Sharded(1);
  EXPECT_THAT(Refused(Unit(part, "layers.*.mlp", 2)), HasSubstr("Say it at `layers.*`."));
  PlanUnderTest kept = Sharded(1);
  Homes(kept, "layers[0:4]", "replicate", 3);
  EXPECT_THAT(Refused(Unit(kept, "layers[0:2]", 2)),
              HasSubstr("`layers[0:2]`: `unit: 2` has no effect: no weights or gradients"));
  for (const char* apart : {"layers.3", "layers[::2]"}) {
    PlanUnderTest plan = Sharded(1);
    EXPECT_THAT(Refused(Unit(plan, apart, 2)),
                HasSubstr("no two neighbouring layers there are told the same"));
  }
}

TEST(ShardUnitsTest, WhatCannotBeHadIsRefused) {
  PlanUnderTest offload = Sharded(2);
  offload.options().offload = {Offload::kActivations};
  EXPECT_THAT(Refused(offload),
              HasSubstr("units of 2 layers of `layers` with offload=activations"));
  PlanUnderTest host = Sharded(2);
  host.Home("layers.*", HomeKind::kActivations, "host");
  EXPECT_THAT(Refused(host), HasSubstr("units of 2 layers of `layers` with `activations: host`"));
  PlanUnderTest uniform = Sharded(1);
  uniform.Recomputing(Recompute::kFull).options().recompute_joined = 2;
  EXPECT_THAT(Refused(Unit(uniform, "layers.*", 2)), HasSubstr("Say unit=2 in the plan"));
  ModelGraph graph = PlanUnderTest::Of(SmallModel()).graph();
  const std::vector<TensorInfo>& tensors = graph.bodies[graph.segments[1].body].tensors;
  const auto weight = static_cast<int>(
      std::find_if(tensors.begin(), tensors.end(),
                   [](const TensorInfo& t) { return t.kind == TensorInfo::Kind::kParameter; }) -
      tensors.begin());
  graph.tied.push_back({1, weight, 1, weight, 0, 3});
  PlanUnderTest tied = PlanUnderTest::Of(graph);
  tied.Dp(4).options().zero = 3;
  tied.options().unit_layers = 2;
  EXPECT_THAT(Refused(tied), HasSubstr("layers of `layers` share parameters"));
}

}  // namespace
}  // namespace plancast
