#include "compiler/bind/layer_zones.h"

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/bind/bind.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/plan_under_test.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// `embedding layers:4 > layers:4 head`, `>` for hand-overs.
std::string TextOf(const ZonedModel& zoned) {
  return absl::StrJoin(zoned.graph.segments, " ", [&](std::string* out, const Segment& s) {
    absl::StrAppend(out, IsHandOver(zoned.graph, s) ? ">"
                         : s.in_list()              ? absl::StrCat(s.path, ":", s.repeat)
                                                    : s.path);
  });
}

std::vector<int> AlikeOf(const ZonedModel& zoned) {
  std::vector<int> alike;
  for (const ZonedModel::Place& place : zoned.places) alike.push_back(place.alike);
  return alike;
}

TEST(LayerZonesTest, ATreeThatTellsNoLayersApartChangesNothing) {
  PlanUnderTest plan = PlanUnderTest::Of(SmallGpt());
  plan.Split("layers.*.attn", "tp", {});
  ASSERT_OK_AND_ASSIGN(const ZonedModel zoned, CutIntoZones(plan.graph(), plan.tree()));
  EXPECT_EQ(zoned.graph.DebugString(), plan.graph().DebugString());
}

TEST(LayerZonesTest, ListsAreCutWhereLayersAreToldOtherwise) {
  PlanUnderTest plan = PlanUnderTest::Of(SmallGpt());
  plan.Split("layers[2:6].attn", "tp", {});
  ASSERT_OK_AND_ASSIGN(const ZonedModel zoned, CutIntoZones(plan.graph(), plan.tree()));
  EXPECT_EQ(TextOf(zoned), "embedding layers:2 > layers:4 > layers:2 head");
  EXPECT_THAT(AlikeOf(zoned), ElementsAre(0, 1, 2, 3, 4, 1, 6));
  EXPECT_EQ(zoned.places[5].first_layer, 6);
  EXPECT_EQ(zoned.places[5].layers, 8);
  EXPECT_EQ(zoned.graph.ParameterCount(), plan.graph().ParameterCount());
}

TEST(LayerZonesTest, LayersThatAreToldTheSameByTwoNodesAreOneZone) {
  PlanUnderTest plan = PlanUnderTest::Of(SmallGpt());
  plan.Split("layers[0:4]", "tp", {"seq"}).Split("layers[4:]", "tp", {"seq"});
  ASSERT_OK_AND_ASSIGN(const ZonedModel zoned, CutIntoZones(plan.graph(), plan.tree()));
  EXPECT_EQ(TextOf(zoned), "embedding layers:8 head");
}

TEST(LayerZonesTest, EveryOtherLayerIsTwoBodies) {
  PlanUnderTest plan = PlanUnderTest::Of(SmallGpt());
  plan.Tp(2).Split("layers[::2]", "tp", {});
  ASSERT_OK_AND_ASSIGN(const BoundModel bound, Bind(plan.graph(), plan.tree(), plan.options()));
  std::set<int> bodies;
  for (const StageRun& run : bound.stages[0]) {
    if (bound.graph.segments[run.segment].in_list()) bodies.insert(run.bound_body);
  }
  EXPECT_EQ(bodies.size(), 2);
}

// Where a stage boundary and a zone boundary are unlike, layers go where they belong.
TEST(LayerZonesTest, ZonesAreDealtToStages) {
  PlanUnderTest plan = PlanUnderTest::Of(SmallGpt());
  plan.Tp(2).Pp(2).Split("layers[3:]", "tp", {});
  ASSERT_OK_AND_ASSIGN(const BoundModel bound, Bind(plan.graph(), plan.tree(), plan.options()));
  std::vector<std::string> runs;
  for (const auto& stage : bound.stages) {
    for (const StageRun& run : stage) {
      if (!bound.graph.segments[run.segment].in_list()) continue;
      runs.push_back(absl::StrCat(run.layer_begin, "+", run.count));
    }
  }
  EXPECT_THAT(runs, ElementsAre("0+3", "3+1", "4+4"));
}

