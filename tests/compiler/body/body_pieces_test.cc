// Nodes in pieces: closed forms of kernels, communication and memory.

#include "compiler/body/body_pieces.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "executor/executor.h"
#include "gtest/gtest.h"
#include "tests/compiler/compiled_graph.h"
#include "tests/compiler/plan_under_test.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

constexpr int64_t kSeq = 512, kVocab = 4096, kSamples = 8;

PlanUnderTest Plan() {
  PlanUnderTest plan = PlanUnderTest::Of(SmallLlama());
  plan.MicroBatches(kSamples, 2);
  return plan;
}

PlanUnderTest InPieces(const std::string& path, int64_t pieces, std::vector<int64_t> ongoing = {}) {
  PlanUnderTest plan = Plan();
  (*plan.tree().Node(path))->pieces = {pieces, std::move(ongoing)};
  return plan;
}

double Flops(const ExecutionGraph& graph) {
  double sum = 0;
  for (const Instance& instance : graph.programs[0].instances) {
    const Block& block = graph.blocks[instance.block];
    for (int t = 0; t < block.size(); ++t) {
      if (block.kind[t] != TaskKind::kKernel) continue;
      const KernelSpec& kernel = graph.kernels[block.spec[t]];
      if (kernel.family != KernelFamily::kMemory) sum += kernel.flops * instance.layer_count;
    }
  }
  return sum;
}

int64_t Peak(const ExecutionGraph& graph) {
  return ReplayMemory(graph, RuntimeParams())[0].allocated;
}

TEST(PiecesTest, OnePieceIsTheSameGraph) {
  const std::string whole = Compiled(Plan()).DebugString();
  EXPECT_EQ(Compiled(InPieces("head", 1)).DebugString(), whole);
  EXPECT_EQ(Compiled(InPieces("layers.*.mlp", 1, {1})).DebugString(), whole);
}

TEST(PiecesTest, TheHeadRunsPieceByPiece) {
  const ExecutionGraph graph = Compiled(InPieces("head.logits", 4));
  const std::vector<KernelSpec> forward = KernelsLabelled(graph, "head.F", "logits");
  ASSERT_EQ(forward.size(), 4);
  for (const KernelSpec& kernel : forward) EXPECT_EQ(kernel.m, kSamples / 4 * kSeq);
  const std::vector<KernelSpec> weights = KernelsLabelled(graph, "head.B", "logits.wgrad");
  ASSERT_EQ(weights.size(), 4);
  for (const KernelSpec& kernel : weights) EXPECT_EQ(kernel.k, kSamples / 4 * kSeq);
  EXPECT_EQ(Flops(graph), Flops(Compiled(Plan())));
}

TEST(PiecesTest, MorePiecesThanSamplesCutTheSequence) {
  const ExecutionGraph graph = Compiled(InPieces("head", 16));
  for (const KernelSpec& kernel : KernelsLabelled(graph, "head.F", "logits")) {
    EXPECT_EQ(kernel.m, kSamples * kSeq / 16);
  }
  EXPECT_EQ(Flops(graph), Flops(Compiled(Plan())));
}

// Whether a task needs another, through any others of its block.
bool Needs(const Block& block, int32_t task, int32_t other) {
  if (task == other) return true;
  for (int32_t d = block.dep_begin[task]; d < block.dep_begin[task + 1]; ++d) {
    if (block.deps[d] >= other && Needs(block, block.deps[d], other)) return true;
  }
  return false;
}

PlanUnderTest LayersInPieces(int64_t unit, int64_t pieces) {
  PlanUnderTest plan = InPieces("layers.*", pieces);
  if (unit > 1) (*plan.tree().Node("layers.*"))->unit_layers = unit;
  return plan;
}

// Piece 0 through all layers of a unit, then piece 1.
TEST(PiecesTest, EachPieceRunsThroughAUnitOfLayers) {
  const ExecutionGraph graph = Compiled(LayersInPieces(2, 2));
  const Block* unit = nullptr;
  for (const Block& block : graph.blocks) {
    if (block.layers == 2 && block.name.back() == 'F') unit = &block;
  }
  ASSERT_NE(unit, nullptr);
  std::vector<int32_t> first, last;  // of each layer and piece, in their order
  for (int32_t t = 0; t < unit->size(); ++t) {
    if (unit->label[t] == "attn.qkv") first.push_back(t);
    if (unit->label[t] == "mlp.fc2") last.push_back(t);
  }
  ASSERT_EQ(first.size(), 4);
  ASSERT_EQ(last.size(), 4);
  EXPECT_TRUE(Needs(*unit, first[1], last[0]));
  EXPECT_FALSE(Needs(*unit, first[2], last[0]));
  EXPECT_TRUE(Needs(*unit, first[3], last[2]));
  EXPECT_EQ(Flops(graph), Flops(Compiled(Plan())));
  // Between the layers of a unit only a piece is there, layer by layer all of it.
  const auto again = [](PlanUnderTest plan) {
    plan.options().recompute = Recompute::kFull;
    return Peak(Compiled(std::move(plan)));
  };
  EXPECT_LE(again(LayersInPieces(2, 2)), again(LayersInPieces(1, 2)));
}

