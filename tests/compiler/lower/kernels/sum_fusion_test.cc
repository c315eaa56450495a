#include "compiler/lower/kernels/sum_fusion.h"

#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/plan_under_test.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

constexpr double kWeight = 1024.0 * 3072;  // elements of a gate of SmallLlama

// A plan whose products fuse sums (or do not) of a type, two micro-batches.
PlanUnderTest Summing(DType sum, bool fuses = true) {
  PlanUnderTest plan = PlanUnderTest::Of(SmallLlama());
  plan.profile().kernels.fuse_wgrad_accumulation = fuses;
  plan.profile().types.grad_dtype = sum;
  plan.MicroBatches(1, 2);
  return plan;
}

std::vector<KernelSpec> Kernels(PlanUnderTest plan, absl::string_view label,
                                absl::string_view block = "layer.B") {
  const absl::StatusOr<ExecutionGraph> graph = plan.Compile();
  EXPECT_OK(graph.status());
  return KernelsLabelled(*graph, block, label);
}

TEST(SumFusionTest, SumsIn16BitsTakeNoPassOfTheirOwn) {
  EXPECT_THAT(Kernels(Summing(DType::kBf16), "mlp.fc1.accumulate"), testing::IsEmpty());
  EXPECT_THAT(Kernels(Summing(DType::kFp32), "mlp.fc1.accumulate"), testing::IsEmpty());
  EXPECT_THAT(Kernels(Summing(DType::kBf16, false), "mlp.fc1.accumulate"), testing::SizeIs(1));
  EXPECT_THAT(Kernels(Summing(DType::kFp32, false), "mlp.fc1.accumulate"), testing::SizeIs(1));
  // No kernel adds bf16 to fp16.
  EXPECT_THAT(Kernels(Summing(DType::kFp16), "mlp.fc1.accumulate"), testing::SizeIs(1));
}

// DeepSpeed's bf16_optimizer.py: a copy in fp32, which is added and given up.
TEST(SumFusionTest, GradientsMayBeCastBeforeTheyAreAdded) {
  const KernelSpec plain = Kernels(Summing(DType::kFp32, false), "mlp.fc2.accumulate").at(0);
  EXPECT_EQ(plain.read_bytes + plain.write_bytes, (2 + 4 + 4) * kWeight);
  EXPECT_EQ(plain.launches, 1);
  PlanUnderTest casts = Summing(DType::kFp32, false);
  casts.profile().update.casts_gradients = true;
  const KernelSpec cast = Kernels(std::move(casts), "mlp.fc2.accumulate").at(0);
  EXPECT_EQ(cast.read_bytes + cast.write_bytes, (2 + 4 + 4 + 4 + 4) * kWeight);
  EXPECT_EQ(cast.launches, 2);
  PlanUnderTest same = Summing(DType::kBf16, false);
  same.profile().update.casts_gradients = true;
  EXPECT_EQ(Kernels(std::move(same), "mlp.fc2.accumulate").at(0).launches, 1);
}

TEST(SumFusionTest, TheProductReadsTheSumBesideItsOperands) {
  const KernelSpec plain = Kernels(Summing(DType::kBf16, false), "mlp.fc2.wgrad").at(0);
  const KernelSpec fused = Kernels(Summing(DType::kBf16), "mlp.fc2.wgrad").at(0);
  EXPECT_EQ(fused.read_bytes, plain.read_bytes + 2 * kWeight);
  EXPECT_EQ(fused.write_bytes, plain.write_bytes);
  EXPECT_EQ(fused.write_bytes, 2 * kWeight);
  EXPECT_FALSE(fused.accumulate_fp32);
  EXPECT_TRUE(Kernels(Summing(DType::kFp32), "mlp.fc2.wgrad").at(0).accumulate_fp32);
}

TEST(SumFusionTest, WhatIsReducedInEachMicroBatchIsMadeAnew) {
  PlanUnderTest sharded = Summing(DType::kBf16);
  sharded.Dp(2);
  sharded.options().zero = 3;
  sharded.options().sync_each = true;
  const KernelSpec plain = Kernels(Summing(DType::kBf16, false), "mlp.fc2.wgrad").at(0);
  EXPECT_EQ(Kernels(std::move(sharded), "mlp.fc2.wgrad").at(0).read_bytes, plain.read_bytes);
}

TEST(SumFusionTest, OnlyProductsOfWeightGradientsReadSums) {
  KernelSpec kernel;
  kernel.family = KernelFamily::kGemm;
  kernel.m = 2, kernel.n = 3, kernel.k = 4;
  ReadSum(2, &kernel);
  EXPECT_EQ(kernel.read_bytes, 0);
  kernel.pass = GemmPass::kWgrad;
  ReadSum(2, &kernel);
  EXPECT_EQ(kernel.read_bytes, 12);
  MakeAnew(2, &kernel);
  EXPECT_EQ(kernel.read_bytes, 0);
}

}  // namespace
}  // namespace plancast
