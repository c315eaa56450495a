// Activations that wait on another stage's devices: what goes, when, who holds it, and who waits.

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/graph_workspace.h"
#include "executor/executor.h"
#include "executor/runtime.h"
#include "gmock/gmock.h"
#include "graph/execution/kept_tensors.h"
#include "gtest/gtest.h"
#include "tests/compiler/folded_against_reference.h"
#include "tests/compiler/sharding/home_plans.h"
#include "tests/compiler/small_model.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

constexpr int kActivations = static_cast<int>(MemoryKind::kActivations);

PlanUnderTest Pipeline(int64_t pp, int64_t micro_batches, Schedule schedule = Schedule::k1f1b,
                       int64_t vpp = 1) {
  PlanUnderTest plan = PlanUnderTest::Of(SmallModel(2 * pp * vpp));
  plan.Pp(pp, schedule, vpp).MicroBatches(1, micro_batches);
  return plan;
}

PlanUnderTest& Park(PlanUnderTest& plan, const std::string& node, int64_t stage) {
  return plan.Home(node, HomeKind::kActivations, absl::StrCat("on(pp=", stage, ")"));
}

// Transfers of a program, by their stream: how many, and of how many bytes.
struct Traffic {
  int64_t count = 0, bytes = 0;
  friend bool operator==(const Traffic& a, const Traffic& b) {
    return a.count == b.count && a.bytes == b.bytes;
  }
};
std::map<StreamKind, Traffic> Parked(const ExecutionGraph& graph, size_t program) {
  std::map<StreamKind, Traffic> traffic;
  ForEachTask(graph, program, [&](const Block& block, int32_t t, int64_t times) {
    if (block.stream[t] != StreamKind::kPeerOut && block.stream[t] != StreamKind::kPeerIn) return;
    Traffic& own = traffic[block.stream[t]];
    own.count += times;
    own.bytes += graph.comms[block.spec[t]].bytes * times;
  });
  return traffic;
}

// What a layer keeps of a micro-batch.
int64_t KeptBytes() {
  PlanUnderTest plan = Pipeline(2, 1);
  const ExecutionGraph graph = Compiled(plan);
  for (const Block& block : graph.blocks) {
    if (block.name == "layer.F") return TotalBytes(KeptTensors(block, 0));
  }
  ADD_FAILURE() << "no layer";
  return 0;
}

// --- What goes.

// Stage s of p warms up with w = p - s - 1 micro-batches, and runs two steps for each from then on:
// between the forward and the backward pass of one lie 2 w steps, of the first and the last w.
TEST(ParkingTest, EveryMicroBatchThatWaitsGoesAndComesBack) {
  const int64_t kept = KeptBytes();
  for (const int64_t pp : {3, 4, 6}) {
    for (int64_t stage = 0; stage + 1 < pp; ++stage) {
      PlanUnderTest plan = Pipeline(pp, 8);
      Park(plan, absl::StrCat("layers[", 2 * stage, ":", 2 * stage + 2, "]"), pp - 1);
      if (stage + 2 == pp) {
        EXPECT_THAT(Refused(plan), HasSubstr("has no effect"));
        continue;
      }
      const ExecutionGraph graph = Compiled(plan);
      const int64_t trips =
          stage + 3 == pp ? 8 - 2 : 8;  // three steps for a way out, back, and one
      const Traffic all{trips, trips * 2 * kept};
      for (const int64_t end : {stage, pp - 1}) {
        auto parked = Parked(graph, end);
        EXPECT_EQ(parked[StreamKind::kPeerOut], all) << pp << " " << stage;
        EXPECT_EQ(parked[StreamKind::kPeerIn], all) << pp << " " << stage;
      }
    }
  }
}

TEST(ParkingTest, OnlyTheLayersBelowTheNodeGo) {
  const int64_t kept = KeptBytes();
  PlanUnderTest plan = Pipeline(4, 8);
  Park(plan, "layers[1]", 2);
  const ExecutionGraph graph = Compiled(plan);
  EXPECT_EQ(Parked(graph, 0)[StreamKind::kPeerOut], (Traffic{8, 8 * kept}));
  EXPECT_EQ(Parked(graph, 2)[StreamKind::kPeerIn], (Traffic{8, 8 * kept}));
  EXPECT_TRUE(Parked(graph, 1).empty());
  EXPECT_TRUE(Parked(graph, 3).empty());
}

// --- Who holds it.

