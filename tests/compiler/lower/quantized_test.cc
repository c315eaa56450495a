// What software keeps and moves that quantises the operands of products once.

#include "compiler/lower/quantized.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/plan_under_test.h"

namespace plancast {
namespace {

constexpr int64_t kTokens = 512, kHidden = 1024, kFfn = 3072;

PlanUnderTest Quantized(DType dtype) {
  PlanUnderTest plan = PlanUnderTest::Of(SmallLlama());
  plan.profile().types.quantized_activations = true;
  plan.Type(dtype).MicroBatches(1, 1);
  return plan;
}

int64_t NetBytes(const Block& block) {
  int64_t bytes = 0;
  for (const MemoryEvent& event : block.memory) bytes += event.delta;
  return bytes;
}

// Bytes that a layer keeps for backward; it gives all of them back.
int64_t Kept(PlanUnderTest& plan) {
  const absl::StatusOr<ExecutionGraph> graph = plan.Compile();
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return 0;
  const int64_t kept = NetBytes(BlockNamed(*graph, "layer.F"));
  EXPECT_EQ(NetBytes(BlockNamed(*graph, "layer.B")), -kept);
  return kept;
}

TEST(QuantizedTest, WhatOnlyProductsReadIsKeptInTheirType) {
  // Two norms' results and the activation shrink to a byte; attention needs its
  // result in 16 bits, so the output product keeps a copy of its own.
  PlanUnderTest bf16 = Quantized(DType::kBf16), fp8 = Quantized(DType::kFp8);
  EXPECT_EQ(Kept(bf16) - Kept(fp8), kTokens * (2 * kHidden + kFfn - kHidden));
}

TEST(QuantizedTest, ScalesOfBlocksAreKeptToo) {
  PlanUnderTest fp8 = Quantized(DType::kFp8), mxfp8 = Quantized(DType::kMxfp8);
  EXPECT_EQ(Kept(mxfp8) - Kept(fp8), kTokens * (3 * kHidden + kFfn) / 32);
}

TEST(QuantizedTest, SoftwareThatQuantisesInEveryProductKeeps16Bits) {
  PlanUnderTest bf16 = Quantized(DType::kBf16), fp8 = Quantized(DType::kFp8);
  fp8.profile().types.quantized_activations = false;
  EXPECT_EQ(Kept(bf16), Kept(fp8));
}

TEST(QuantizedTest, GathersForProductsMoveTheirTypeAndReductions16Bits) {
  PlanUnderTest plan = Quantized(DType::kFp8);
  const int64_t bytes = kTokens * kHidden;  // of one byte
  const Moves moves = plan.Tp(4).Sp().Traffic();
  std::string forward;
  for (const std::string& move : moves.forward) forward += move + "; ";
  EXPECT_THAT(forward, ::testing::HasSubstr(
                           AllGather("tp", bytes) + "; " + ReduceScatter("tp", 2 * bytes) + "; " +
                           AllGather("tp", bytes) + "; " + ReduceScatter("tp", 2 * bytes)));
}

TEST(QuantizedTest, ProductsOfTheProfilesListStayIn16Bits) {
  PlanUnderTest plan = Quantized(DType::kFp8);
  plan.profile().types.unquantized = {"logits"};
  const absl::StatusOr<ExecutionGraph> graph = plan.Compile();
  ASSERT_TRUE(graph.ok()) << graph.status();
  int in_16_bits = 0, in_8_bits = 0;
  for (const KernelSpec& kernel : graph->kernels) {
    if (kernel.family != KernelFamily::kGemm) continue;
    const bool logits = kernel.m == SmallGpt().vocab || kernel.n == SmallGpt().vocab ||
                        kernel.k == SmallGpt().vocab;
    EXPECT_EQ(kernel.dtype, logits ? DType::kBf16 : DType::kFp8) << kernel.DebugString();
    ++(logits ? in_16_bits : in_8_bits);
  }
  EXPECT_EQ(in_16_bits, 3);
  EXPECT_GT(in_8_bits, 0);
}

}  // namespace
}  // namespace plancast
