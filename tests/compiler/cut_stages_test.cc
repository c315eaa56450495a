// Stages that begin anywhere: what crosses between them, what they hold, and parameters that
// several of them share.

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "executor/executor.h"
#include "executor/runtime.h"
#include "gmock/gmock.h"
#include "graph/model/builder.h"
#include "graph/model/cut_segments.h"
#include "gtest/gtest.h"
#include "tests/compiler/folded_against_reference.h"
#include "tests/compiler/plan_under_test.h"
#include "tests/testing/seed.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

constexpr int64_t kSeq = 16, kHidden = 32;

ModelBuilder Empty(const std::string& name) {
  ModelBuilder model(name);
  EXPECT_OK(model.AddDim("batch", 0));
  EXPECT_OK(model.AddDim("seq", kSeq));
  EXPECT_OK(model.AddDim("hidden", kHidden));
  return model;
}

const std::vector<std::string>& Dims() {
  static const std::vector<std::string> dims = {"batch", "seq", "hidden"};
  return dims;
}

void Linear(ModuleBuilder& module, const std::string& name, const std::string& x) {
  EXPECT_OK(module.Parameter(name + ".w", {"hidden", "hidden"}));
  EXPECT_OK(module.Call(name, "linear", {x, name + ".w"}, {name + ".y"}));
}

// One module: down1, down2, middle, and back up with what down2 and down1 gave.
ModelGraph UNet() {
  ModelBuilder model = Empty("unet");
  ModuleBuilder net = model.Module("net");
  EXPECT_OK(net.Input("image", DType::kCompute, Dims()));
  Linear(net, "down1", "image");
  Linear(net, "down2", "down1.y");
  Linear(net, "middle", "down2.y");
  Linear(net, "up2", "middle.y");
  EXPECT_OK(net.Call("join2", "residual_add", {"up2.y", "down2.y"}, {"join2.y"}));
  Linear(net, "up1", "join2.y");
  EXPECT_OK(net.Call("join1", "residual_add", {"up1.y", "down1.y"}, {"join1.y"}));
  Linear(net, "out", "join1.y");
  EXPECT_OK(net.OutPort("out.y"));
  EXPECT_OK(model.Append("net", net));
  return *model.Build();
}

// Modules that only multiply, tied as said.
ModelGraph Chain(int modules, const std::vector<std::pair<int, int>>& ties) {
  ModelBuilder model = Empty("chain");
  for (int m = 0; m < modules; ++m) {
    ModuleBuilder module = model.Module("part");
    EXPECT_OK(m == 0 ? module.Input("x", DType::kCompute, Dims()) : module.InPort("x", Dims()));
    EXPECT_OK(module.Parameter("w", {"hidden", "hidden"}));
    EXPECT_OK(module.Call("fc", "linear", {"x", "w"}, {"y"}));
    EXPECT_OK(module.OutPort("y"));
    EXPECT_OK(model.Append("part" + std::to_string(m), module));
  }
  for (const auto& [a, b] : ties) {
    EXPECT_OK(model.Tie("part" + std::to_string(a), "w", "part" + std::to_string(b), "w"));
  }
  return *model.Build();
}

PlanUnderTest Cut(ModelGraph graph, int64_t pp, std::vector<ModelCut> cuts, int64_t vpp = 1) {
  PlanUnderTest plan = PlanUnderTest::Of(std::move(graph));
  PlanOptions& options = plan.options();
  options.pp = pp;
  options.vpp = vpp;
  options.schedule = vpp > 1 ? Schedule::kInterleaved : Schedule::k1f1b;
  options.cuts = std::move(cuts);
  plan.MicroBatches(1, 4);
  return plan;
}

ExecutionGraph Compiled(PlanUnderTest plan) {
  absl::StatusOr<ExecutionGraph> graph = plan.Compile();
  EXPECT_OK(graph);
  return graph.ok() ? *std::move(graph) : ExecutionGraph();
}

