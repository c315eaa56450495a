// Products alongside their own collective.

#include "compiler/loops/loop_tasks.h"

#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/plan_under_test.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;

// gather -> product -> other, and other -> product -> scatter.
BlockTemplate Small(GemmPass pass) {
  KernelSpec product;
  product.family = KernelFamily::kGemm;
  product.m = 10;
  product.n = 4;
  product.k = 6;
  product.pass = pass;
  product.flops = 480;
  KernelSpec other;
  other.label = "other";
  other.read_bytes = 8;
  CommSpec gather, scatter;
  gather.axes = scatter.axes = {0};
  gather.kind = CollectiveKind::kAllGather;
  gather.bytes = 90;
  scatter.kind = CollectiveKind::kReduceScatter;
  scatter.bytes = 80;
  BlockBuilder builder("b", 1);
  const auto tp = StreamKind::kModelComm;
  const int g = builder.AddComm(gather, tp, Purpose::kTp, "gather", {~0});
  const int p = builder.AddKernel(product, Purpose::kForward, "p", {g});
  const int o = builder.AddKernel(other, Purpose::kForward, "o", {g, p});
  const int q = builder.AddKernel(product, Purpose::kForward, "q", {o});
  const int s = builder.AddComm(scatter, tp, Purpose::kTp, "scatter", {q});
  const uint16_t tensor = builder.AddTensor("t");
  builder.AddMemory(p, false, MemoryKind::kActivations, tensor, 40);
  builder.AddMemory(q, true, MemoryKind::kActivations, tensor, -40);
  builder.AddOutPort(s);
  return std::move(builder).Build();
}

// Over so many ranks.
BlockTemplate Overlapped(GemmPass pass, int64_t ranks) {
  return OverlapProducts(Small(pass), *DeviceMesh::Create({{"tp", ranks}}));
}

std::vector<int> DepsOf(const Block& block, int t) {
  return {block.deps.begin() + block.dep_begin[t], block.deps.begin() + block.dep_begin[t + 1]};
}

TEST(OverlapProductsTest, AProductGoesOnWithEachPartThatComes) {
  const BlockTemplate out = Overlapped(GemmPass::kForward, 3);
  const Block& block = out.block;
  EXPECT_THAT(block.label, ElementsAre("gather", "gather", "p", "p", "p", "o", "q", "q", "q",
                                       "scatter", "scatter", "scatter"));
  EXPECT_THAT(DepsOf(block, 2), ElementsAre(~0));  // its own rows are there
  EXPECT_THAT(DepsOf(block, 3), ElementsAre(0));
  EXPECT_THAT(DepsOf(block, 4), ElementsAre(1));
  EXPECT_THAT(DepsOf(block, 5), ElementsAre(1, 4));
  EXPECT_THAT(DepsOf(block, 9), ElementsAre(6));
  EXPECT_THAT(DepsOf(block, 10), ElementsAre(7));
  EXPECT_THAT(DepsOf(block, 11), ElementsAre(8));
  EXPECT_THAT(block.out_ports, ElementsAre(11));
  ASSERT_EQ(block.memory.size(), 2);
  EXPECT_EQ(block.memory[0].task, 2);
  EXPECT_EQ(block.memory[1].task, 8);
}

TEST(OverlapProductsTest, WorkAndBytesStayWhatTheyAre) {
  for (const int pieces : {2, 3, 4, 7}) {
    const BlockTemplate out = Overlapped(GemmPass::kForward, pieces);
    std::map<std::string, int64_t> rows, bytes;
    double flops = 0;
    for (int t = 0; t < out.block.size(); ++t) {
      if (out.block.kind[t] == TaskKind::kComm) {
        bytes[out.block.label[t]] += out.comms[out.block.spec[t]].bytes;
      } else if (out.kernels[out.block.spec[t]].family == KernelFamily::kGemm) {
        rows[out.block.label[t]] += out.kernels[out.block.spec[t]].m;
        flops += out.kernels[out.block.spec[t]].flops;
      }
    }
    EXPECT_EQ(bytes["gather"], 90);
    EXPECT_EQ(bytes["scatter"], 80);
    EXPECT_EQ(rows["p"], 10);
    EXPECT_EQ(rows["q"], 10);
    EXPECT_NEAR(flops, 960, 1e-9);
  }
}

TEST(OverlapProductsTest, WeightGradientsAndOnePieceStayWhole) {
  EXPECT_EQ(Overlapped(GemmPass::kWgrad, 4).block.size(), 5);
  EXPECT_EQ(Overlapped(GemmPass::kForward, 1).block.size(), 5);
}

TEST(OverlapProductsTest, PlansAskForIt) {
  const auto tasks = [](bool overlap) {
    TransformerConfig config = SmallGpt();
    PlanUnderTest plan = PlanUnderTest::Of(config);
    plan.Tp(4).Sp().MicroBatches(1, 1);
    if (overlap) plan.options().overlap = {Overlap::kTp};
    const absl::StatusOr<ExecutionGraph> graph = plan.Compile();
    EXPECT_TRUE(graph.ok()) << graph.status();
    return BlockNamed(*graph, "layer.F").size();
  };
  // Two gathers of three parts, two scatters of four, four products of four pieces.
  EXPECT_EQ(tasks(true) - tasks(false), 2 * 2 + 2 * 3 + 4 * 3);
}

}  // namespace
}  // namespace plancast