// Of what stage 0 has in flight it keeps what one step makes, what is going and what is coming.
TEST(ParkingTest, TheOwnerKeepsLessAndTheHostHoldsTheRest) {
  const int64_t kept = 2 * KeptBytes();
  for (const int64_t pp : {4, 6, 8}) {
    PlanUnderTest plain = Pipeline(pp, 4 * pp), plan = Pipeline(pp, 4 * pp);
    Park(plan, "layers[0:2]", pp - 1);
    const ExecutionGraph before = Compiled(plain), after = Compiled(plan);
    // Two on their way to the host and two on their way back at most.
    EXPECT_GE(ReferencePeak(before, 0) - ReferencePeak(after, 0), (pp - 4) * kept) << pp;
    EXPECT_LT(ReferencePeak(after, 0), ReferencePeak(before, 0)) << pp;
    const int64_t held = after.programs[pp - 1].static_bytes[kActivations];
    EXPECT_LE(held, pp * kept);
    EXPECT_GE(held, (pp - 2) * kept);
    EXPECT_EQ(ReferencePeak(after, static_cast<int32_t>(pp - 1)),
              ReferencePeak(before, static_cast<int32_t>(pp - 1)) + held);
    for (int32_t stage = 1; stage + 1 < pp; ++stage) {
      EXPECT_EQ(ReferencePeak(after, stage), ReferencePeak(before, stage));
    }
  }
}

// --- Who waits.

double Makespan(PlanUnderTest& plan, double bytes_per_s) {
  const absl::StatusOr<ExecutionGraph> compiled = CompileWithTimes(plan);
  EXPECT_OK(compiled.status());
  const ExecutionGraph& graph = *compiled;
  Machine::Spec spec = UnitMachine(1, graph.mesh.num_devices());
  spec.intra_bytes_per_s = bytes_per_s;
  const absl::StatusOr<SimResult> result =
      Execute(graph, *Machine::Create(spec), UnitCost(), RuntimeParams());
  EXPECT_OK(result.status());
  return result.ok() ? static_cast<double>(result->makespan_ps) * 1e-12 : 0;
}

TEST(ParkingTest, FastLinksHideAllAndSlowOnesDoNot) {
  for (const Schedule schedule : {Schedule::k1f1b, Schedule::kGpipe}) {
    PlanUnderTest plain = Pipeline(4, 8, schedule), plan = Pipeline(4, 8, schedule);
    Park(plan, "layers[0:2]", 3);
    EXPECT_NEAR(Makespan(plan, 1e15) / Makespan(plain, 1e15), 1, 1e-6);
    EXPECT_GT(Makespan(plan, 1e3), 2 * Makespan(plain, 1e3));
  }
}

// --- Of many plans.

TEST(ParkingTest, AWorkspaceGivesTheSameGraphs) {
  Session session;
  GraphWorkspace workspace;
  for (const bool parks : {false, true, false, true, true, false}) {
    PlanUnderTest plan = Pipeline(4, 8);
    if (parks) Park(plan, "layers[0:2]", 3);
    ASSERT_OK(workspace.Compile(plan.Request(), session));
    EXPECT_EQ(workspace.graph().DebugString(), Compiled(plan).DebugString());
  }
}

// --- Words.

TEST(ParkingTest, WhatCannotBeIsRefusedInWords) {
  PlanUnderTest two = Pipeline(4, 8);
  Park(Park(two, "layers[0:2]", 3), "layers[2:4]", 3);
  EXPECT_THAT(Refused(two), HasSubstr("stage 3 with activations of stages 0 and 1"));

  PlanUnderTest chain = Pipeline(4, 8);
  Park(Park(chain, "layers[0:2]", 1), "layers[2:4]", 3);
  EXPECT_THAT(Refused(chain), HasSubstr("stage 1 with activations of stage 0 and its own"));

  PlanUnderTest own = Pipeline(4, 8);
  Park(own, "layers[0:2]", 0);
  EXPECT_THAT(Refused(own), HasSubstr("has no effect"));

  PlanUnderTest next = Pipeline(4, 1);
  Park(next, "layers[0:2]", 3);
  EXPECT_THAT(Refused(next), HasSubstr("has no effect"));

  PlanUnderTest part = Pipeline(4, 8);
  Park(part, "layers[0:2].mlp", 3);
  EXPECT_THAT(Refused(part), HasSubstr("with activations in two places"));

  PlanUnderTest placed = Pipeline(4, 8);
  Park(placed.Dp(2), "layers[0:2]", 3).On("head", "dp", "0");
  EXPECT_THAT(Refused(placed), HasSubstr("activations on another stage where nodes are on some"));
}

