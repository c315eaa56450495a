#include "compiler/sharding/optimizer/optimizer_step.h"

#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "graph/rule/op_rule.h"
#include "gtest/gtest.h"
#include "tests/compiler/plan_under_test.h"
#include "tests/testing/status_matchers.h"

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

// All but Adam's, whose rule has a copy in low precision besides: what a rule is given and gives.
TEST(OptimizerStepTest, OneKernelReadsAndWritesWhatTheRuleSays) {
  for (const OptimizerType type : kOptimizerTypeNames.Values()) {
    if (type == OptimizerType::kMuon) continue;  // several rules
    SoftwareProfile profile = PlainProfile();
    profile.update.type = type;
    const std::string name = absl::StrReplaceAll(kOptimizerTypeNames[type], {{"-", "_"}});
    ASSERT_OK_AND_ASSIGN(const OpRulePtr rule, FindRule(name));
    const size_t given = rule->inputs().size(), made = rule->outputs().size();
    const bool copies = type == OptimizerType::kAdam || type == OptimizerType::kLamb;
    EXPECT_EQ(Moments(type), static_cast<int>(given) - 2) << name;
    if (type == OptimizerType::kLamb) continue;  // its norms part it
    const DType dtype = copies ? DType::kBf16 : DType::kFp32;
    const BlockTemplate block = OptimizerStep(profile, dtype, 1000, {});
    EXPECT_EQ(block.kernels[0].read_bytes, 4000.0 * static_cast<double>(given)) << name;
    EXPECT_EQ(block.kernels[0].write_bytes,
              4000.0 * static_cast<double>(made) - (copies ? 2000 : 0))
        << name;
    EXPECT_THAT(LabelsOf(block), ElementsAre(std::string(kOptimizerTypeNames[type])));
  }
}

TEST(OptimizerStepTest, LambNeedsTheNormsOfTensorsBetweenTwoPasses) {
  SoftwareProfile profile = PlainProfile();
  profile.update.type = OptimizerType::kLamb;
  GradientNorm norm;
  norm.axes = {0, 1};
  norm.of_tensors = {1};
  ShardedUpdate sharded;
  sharded.tensors = 12;
  const BlockTemplate block = OptimizerStep(profile, DType::kBf16, 1000, norm, sharded);
  // Its clipping is part of the first pass.
  EXPECT_THAT(LabelsOf(block), ElementsAre("grad_norm", "all_reduce grad_norm", "lamb moments",
                                           "lamb norms", "all_reduce lamb norms", "lamb"));
  EXPECT_EQ(block.kernels[1].read_bytes, 1000 * (4 + 4 + 8));  // gradient, weight, moments
  EXPECT_EQ(block.kernels[1].write_bytes, 1000 * (4 + 8));     // step, moments
  EXPECT_EQ(block.kernels[2].read_bytes, 1000 * (4 + 4));      // step, weight
  EXPECT_EQ(block.kernels[3].read_bytes, 1000 * (4 + 4));      // step, weight
  EXPECT_EQ(block.kernels[3].write_bytes, 1000 * (4 + 2));     // weight and its copy
  EXPECT_EQ(block.comms[1].bytes, 12 * 2 * 4);
  EXPECT_EQ(block.comms[1].axes, std::vector<int>({1}));
  EXPECT_TRUE(profile.update.finds_norm());
  const BlockTemplate alone = OptimizerStep(profile, DType::kBf16, 1000, {});
  EXPECT_THAT(LabelsOf(alone), ElementsAre("grad_norm", "lamb moments", "lamb norms", "lamb"));
}

TEST(OptimizerStepTest, MuonMultipliesMatricesAndLeavesTheRestToAdam) {
  SoftwareProfile profile = PlainProfile();
  profile.update.type = OptimizerType::kMuon;
  ShardedUpdate sharded;
  sharded.shares = {{1000, false, false, {800, {{2, 10, 20}, {1, 25, 16}}}}};
  const BlockTemplate block = OptimizerStep(profile, DType::kBf16, 1000, {}, sharded);
  const std::vector<std::string> labels = LabelsOf(block);
  ASSERT_EQ(labels.size(), 1 + 2 * 5 * 3 + 2u);
  EXPECT_EQ(labels.front(), "muon momentum");
  EXPECT_EQ(labels[labels.size() - 2], "muon");
  EXPECT_EQ(labels.back(), "adam");
  EXPECT_EQ(block.kernels[0].read_bytes, 800 * (4 + 2 * 4));
  EXPECT_EQ(block.kernels[0].write_bytes, 800 * (4 + 2));
  // Each kind of kernel once.
  ASSERT_EQ(block.kernels.size(), 1 + 2 * 3 + 2u);
  EXPECT_EQ(block.kernels[7].read_bytes, 800 * (4 + 2));
  EXPECT_EQ(block.kernels[7].write_bytes, 800 * (4 + 2));
  EXPECT_EQ(block.kernels.back().read_bytes, 200 * (4 + 8 + 4));
  double flops = 0;
  for (const KernelSpec& kernel : block.kernels) flops += kNewtonSchulzSteps * kernel.flops;
  EXPECT_EQ(flops, 2 * NewtonSchulzFlops(10, 20) + NewtonSchulzFlops(16, 25));
  EXPECT_EQ(NewtonSchulzFlops(10, 20), 5 * (4.0 * 10 * 10 * 20 + 2 * 10 * 10 * 10));
}

TEST(OptimizerStepTest, MuonHasAStepWhereThereIsNothingToUpdate) {
  SoftwareProfile profile = PlainProfile();
  profile.update.type = OptimizerType::kMuon;
  EXPECT_THAT(LabelsOf(OptimizerStep(profile, DType::kBf16, 0, {})), ElementsAre("adam"));
  ShardedUpdate sharded;
  sharded.shares = {{800, false, false, {800, {{2, 20, 20}}}}};
  EXPECT_EQ(LabelsOf(OptimizerStep(profile, DType::kBf16, 800, {}, sharded)).back(), "muon");
}

// torch/optim/sgd.py, _multi_tensor_sgd, in fp32: add, mul, add, add.
TEST(OptimizerStepTest, MomentumOperationByOperation) {
  SoftwareProfile profile = PlainProfile();
  profile.update.foreach_optimizer = true;
  profile.update.type = OptimizerType::kSgdMomentum;
  const BlockTemplate block = OptimizerStep(profile, DType::kFp32, 1000, {});
  EXPECT_EQ(block.kernels[0].read_bytes, 1000 * 4 * (2 + 1 + 2 + 2));
  EXPECT_EQ(block.kernels[0].write_bytes, 1000 * 4 * 4);
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