constexpr int64_t kStream = 2 * 512 * 1024;  // bytes of a micro-batch of one

std::vector<std::string> CommsOf(const ExecutionGraph& graph, absl::string_view block) {
  std::vector<std::string> comms;
  const Block& named = BlockNamed(graph, block);
  for (int32_t t = 0; t < named.size(); ++t) {
    if (named.kind[t] == TaskKind::kComm) {
      comms.push_back(CommText(graph, graph.comms[named.spec[t]]));
    }
  }
  return comms;
}

// Four layers cut by heads and columns, then four cut along the sequence alone. The stream
// is whole in the first, in parts in the second: what goes over is free, since every device has
// it, and its gradient is gathered.
TEST(LayerZonesTest, TheRelayoutBetweenZonesIsPricedOnce) {
  PlanUnderTest plan = PlanUnderTest::Of(SmallGpt());
  plan.Tp(4).MicroBatches(1, 1).Split("layers[4:]", "tp", {"seq"});
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, plan.Compile());
  EXPECT_THAT(CommsOf(graph, "relayout.F"), IsEmpty());
  EXPECT_THAT(CommsOf(graph, "relayout.B"), ElementsAre(AllGather("tp", kStream)));
  int64_t hand_overs = 0;
  for (const Instance& instance : graph.programs[0].instances) {
    hand_overs += graph.blocks[instance.block].name == "relayout.B";
  }
  EXPECT_EQ(hand_overs, 1);
}

TEST(LayerZonesTest, ZonesWithOneLayoutHandOverNothing) {
  PlanUnderTest plan = PlanUnderTest::Of(SmallGpt());
  plan.Tp(4).MicroBatches(1, 1).Split("layers[4:].mlp", "tp", {});
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, plan.Compile());
  for (const Block& block : graph.blocks)
    EXPECT_EQ(block.name.rfind("relayout", 0), std::string::npos);
}

// Without tensor parallelism each layer has all of its weights.
TEST(LayerZonesTest, WeightsAreThoseOfEachLayersOwnCut) {
  const auto parameters = [](const char* node) {
    PlanUnderTest plan = PlanUnderTest::Of(SmallGpt());
    plan.Tp(4).MicroBatches(1, 1);
    if (node[0] != '\0') plan.Split(node, "tp", {});
    const auto graph = plan.Compile();
    EXPECT_OK(graph.status());
    return graph.ok() ? graph->programs[0].static_bytes[0] : 0;
  };
  const int64_t none = parameters(""), all = parameters("layers");
  EXPECT_EQ(parameters("layers[0:2]") - none, (all - none) / 4);
  EXPECT_EQ(parameters("layers.5") - none, (all - none) / 8);
  EXPECT_EQ(parameters("layers[-1]") - none, (all - none) / 8);
}

TEST(LayerZonesTest, RecomputationOfSomeLayers) {
  const auto recomputed = [](const char* node) {
    PlanUnderTest plan = PlanUnderTest::Of(SmallGpt());
    plan.MicroBatches(1, 1);
    (*plan.tree().Node(node))->recompute = Recompute::kFull;
    const auto graph = plan.Compile();
    EXPECT_OK(graph.status());
    int64_t layers = 0;
    for (const Instance& instance : graph->programs[0].instances) {
      const Block& block = graph->blocks[instance.block];
      for (const Purpose purpose : block.purpose) {
        if (purpose != Purpose::kRecompute) continue;
        layers += instance.layer_count;
        break;
      }
    }
    return layers;
  };
  EXPECT_EQ(recomputed("layers"), 8);
  EXPECT_EQ(recomputed("layers[0:3]"), 3);
  EXPECT_EQ(recomputed("layers[::2]"), 4);
}

}  // namespace
}  // namespace plancast