// --- Folded equals flat.

PlanUnderTest DrawPlan(Dice& dice) {
  const int64_t pp = 3 + dice.Below(4), vpp = dice.Maybe(3) ? 2 : 1;
  const bool interleaved = vpp > 1;
  PlanUnderTest plan = PlanUnderTest::Of(SmallModel(pp * vpp * dice.Of<int64_t>({1, 2})));
  plan.Dp(dice.Of<int64_t>({1, 1, 2})).Tp(dice.Of<int64_t>({1, 1, 2}));
  plan.Split("", "tp", {"heads", "ffn", "vocab"});
  plan.Pp(pp,
          interleaved ? Schedule::kInterleaved
                      : dice.Of<Schedule>({Schedule::k1f1b, Schedule::k1f1b, Schedule::kGpipe}),
          vpp);
  plan.MicroBatches(1, interleaved ? pp * (1 + dice.Below(3)) : 1 + dice.Below(2 * pp));
  plan.Recomputing(dice.Of<Recompute>({Recompute::kNone, Recompute::kSelective, Recompute::kFull}));
  plan.profile().pipeline.p2p_blocking = dice.Maybe(2);
  plan.profile().pipeline.p2p_host_sync = dice.Maybe(2);
  plan.options().zero = dice.Of<int>({0, 0, 1, 2, 3});
  plan.options().sync_each = plan.options().zero >= 2;
  plan.options().bucket_bytes = dice.Of<int64_t>({1, 20'000, int64_t{1} << 40});
  if (dice.Maybe(4)) plan.options().offload.insert(Offload::kOptimizer);
  // Of one or two stages, those of a first chunk.
  const int64_t each = plan.graph().LayerCount() / (pp * vpp);
  for (int64_t nodes = 1 + dice.Below(2); nodes > 0; --nodes) {
    const int64_t owner = dice.Below(pp), first = owner * each + dice.Below(each);
    const int64_t end = first + 1 + dice.Below((owner + 1) * each - first);
    Park(plan, absl::StrCat("layers[", first, ":", end, "]"), dice.Below(pp));
  }
  return plan;
}

class RandomParkingTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Slices, RandomParkingTest, testing::Range(0, 4));

TEST_P(RandomParkingTest, FoldedEqualsFlatBitForBit) {
  constexpr uint32_t kPlans = 300;
  const uint32_t first = 1 + static_cast<uint32_t>(GetParam()) * kPlans;
  std::cout << "seeds " << first << " to " << first + kPlans - 1 << "\n";
  int64_t compared = 0;
  for (uint32_t seed = first; seed < first + kPlans && !HasFailure(); ++seed) {
    Dice dice(seed);
    PlanUnderTest plan = DrawPlan(dice);
    SCOPED_TRACE(testing::Message()
                 << "seed " << seed << ": " << plan.tree().ToJson() << " pp " << plan.options().pp
                 << " vpp " << plan.options().vpp << " " << kScheduleNames[plan.options().schedule]
                 << " micro-batches " << plan.options().micro_batches << " zero "
                 << plan.options().zero << " offload " << plan.options().offload.size()
                 << " blocking " << plan.profile().pipeline.p2p_blocking << " host sync "
                 << plan.profile().pipeline.p2p_host_sync);
    const absl::StatusOr<ExecutionGraph> graph = CompileWithTimes(plan);
    if (!graph.ok()) {
      const std::string words(graph.status().message());
      EXPECT_TRUE(absl::StrContains(words, "has no effect") ||
                  absl::StrContains(words, "with activations of stage") ||
                  absl::StrContains(words, "are equally specific"))
          << words;
      continue;
    }
    ++compared;
    ExpectFoldedEqualsFlat(dice, *graph);
    const std::vector<ClassMemory> memory = ReplayMemory(*graph, RuntimeParams());
    for (size_t p = 0; p < graph->programs.size(); ++p) {
      EXPECT_EQ(memory[p].allocated, ReferencePeak(*graph, static_cast<int32_t>(p)));
      EXPECT_EQ(Left(*graph, graph->programs[p], MemoryKind::kActivations), 0)
          << graph->programs[p].name;
    }
  }
  std::cout << compared << " plans compared\n";
  EXPECT_GT(compared, 60);
}

}  // namespace
}  // namespace plancast
