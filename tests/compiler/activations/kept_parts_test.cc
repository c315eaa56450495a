// Activations shared out over ranks that have the same: what is kept, gathered and given up.

#include <cstdint>
#include <utility>
#include <vector>

#include "compiler/activations/kept_parts.h"
#include "gmock/gmock.h"
#include "graph/execution/kept_tensors.h"
#include "gtest/gtest.h"
#include "tests/compiler/folded_against_reference.h"
#include "tests/compiler/sharding/home_plans.h"
#include "tests/compiler/small_model.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kLayers = 6;
constexpr int64_t kInput = 2 * 16 * 64;  // of a layer: 16 positions of 64 in 16 bits

PlanUnderTest Small(int64_t tp, Recompute recompute = Recompute::kFull) {
  PlanUnderTest plan = PlanUnderTest::Of(SmallModel(kLayers));
  plan.Tp(tp).MicroBatches(1, 2).Recomputing(recompute);
  return plan;
}

PlanUnderTest& Sharing(PlanUnderTest& plan, const char* home = "shard(tp)") {
  return plan.Home("layers.*", HomeKind::kActivations, home);
}

int64_t KeptByALayer(const ExecutionGraph& graph) {
  for (const Instance& instance : graph.programs[0].instances) {
    const Block& block = graph.blocks[instance.block];
    if (block.name == "layer.F") return TotalBytes(KeptTensors(block, 0));
  }
  ADD_FAILURE() << "no layer";
  return 0;
}

// Bytes of communications on a device.
int64_t Sent(const ExecutionGraph& graph, StreamKind stream, CollectiveKind kind) {
  int64_t bytes = 0;
  ForEachTask(graph, 0, [&](const Block& block, int32_t t, int64_t times) {
    if (block.kind[t] != TaskKind::kComm || block.stream[t] != stream) return;
    const CommSpec& comm = graph.comms[block.spec[t]];
    if (comm.kind == kind) bytes += comm.bytes * times;
  });
  return bytes;
}
// Of gathers of activations.
int64_t Gathered(const ExecutionGraph& graph) {
  return Sent(graph, StreamKind::kModelComm, CollectiveKind::kAllGather);
}

// Under full recomputation a layer keeps its input, whole on all ranks of tp: 1/n of it with the
// home, which is gathered once for each layer and micro-batch.
TEST(KeptPartsTest, ARankKeepsItsPartAndGathersTheRest) {
  for (const int64_t tp : {2, 4}) {
    for (const int zero : {0, 1, 2, 3}) {
      PlanUnderTest plain = Small(tp), plan = Small(tp);
      for (PlanUnderTest* p : {&plain, &plan}) {
        p->Dp(2).options().zero = zero;
        p->options().sync_each = zero >= 2;
      }
      const ExecutionGraph before = Compiled(plain), after = Compiled(Sharing(plan));
      EXPECT_OK(after.Verify());
      EXPECT_EQ(KeptByALayer(before), kInput);
      EXPECT_EQ(KeptByALayer(after), kInput / tp);
      EXPECT_EQ(Gathered(after) - Gathered(before), 2 * kLayers * kInput) << tp << zero;
      EXPECT_EQ(Left(after, after.programs[0], MemoryKind::kActivations), 0);
      EXPECT_LT(ReferencePeak(after, 0), ReferencePeak(before, 0));
    }
  }
}

// DeepSpeed's partition_activations with cpu_checkpointing: the part goes to the host and comes
// back, and the rest is gathered behind that.
TEST(KeptPartsTest, PartsGoToTheHost) {
  for (const int64_t tp : {2, 4}) {
    PlanUnderTest plain = Small(tp), parts = Small(tp), there = Small(tp);
    there.profile().tensors.offload_least_bytes = 0;
    const ExecutionGraph before = Compiled(plain), here = Compiled(Sharing(parts)),
                         after = Compiled(Sharing(there, "shard(tp)+host"));
    EXPECT_OK(after.Verify());
    EXPECT_EQ(Gathered(after), Gathered(here));
    const int64_t copied = 2 * kLayers * kInput / tp;
    EXPECT_EQ(Sent(after, StreamKind::kCopyOut, CollectiveKind::kCopyToHost), copied);
    EXPECT_EQ(Sent(after, StreamKind::kCopyIn, CollectiveKind::kCopyToDevice), copied);
    EXPECT_EQ(Left(after, after.programs[0], MemoryKind::kActivations), 0);
    EXPECT_LT(ReferencePeak(after, 0), ReferencePeak(here, 0));
  }
}

