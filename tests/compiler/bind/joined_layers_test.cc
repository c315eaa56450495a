// Layers that run again together: recompute=uniform:N.

#include "compiler/bind/joined_layers.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/plan_under_test.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;

PlanUnderTest Joining(int64_t layers, int64_t of = 8) {
  TransformerConfig config = SmallGpt();
  config.layers = of;
  PlanUnderTest plan = PlanUnderTest::Of(config);
  plan.Recomputing(Recompute::kFull).options().recompute_joined = layers;
  return plan;
}

// Lengths of the runs of lists, and how many layers a copy of each has.
std::vector<std::pair<int64_t, int>> RunsOf(const BoundModel& bound, size_t stage) {
  std::vector<std::pair<int64_t, int>> runs;
  for (const StageRun& run : bound.stages[stage]) {
    if (!bound.graph.segments[run.segment].in_list()) continue;
    runs.push_back({run.count, bound.bodies[run.bound_body].layers});
  }
  return runs;
}

int64_t Kept(const Block& block) {
  int64_t bytes = 0;
  for (const MemoryEvent& event : block.memory) bytes += event.delta;
  return bytes;
}

// The most that the events of a block add to what was there.
int64_t Peak(const Block& block) {
  int64_t bytes = 0, most = 0;
  for (const MemoryEvent& event : block.memory) most = std::max(most, bytes += event.delta);
  return most;
}

int64_t TasksAgain(const Block& block) {
  return std::count(block.purpose.begin(), block.purpose.end(), Purpose::kRecompute);
}

TEST(JoinBodiesTest, TheOutPortsOfOneAreTheInPortsOfTheNext) {
  const ModelGraph graph = Joining(1).graph();
  const Body& layer = graph.bodies[graph.segments[1].body];
  const Body two = JoinBodies({&layer, &layer});
  EXPECT_EQ(two.name, layer.name + "*2");
  EXPECT_EQ(two.ops.size(), 2 * layer.ops.size());
  EXPECT_EQ(two.tensors.size(), 2 * layer.tensors.size() - layer.in_ports.size());
  EXPECT_EQ(two.in_ports.size(), layer.in_ports.size());
  EXPECT_EQ(two.out_ports.size(), layer.out_ports.size());
  std::set<int> written(two.in_ports.begin(), two.in_ports.end());
  for (const OpNode& op : two.ops) {
    for (const int input : op.inputs) {
      const bool made = two.tensors[input].kind == TensorInfo::Kind::kActivation;
      EXPECT_EQ(written.count(input), made ? 1 : 0) << op.name << " reads " << input;
    }
    written.insert(op.outputs.begin(), op.outputs.end());
  }
}

TEST(JoinBodiesTest, ModelInputsAreOneTensorParametersAreNot) {
  Body body;
  body.name = "masked";
  for (const char* name : {"x", "mask", "w", "y"}) body.tensors.emplace_back().name = name;
  body.tensors[1].kind = TensorInfo::Kind::kInput;
  body.tensors[2].kind = TensorInfo::Kind::kParameter;
  body.ops.emplace_back().inputs = {0, 1, 2};
  body.ops[0].outputs = {3};
  body.in_ports = {0};
  body.out_ports = {3};
  const Body joined = JoinBodies({&body, &body, &body});
  ASSERT_EQ(joined.ops.size(), 3);
  EXPECT_THAT(joined.ops[0].inputs, ElementsAre(0, 1, 2));
  EXPECT_THAT(joined.ops[1].inputs, ElementsAre(3, 1, 4));
  EXPECT_THAT(joined.ops[2].inputs, ElementsAre(5, 1, 6));
  EXPECT_THAT(joined.out_ports, ElementsAre(7));
}

TEST(JoinLayersTest, WhatIsLeftOfAStageIsJoinedToo) {
  PlanUnderTest plan = Joining(3, 10);
  plan.Pp(2);
  ASSERT_OK_AND_ASSIGN(const BoundModel bound, Bind(plan.graph(), plan.tree(), plan.options()));
  using Run = std::pair<int64_t, int>;
  EXPECT_THAT(RunsOf(bound, 0), ElementsAre(Run(1, 3), Run(1, 2)));
  EXPECT_EQ(bound.stages[1].front().layer_begin, 5);
}

TEST(JoinLayersTest, OnlyTheInputOfTheFirstIsKept) {
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph full, Joining(1).Compile());
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph four, Joining(4).Compile());
  EXPECT_EQ(Kept(BlockNamed(four, "layer*4.F")), Kept(BlockNamed(full, "layer.F")));
}