// Bytes that a program sends for one micro-batch, by the name of the block.
int64_t Sent(const ExecutionGraph& graph, int program, const std::string& block) {
  for (const Instance& instance : graph.programs[program].instances) {
    const Block& sends = graph.blocks[instance.block];
    if (sends.name == block) return graph.comms[sends.spec[sends.rendezvous_task]].bytes;
  }
  return 0;
}

int64_t Parameters(const ExecutionGraph& graph) {
  int64_t bytes = 0;
  for (const Program& program : graph.programs) {
    bytes += program.static_bytes[static_cast<int>(MemoryKind::kParameters)];
  }
  return bytes;
}

double Flops(const ExecutionGraph& graph) {
  double flops = 0;
  for (const Program& program : graph.programs) {
    for (const Instance& instance : program.instances) {
      const Block& block = graph.blocks[instance.block];
      for (int32_t t = 0; t < block.size(); ++t) {
        if (block.kind[t] == TaskKind::kKernel) {
          flops += graph.kernels[block.spec[t]].flops * instance.layer_count;
        }
      }
    }
  }
  return flops;
}

TEST(CutStagesTest, AStageSendsTheTensorsThatAreAliveBehindItAndTheirGradientsComeBack) {
  // net: down1 down2 middle up2 join2 up1 join1 out
  const ExecutionGraph graph = Compiled(Cut(UNet(), 4, {{0, 0, 2}, {0, 0, 4}, {0, 0, 6}}));
  const int64_t tensor = kSeq * kHidden * 2;  // of one sample, bf16
  // Behind down2: down1, down2. Behind up2: down1, down2, up2. Behind up1: down1, up1.
  EXPECT_EQ(Sent(graph, 0, "send activation"), 2 * tensor);
  EXPECT_EQ(Sent(graph, 1, "send activation"), 3 * tensor);
  EXPECT_EQ(Sent(graph, 2, "send activation"), 2 * tensor);
  EXPECT_EQ(Sent(graph, 3, "send gradient"), 2 * tensor);
  EXPECT_EQ(Sent(graph, 2, "send gradient"), 3 * tensor);
  EXPECT_EQ(Sent(graph, 1, "send gradient"), 2 * tensor);
}

TEST(CutStagesTest, WhatOnlyPassesAStageIsThereFromItsArrivalToItsDeparture) {
  const ExecutionGraph graph = Compiled(Cut(UNet(), 4, {{0, 0, 2}, {0, 0, 4}, {0, 0, 6}}));
  const std::vector<ClassMemory> memory = ReplayMemory(graph, RuntimeParams());
  for (size_t p = 0; p < graph.programs.size(); ++p) {
    EXPECT_EQ(memory[p].allocated, ReferencePeak(graph, static_cast<int32_t>(p)));
    int64_t live = 0;
    for (const Instance& instance : graph.programs[p].instances) {
      for (const MemoryEvent& event : graph.blocks[instance.block].memory) {
        live += event.delta * instance.layer_count;
      }
    }
    EXPECT_EQ(live, 0);
  }
  // down1 enters the second stage, which does not read it, and leaves it: neither block of
  // the stage allocates or frees it.
  for (const Block& block : graph.blocks) {
    if (block.name != "net[middle..up2].F") continue;
    int64_t change = 0;
    for (const MemoryEvent& event : block.memory) change += event.delta;
    // down2 for up2's sum passes too and is kept for the weight gradient; middle.y is kept, up2.y
    // leaves.
    EXPECT_EQ(change, 3 * kSeq * kHidden * 2);
    EXPECT_EQ(block.takes.size(), 2u);
    EXPECT_EQ(block.gives.size(), 3u);
  }
}