TEST(PiecesTest, PiecesTakeTurnsAtTheEnd) {
  const ExecutionGraph graph = Compiled(InPieces("head", 4, {1}));
  const Block& block = BlockNamed(graph, "head.B");
  std::string order;
  for (int t = 0; t < block.size(); ++t) {
    if (block.label[t] == "logits") order += "F";
    if (block.label[t] == "logits.bwd") order += "B";
  }
  EXPECT_EQ(order, "FBFBFBFB");
  EXPECT_TRUE(KernelsLabelled(graph, "head.F", "logits").empty());
  EXPECT_EQ(Flops(graph), Flops(Compiled(Plan())));
}

TEST(PiecesTest, TwoAtOnce) {
  const ExecutionGraph graph = Compiled(InPieces("head", 4, {2}));
  const Block& block = BlockNamed(graph, "head.B");
  std::string order;
  for (int t = 0; t < block.size(); ++t) {
    if (block.label[t] == "logits") order += "F";
    if (block.label[t] == "logits.bwd") order += "B";
  }
  EXPECT_EQ(order, "FFBFBFBB");
}

// Logits and their gradient, in 16 bits, are there for one piece in place of all.
TEST(PiecesTest, OnlyLogitsOfOnePieceAreThere) {
  const int64_t whole = Peak(Compiled(Plan()));
  const int64_t logits = kSamples * kSeq * kVocab * 2;
  for (const int64_t pieces : {2, 4, 8, 32}) {
    const int64_t turns = Peak(Compiled(InPieces("head", pieces, {1})));
    EXPECT_LT(turns, whole - logits * (pieces - 1) / pieces);
  }
  EXPECT_EQ(Peak(Compiled(InPieces("head", 4, {4}))), Peak(Compiled(InPieces("head", 4))));
}

TEST(PiecesTest, CollectivesAreCutWithTheRest) {
  PlanUnderTest plan = InPieces("layers.*.mlp", 2);
  const Moves moves = plan.Tp(2).Traffic();
  const int64_t stream = kSamples * kSeq * 1024 * 2;
  const auto halves =
      std::count(moves.forward.begin(), moves.forward.end(), AllReduce("tp", stream / 2));
  EXPECT_EQ(halves, 2);
}

TEST(PiecesTest, PiecesOfPieces) {
  PlanUnderTest plan = InPieces("layers.*", 2);
  (*plan.tree().Node("layers.*.mlp"))->pieces = {2, {}};
  const ExecutionGraph graph = Compiled(std::move(plan));
  const std::vector<KernelSpec> wide = KernelsLabelled(graph, "layer.F", "mlp.fc1");
  EXPECT_EQ(wide.size(), 4);
  for (const KernelSpec& kernel : wide) EXPECT_EQ(kernel.m, kSamples / 4 * kSeq);
  EXPECT_EQ(Flops(graph), Flops(Compiled(Plan())));
}

TEST(PiecesTest, RefusesInWords) {
  const auto status = [](PlanUnderTest plan) {
    return std::string(plan.Compile().status().message());
  };
  EXPECT_EQ(
      status(InPieces("layers.*.mlp", 3)),
      "`layers.*.mlp`: `micro_batches: 3`: does not divide what a device has of a micro-batch "
      "there, 8 samples and 512 positions of the sequence. Give a number that divides one of "
      "them.");
  EXPECT_EQ(status(InPieces("layers.*.mlp", 2, {1})),
            "`layers.*.mlp`: `micro_batches: 2`: `max_ongoing`: pieces go back before others go "
            "forward only at the end of the model, and what is behind reads this node's result. "
            "Leave `max_ongoing` out (all pieces go forward, then all back), or name the head with "
            "the loss.");
  EXPECT_EQ(status(InPieces("layers.*.attn", 16)),
            "`layers.*.attn`: `micro_batches: 16`: cuts `seq`, and `attn.core` reads beyond its "
            "part. Name nodes without `attn.core`, or take mb a multiple of the pieces.");
}

}  // namespace
}  // namespace plancast