TEST(JoinLayersTest, AllOfThemRunAgainAndTheirActivationsAreThereAtOnce) {
  PlanUnderTest none = Joining(1);
  none.Recomputing(Recompute::kNone);
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph all, none.Compile());
  const int64_t layer = Kept(BlockNamed(all, "layer.F"));
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph full, Joining(1).Compile());
  const Block& one = BlockNamed(full, "layer.B");
  for (const int64_t layers : {2, 4, 8}) {
    ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, Joining(layers).Compile());
    const Block& block = BlockNamed(graph, absl::StrCat("layer*", layers, ".B"));
    EXPECT_EQ(TasksAgain(block), layers * TasksAgain(one));
    EXPECT_EQ(block.size(), layers * one.size());
    EXPECT_EQ(Peak(block) - Peak(one), (layers - 1) * layer);
  }
}

// What is said of an op's communication is said of it in each of them.
TEST(JoinLayersTest, CommunicationIsThatOfEachLayer) {
  const auto ring = [](PlanUnderTest* plan) { plan->Cp(4, "ring_zigzag"); };
  const auto chunks = [](PlanUnderTest* plan) {
    plan->Tp(2).Sp();
    LoopDirective& loop = (*plan->tree().Node("layers.*.mlp.fc2"))->loop;
    loop.communicate = {{"y", "s"}};
    loop.pieces = {{"s", 2}};
  };
  const auto split = [](PlanUnderTest* plan) {
    plan->Tp(2);
    (*plan->tree().Node("layers.*.mlp.fc2"))->rewrites = {*ParseRewrite("split(all_reduce)")};
  };
  for (const std::function<void(PlanUnderTest*)>& with :
       {std::function<void(PlanUnderTest*)>(ring), std::function<void(PlanUnderTest*)>(chunks),
        std::function<void(PlanUnderTest*)>(split)}) {
    PlanUnderTest one = Joining(1), four = Joining(4);
    with(&one);
    with(&four);
    ASSERT_OK_AND_ASSIGN(const ExecutionGraph apart, one.Compile());
    ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, four.Compile());
    for (const char* pass : {".F", ".B"}) {
      const Block &layer = BlockNamed(apart, absl::StrCat("layer", pass)),
                  &all = BlockNamed(graph, absl::StrCat("layer*4", pass));
      EXPECT_EQ(all.size(), 4 * layer.size()) << pass;
      const auto bytes = [](const ExecutionGraph& in, const Block& block) {
        std::map<CollectiveKind, int64_t> by_kind;
        for (int t = 0; t < block.size(); ++t) {
          if (block.kind[t] != TaskKind::kComm) continue;
          const CommSpec& comm = in.comms[block.spec[t]];
          by_kind[comm.kind] += comm.bytes;
        }
        return by_kind;
      };
      std::map<CollectiveKind, int64_t> sent = bytes(apart, layer);
      for (auto& [kind, sum] : sent) sum *= 4;
      EXPECT_EQ(bytes(graph, all), sent) << pass;
    }
  }
}

// Their results are those of the last of them, two where it predicts a token further.
TEST(JoinLayersTest, ALayerIsJoinedWithAModuleBehindTheLayers) {
  TransformerConfig config = SmallGpt();
  config.layers = 3;
  config.mtp_layers = 1;
  PlanUnderTest plan = PlanUnderTest::Of(config);
  plan.Recomputing(Recompute::kFull).options().recompute_joined = 2;
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, plan.Compile());
  plan.options().recompute_joined = 1;
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph apart, plan.Compile());
  const size_t of_both = BlockNamed(apart, "layer.F").size() + BlockNamed(apart, "mtp_1.F").size();
  EXPECT_EQ(BlockNamed(graph, "layer+mtp_1.F").size(), of_both);
}

TEST(JoinLayersTest, OneLayerIsFull) {
  PlanUnderTest full = Joining(1);
  full.options().recompute_joined = PlanOptions().recompute_joined;
  EXPECT_EQ(Joining(1).Compile()->DebugString(), full.Compile()->DebugString());
}

TEST(JoinLayersTest, SlicesKnowTheirLayers) {
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, Joining(4).Compile());
  for (const Instance& instance : graph.programs[0].instances) {
    const Block& block = graph.blocks[instance.block];
    if (block.name != "layer*4.F") continue;
    EXPECT_EQ(instance.layer_count, 2);
    EXPECT_EQ(LayerOf(block, instance, 1), 4);
  }
}

// Where gradients in buckets cut a run of them, each piece begins at a layer of the model.
TEST(JoinLayersTest, PiecesOfARunKnowTheirLayers) {
  PlanUnderTest plan = Joining(2);
  plan.Dp(2).Zero1().options().overlap = {Overlap::kGrad, Overlap::kParam};
  plan.options().bucket_bytes = 1;
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, plan.Compile());
  std::set<int64_t> layers;
  for (const Instance& instance : graph.programs[0].instances) {
    const Block& block = graph.blocks[instance.block];
    if (block.name != "layer*2.F" && block.name != "layer*2.B") continue;
    for (int32_t i = 0; i < instance.layer_count; ++i) layers.insert(LayerOf(block, instance, i));
  }
  EXPECT_THAT(layers, ElementsAre(0, 2, 4, 6));
}

}  // namespace
}  // namespace plancast