TEST(CutStagesTest, CutsChangeNeitherParametersNorWork) {
  Dice dice(static_cast<uint32_t>(TestSeed(7)));
  PlanUnderTest whole = PlanUnderTest::Of(UNet());
  whole.MicroBatches(1, 4);
  const ExecutionGraph one = Compiled(std::move(whole));
  for (int64_t pp : {2, 3, 5, 8}) {
    const ExecutionGraph graph = Compiled(Cut(UNet(), pp, DrawCuts(dice, UNet(), pp - 1)));
    EXPECT_EQ(Parameters(graph), Parameters(one));
    EXPECT_DOUBLE_EQ(Flops(graph), Flops(one));
  }
  TransformerConfig gpt = SmallGpt();
  gpt.layers = 4;
  PlanUnderTest plain = PlanUnderTest::Of(gpt);
  plain.MicroBatches(1, 4);
  const ExecutionGraph model = Compiled(std::move(plain));
  for (int64_t pp : {2, 4, 7}) {
    const ModelGraph graph = PlanUnderTest::Of(gpt).graph();
    const ExecutionGraph cut = Compiled(Cut(graph, pp, DrawCuts(dice, graph, pp - 1)));
    EXPECT_EQ(Parameters(cut), Parameters(model));
    // Kernels of memory alone may be cut apart where they were one.
    EXPECT_NEAR(Flops(cut) / Flops(model), 1, 1e-3);
  }
}

TEST(CutStagesTest, CutsBetweenLayersAreTheLayoutThatSaysTheSame) {
  TransformerConfig gpt = SmallGpt();
  PlanUnderTest dealt = PlanUnderTest::Of(gpt);
  dealt.Pp(4).MicroBatches(1, 4).Tp(2);
  const ExecutionGraph layout = Compiled(std::move(dealt));
  PlanUnderTest plan = Cut(PlanUnderTest::Of(gpt).graph(), 4, {{1, 2, 0}, {1, 4, 0}, {1, 6, 0}});
  const ExecutionGraph cut = Compiled(std::move(plan.Tp(2)));
  EXPECT_EQ(cut.DebugString(), layout.DebugString());
}

// Per rendezvous of tied gradients: kind, bytes and the programs that meet.
struct Meeting {
  std::vector<int> programs;
  CollectiveKind kind;
  int64_t bytes;
  int offset;
};
std::vector<Meeting> TiedMeetings(const ExecutionGraph& graph) {
  std::vector<Meeting> meetings;
  for (const Rendezvous& rendezvous : graph.rendezvous) {
    const auto& first = rendezvous.parties[0];
    const Block& block =
        graph.blocks[graph.programs[first.program].instances[first.instance].block];
    if (block.name != "tied gradient") continue;
    const CommSpec& comm = graph.comms[block.spec[block.rendezvous_task]];
    Meeting meeting{{}, comm.kind, comm.bytes, comm.peer_offset};
    for (const auto& party : rendezvous.parties) meeting.programs.push_back(party.program);
    meetings.push_back(std::move(meeting));
  }
  return meetings;
}

constexpr int64_t kWeight = kHidden * kHidden;

TEST(CutStagesTest, TheStagesThatShareAParameterSwapItsGradient) {
  const std::vector<ModelCut> cuts = {{1, 0, 0}, {2, 0, 0}, {3, 0, 0}};
  const ExecutionGraph graph = Compiled(Cut(Chain(4, {{1, 3}}), 4, cuts));
  const std::vector<Meeting> meetings = TiedMeetings(graph);
  ASSERT_EQ(meetings.size(), 1u);
  EXPECT_THAT(meetings[0].programs, ElementsAre(1, 3));
  EXPECT_EQ(meetings[0].kind, CollectiveKind::kSendRecv);
  EXPECT_EQ(meetings[0].offset, 2);
  EXPECT_EQ(meetings[0].bytes, kWeight * 4);      // fp32
  EXPECT_EQ(Parameters(graph), 4 * kWeight * 2);  // each of the two stages has it
}