TEST(KeptPartsTest, WhatTpCutsStaysAsItIs) {
  PlanUnderTest plain = Small(4, Recompute::kNone), plan = Small(4, Recompute::kNone);
  const ExecutionGraph before = Compiled(plain), after = Compiled(Sharing(plan));
  const int64_t saved = KeptByALayer(before) - KeptByALayer(after);
  EXPECT_GT(saved, 0);
  EXPECT_EQ(Gathered(after) - Gathered(before), 2 * kLayers * saved * 4 / 3);  // whole: 4/3 of it
}

TEST(KeptPartsTest, FoldedEqualsFlatAndPipelinesLeaveNothing) {
  Dice dice(1);
  for (const int64_t micro_batches : {1, 4, 9}) {
    for (const Schedule schedule : {Schedule::k1f1b, Schedule::kGpipe}) {
      PlanUnderTest plan = Small(2, dice.Maybe(2) ? Recompute::kFull : Recompute::kNone);
      plan.Pp(3, schedule).MicroBatches(1, micro_batches).Dp(dice.Of<int64_t>({1, 2}));
      plan.Home("layers[1:5]", HomeKind::kActivations,
                dice.Maybe(2) ? "shard(tp)" : "shard(tp)+host");
      if (dice.Maybe(2)) plan.Home("layers[5]", HomeKind::kActivations, "host");
      const absl::StatusOr<ExecutionGraph> graph = CompileWithTimes(plan);
      ASSERT_OK(graph.status());
      ExpectFoldedEqualsFlat(dice, *graph);
      for (const Program& program : graph->programs) {
        EXPECT_EQ(Left(*graph, program, MemoryKind::kActivations), 0);
      }
    }
  }
}

// A part of a tensor, or a sum that becomes it, has its name too; what goes is what is kept.
TEST(KeptPartsTest, OtherTensorsOfTheNameStay) {
  BlockBuilder builder("layer.F");
  const int task = builder.AddKernel(KernelSpec(), Purpose::kForward, "op", {});
  const uint16_t part = builder.AddTensor("x"), whole = builder.AddTensor("x");
  builder.AddMemory(task, /*after=*/false, MemoryKind::kActivations, part, 48);
  builder.AddMemory(task, /*after=*/false, MemoryKind::kActivations, whole, 96);
  builder.AddMemory(task, /*after=*/true, MemoryKind::kActivations, part, -48);
  const DeviceMesh mesh = *DeviceMesh::Create({{"tp", 2}});
  const BlockTemplate keeps = KeepingParts(std::move(builder).Build(), {{"x", 96, {0}}}, mesh);
  const std::vector<KeptTensor> kept = KeptTensors(keeps.block, 0);
  ASSERT_EQ(kept.size(), 1);
  EXPECT_EQ(kept[0].name, "x part");
  EXPECT_EQ(kept[0].bytes, 48);
}

TEST(KeptPartsTest, WhereNothingIsTheSameItIsRefused) {
  PlanUnderTest sequence = Small(2);
  EXPECT_THAT(Refused(Sharing(sequence.Sp())),
              HasSubstr("`activations: shard(tp)` has no effect: nothing below is kept for a "
                        "backward pass whole on several ranks of it"));
  PlanUnderTest data = Small(2);
  EXPECT_THAT(Refused(Sharing(data.Dp(2), "shard(dp)")), HasSubstr("has no effect"));
  PlanUnderTest one = Small(1);
  EXPECT_THAT(Refused(Sharing(one)), HasSubstr("has no effect"));
}

}  // namespace
}  // namespace plancast
