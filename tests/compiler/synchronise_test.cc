#include "compiler/synchronise.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/plan_under_test.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;

PlanOptions Options(int64_t dp, int zero = 0) {
  PlanOptions options;
  options.dp = dp;
  options.zero = zero;
  return options;
}

DeviceMesh Mesh() { return *DeviceMesh::Create({{"pp", 2}, {"dp", 4}, {"cp", 1}, {"tp", 2}}); }

StateBytes State(const PlanOptions& options, DType dtype, int64_t parameters) {
  return StateOf(PlainProfile(), dtype, parameters, KeptElements(Mesh(), options, parameters));
}

std::vector<std::string> LabelsOf(const BlockTemplate& block) { return block.block.label; }

TEST(StateTest, MixedPrecisionTakesEighteenBytesAParameter) {
  const StateBytes bytes = State(Options(4), DType::kBf16, 1000);
  EXPECT_EQ(bytes.parameters, 2 * 1000);
  EXPECT_EQ(bytes.gradients, 4 * 1000);
  EXPECT_EQ(bytes.optimizer, (4 + 4 + 4) * 1000);
}

TEST(StateTest, Fp32NeedsNoMasterCopy) {
  const StateBytes bytes = State(Options(4), DType::kFp32, 1000);
  EXPECT_EQ(bytes.parameters, 4 * 1000);
  EXPECT_EQ(bytes.optimizer, (4 + 4) * 1000);
}

TEST(StateTest, ZeroOneShardsTheOptimizerPadded) {
  const StateBytes bytes = State(Options(8, 1), DType::kBf16, 1001);
  EXPECT_EQ(bytes.parameters, 2 * 1001);
  EXPECT_EQ(bytes.optimizer, 12 * 126);  // 1001 / 8, rounded up
}

// Of weights that axis 1 cuts there is one copy for each coordinate of the others.
TEST(StateTest, CutWeightsAreShardedOverTheirCopies) {
  EXPECT_EQ(KeptElements(Mesh(), Options(8, 1), 1000, {{{}, 300}, {{1}, 200}}), 300 + 50 + 63);
  EXPECT_EQ(KeptElements(Mesh(), Options(8), 1000, {{{}, 300}, {{1}, 200}}), 1000);
}

TEST(GradientReductionTest, SharesItsBytesAmongMessages) {
  const BlockTemplate block = GradientReduction(Mesh(), Options(4), PlainProfile(), 1001, 4);
  ASSERT_EQ(block.comms.size(), 1u);
  EXPECT_EQ(block.block.size(), 4);
  EXPECT_EQ(block.comms[0].kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(block.comms[0].bytes, 1001);  // 4004 bytes in four
  EXPECT_THAT(block.comms[0].axes, ElementsAre(1));
  EXPECT_EQ(block.block.stream[0], StreamKind::kGradComm);
}

TEST(GradientReductionTest, CutWeightsAreReducedOverTheirCopies) {
  const BlockTemplate block =
      GradientReduction(Mesh(), Options(4), PlainProfile(), 1000, 1, {{{}, 300}, {{3}, 200}});
  ASSERT_EQ(block.block.size(), 2);
  EXPECT_THAT(block.comms[1].axes, ElementsAre(3));
  EXPECT_EQ(block.comms[1].bytes, 4 * 200);
}

TEST(GradientReductionTest, ZeroOneScatters) {
  const BlockTemplate block = GradientReduction(Mesh(), Options(4, 1), PlainProfile(), 1000, 1);
  EXPECT_EQ(block.comms[0].kind, CollectiveKind::kReduceScatter);
}

TEST(OptimizerStepTest, ReadsAndWritesTheStateOnce) {
  const BlockTemplate block = OptimizerStep(PlainProfile(), DType::kBf16, 1000, {}, false);
  EXPECT_THAT(LabelsOf(block), ElementsAre("adam"));
  // Gradient, two moments, master; written moments, master and bf16 weight.
  EXPECT_EQ(block.kernels[0].read_bytes, 1000 * (4 + 8 + 4));
  EXPECT_EQ(block.kernels[0].write_bytes, 1000 * (8 + 4 + 2));
}

TEST(OptimizerStepTest, ClippingNeedsTheNormOfAllRanks) {
  SoftwareProfile profile = PlainProfile();
  profile.grad_clip = true;
  const BlockTemplate block = OptimizerStep(profile, DType::kBf16, 1000, {0, 3}, true);
  EXPECT_THAT(LabelsOf(block),
              ElementsAre("grad_norm", "all_reduce grad_norm", "grad_clip", "adam"));
  EXPECT_EQ(block.comms[0].bytes, 4);
  EXPECT_EQ(block.block.rendezvous_task, 1);
  EXPECT_EQ(block.block.flags[1], Block::kHostSync);
}

TEST(OptimizerStepTest, OnlyFp16LooksForOverflows) {
  SoftwareProfile profile = PlainProfile();
  profile.fp16_overflow_check = true;
  EXPECT_THAT(LabelsOf(OptimizerStep(profile, DType::kFp16, 8, {}, false)),
              ElementsAre("overflow_check", "adam"));
  EXPECT_THAT(LabelsOf(OptimizerStep(profile, DType::kBf16, 8, {}, false)), ElementsAre("adam"));
}

TEST(ZeroGradientsTest, WritesTheBuffer) {
  const BlockTemplate block = ZeroGradients(PlainProfile(), 1000);
  EXPECT_EQ(block.kernels[0].read_bytes, 0);
  EXPECT_EQ(block.kernels[0].write_bytes, 4 * 1000);
}

}  // namespace
}  // namespace plancast