TEST(CutStagesTest, UsersOnOneStageAreOneParameter) {
  // Stage 0 has parts 0 and 1, stage 1 parts 2 and 3.
  const ExecutionGraph graph = Compiled(Cut(Chain(4, {{0, 1}}), 2, {{2, 0, 0}}));
  EXPECT_THAT(TiedMeetings(graph), ::testing::IsEmpty());
  EXPECT_EQ(Parameters(graph), 3 * kWeight * 2);
  // With two chunks a stage, parts 0 and 2 are on stage 0.
  const ExecutionGraph chunks =
      Compiled(Cut(Chain(4, {{0, 2}}), 2, {{1, 0, 0}, {2, 0, 0}, {3, 0, 0}}, 2));
  EXPECT_THAT(TiedMeetings(chunks), ::testing::IsEmpty());
  EXPECT_EQ(Parameters(chunks), 3 * kWeight * 2);
}

TEST(CutStagesTest, SeveralTiesMeetEachForItselfAndManyUsersReduceTogether) {
  const std::vector<ModelCut> cuts = {{1, 0, 0}, {2, 0, 0}, {3, 0, 0}};
  const ExecutionGraph two = Compiled(Cut(Chain(4, {{0, 3}, {1, 2}}), 4, cuts));
  std::vector<std::vector<int>> programs;
  for (const Meeting& meeting : TiedMeetings(two)) programs.push_back(meeting.programs);
  EXPECT_THAT(programs, UnorderedElementsAre(ElementsAre(0, 3), ElementsAre(1, 2)));
  const ExecutionGraph all = Compiled(Cut(Chain(4, {{0, 1}, {1, 2}, {0, 3}}), 4, cuts));
  ASSERT_EQ(TiedMeetings(all).size(), 1u);
  EXPECT_EQ(TiedMeetings(all)[0].kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(TiedMeetings(all)[0].programs.size(), 4u);
  // Stages 0, 1 and 3 are not equally far apart: they swap in pairs.
  const ExecutionGraph uneven = Compiled(Cut(Chain(4, {{0, 1}, {0, 3}}), 4, cuts));
  programs.clear();
  for (const Meeting& meeting : TiedMeetings(uneven)) programs.push_back(meeting.programs);
  EXPECT_THAT(programs, ElementsAre(ElementsAre(0, 1), ElementsAre(0, 3), ElementsAre(0, 1)));
}

// Layers that all use one weight, behind a module with one of its own.
TEST(CutStagesTest, LayersOfAListMayShareOneParameter) {
  ModelBuilder model = Empty("repeated");
  ModuleBuilder first = model.Module("first");
  ASSERT_OK(first.Input("x", DType::kCompute, Dims()));
  Linear(first, "fc", "x");
  ASSERT_OK(first.OutPort("fc.y"));
  ModuleBuilder layer = model.Module("layer");
  ASSERT_OK(layer.InPort("x", Dims()));
  Linear(layer, "fc", "x");
  ASSERT_OK(layer.OutPort("fc.y"));
  ASSERT_OK(model.Append("first", first));
  ASSERT_OK(model.Append("layers", layer, 4));
  ModelGraph graph = *model.Build();
  for (int64_t repeat : {1, 2, 3}) graph.tied.push_back({1, 1, 1, 1, 0, repeat});
  ASSERT_OK(graph.Verify());
  EXPECT_EQ(graph.ParameterCount(), 2 * kWeight);
  PlanUnderTest alone = PlanUnderTest::Of(graph);
  EXPECT_EQ(Parameters(Compiled(std::move(alone.MicroBatches(1, 2)))), 2 * kWeight * 2);
  const ExecutionGraph two = Compiled(Cut(graph, 2, {{1, 2, 0}}));
  EXPECT_EQ(Parameters(two), 3 * kWeight * 2);
  ASSERT_EQ(TiedMeetings(two).size(), 1u);
  EXPECT_EQ(TiedMeetings(two)[0].bytes, kWeight * 4);
}

TEST(CutStagesTest, AWeightThatBothSidesOfACutReadIsShared) {
  ModelBuilder model = Empty("twice");
  ModuleBuilder net = model.Module("net");
  ASSERT_OK(net.Input("x", DType::kCompute, Dims()));
  ASSERT_OK(net.Parameter("w", {"hidden", "hidden"}));
  ASSERT_OK(net.Call("a", "linear", {"x", "w"}, {"a.y"}));
  ASSERT_OK(net.Call("b", "linear", {"a.y", "w"}, {"b.y"}));
  ASSERT_OK(net.OutPort("b.y"));
  ASSERT_OK(model.Append("net", net));
  const ExecutionGraph graph = Compiled(Cut(*model.Build(), 2, {{0, 0, 1}}));
  ASSERT_EQ(TiedMeetings(graph).size(), 1u);
  EXPECT_THAT(TiedMeetings(graph)[0].programs, ElementsAre(0, 1));
}

// The first of three stages sums: it gets the second's gradient, swaps with the third, and gives
// the second the sum.
TEST(CutStagesTest, ThreeStagesOnUnlikeMeshesSumAtTheFirst) {
  PlanUnderTest plan = Cut(Chain(3, {{0, 1}, {1, 2}}), 3, {{1, 0, 0}, {2, 0, 0}});
  PlanOptions& options = plan.options();
  options.stages = {StageOptions{2}, StageOptions{4}, StageOptions{1}};
  int64_t first = 0;
  for (StageOptions& stage : options.stages) {
    stage.micro_batch = 4 / stage.dp;
    stage.first_device = first;
    first += stage.devices();
  }
  options.dp = 2, options.micro_batch = 2;
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, CompileWithTimes(plan));
  ASSERT_EQ(graph.reshards.size(), 4u + 4u);  // two borders, both ways
  const auto crossing = [&](size_t r) {
    const std::vector<Reshard::Flow>& flows = graph.reshards[4 + r].ways[0].flows;
    int64_t bytes = 0;
    for (const Reshard::Flow& flow : flows) bytes += flow.bytes;
    const auto stage = [](int64_t device) { return device < 2 ? 0 : device < 6 ? 1 : 2; };
    return std::make_tuple(stage(flows[0].from), stage(flows[0].to), bytes / (4 * kWeight));
  };
  EXPECT_EQ(crossing(0), std::make_tuple(1, 0, 2));
  EXPECT_EQ(crossing(1), std::make_tuple(0, 2, 1));
  EXPECT_EQ(crossing(2), std::make_tuple(2, 0, 2));
  EXPECT_EQ(crossing(3), std::make_tuple(0, 1, 4));
  ASSERT_OK_AND_ASSIGN(const Machine machine, Machine::Create(UnitMachine(1, 8, 8)));
  const CommPricer::RealiseFn realise = RealiseOn(machine, graph);
  const ReferenceLowering reference = LowerReference(graph, machine, UnitCost(), realise);
  const ReferenceTimes times = RunReference(reference, ReferenceHost());
  const auto folded = Simulation::Run(graph, machine, realise);
  ASSERT_OK(folded.status());
  ExpectSame(**folded, reference, times);
}

// A stage that gets a tensor which needs no gradient has none to send back.
TEST(CutStagesTest, NoGradientReturnsThroughAPortThatPassesNoneOn) {
  ModelBuilder model = Empty("loaded");
  ModuleBuilder net = model.Module("net");
  ASSERT_OK(net.Input("x", DType::kCompute, Dims()));
  ASSERT_OK(net.Call("load", "relu", {"x"}, {"load.y"}));
  Linear(net, "fc", "load.y");
  ASSERT_OK(net.OutPort("fc.y"));
  ASSERT_OK(model.Append("net", net));
  const ExecutionGraph graph = Compiled(Cut(*model.Build(), 2, {{0, 0, 1}}));
  EXPECT_EQ(Sent(graph, 0, "send activation"), kSeq * kHidden * 2);
  EXPECT_EQ(Sent(graph, 1, "send gradient"), 0);
  EXPECT_OK(graph.Verify());
}

}  // namespace
}  // namespace plancast
