#include "compiler/sharding/optimizer_step.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/plan_under_test.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> LabelsOf(const BlockTemplate& block) { return block.block.label; }

TEST(OptimizerStepTest, ReadsAndWritesTheStateOnce) {
  const BlockTemplate block = OptimizerStep(PlainProfile(), DType::kBf16, 1000, {});
  EXPECT_THAT(LabelsOf(block), ElementsAre("adam"));
  // Gradient, two moments, master; written moments, master and bf16 weight.
  EXPECT_EQ(block.kernels[0].read_bytes, 1000 * (4 + 8 + 4));
  EXPECT_EQ(block.kernels[0].write_bytes, 1000 * (8 + 4 + 2));
}

TEST(OptimizerStepTest, AKernelForEachOperationReadsAndWritesTheStateAgain) {
  SoftwareProfile profile = PlainProfile();
  profile.update.foreach_optimizer = true;
  const BlockTemplate block = OptimizerStep(profile, DType::kFp32, 1000, {});
  // torch.optim's foreach AdamW in fp32: mul, lerp, mul, addcmul, sqrt, div, add, addcdiv.
  EXPECT_EQ(block.kernels[0].read_bytes, 1000 * 4 * (1 + 2 + 1 + 2 + 1 + 1 + 1 + 3));
  EXPECT_EQ(block.kernels[0].write_bytes, 1000 * 4 * 8);
}

TEST(OptimizerStepTest, ClippingNeedsTheNormOfAllRanks) {
  SoftwareProfile profile = PlainProfile();
  profile.update.grad_clip = true;
  const BlockTemplate block = OptimizerStep(profile, DType::kBf16, 1000, {{0, 3}, true});
  EXPECT_THAT(LabelsOf(block),
              ElementsAre("grad_norm", "all_reduce grad_norm", "grad_clip", "adam"));
  EXPECT_EQ(block.comms[0].bytes, 4);
  EXPECT_EQ(block.block.rendezvous_task, 1);
  EXPECT_EQ(block.block.flags[1], Block::kHostSync);
}

TEST(OptimizerStepTest, OnlyFp16LooksForOverflows) {
  SoftwareProfile profile = PlainProfile();
  profile.update.fp16_overflow_check = true;
  EXPECT_THAT(LabelsOf(OptimizerStep(profile, DType::kFp16, 8, {})),
              ElementsAre("overflow_check", "adam"));
  EXPECT_THAT(LabelsOf(OptimizerStep(profile, DType::kBf16, 8, {})), ElementsAre("adam"));
}

TEST(ZeroGradientsTest, WritesTheBuffer) {
  const BlockTemplate block = ZeroGradients(PlainProfile(), 1000);
  EXPECT_EQ(block.kernels[0].read_bytes, 0);
  EXPECT_EQ(block.kernels[0].write_bytes, 4 * 1000);
}

}  // namespace
}  // namespace plancast
