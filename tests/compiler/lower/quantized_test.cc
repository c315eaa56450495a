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

// What the passes of a layer, F, B and W, leave behind.
struct Left {
  int64_t forward = 0, backward = 0, weights = 0;
};
Left LeftBy(PlanUnderTest& plan) {
  const absl::StatusOr<ExecutionGraph> graph = plan.Compile();
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return {};
  Left left{NetBytes(BlockNamed(*graph, "layer.F")), NetBytes(BlockNamed(*graph, "layer.B")),
            NetBytes(BlockNamed(*graph, "layer.W"))};
  EXPECT_EQ(left.forward + left.backward + left.weights, 0);
  return left;
}

// What gradients of a layer's weights read of a token. Elements of products: inputs of q, k and v
// (one for all), the projection, gate and up, down; gradients of what each makes. Bytes of two
// norms: input, gradient and the root mean square.
constexpr int64_t kOfProducts = (3 * kHidden + kFfn) + (3 * kHidden + kHidden + 2 * kFfn + kHidden);
constexpr int64_t kOfNorms = 2 * (2 * kHidden + 2 * kHidden + 4);

TEST(QuantizedTest, WeightGradientsKeepBothOperandsInTheirType) {
  PlanUnderTest bf16 = Quantized(DType::kBf16), fp8 = Quantized(DType::kFp8);
  PlanUnderTest whole = Quantized(DType::kFp8);
  const int64_t kept = Kept(whole);
  for (PlanUnderTest* plan : {&bf16, &fp8}) plan->Pp(2, Schedule::kZbH1).MicroBatches(1, 4);
  const Left in_16 = LeftBy(bf16), in_8 = LeftBy(fp8);
  EXPECT_EQ(in_8.forward, kept);  // as without W
  EXPECT_EQ(in_8.weights, -kTokens * (kOfProducts + kOfNorms));
  EXPECT_EQ(in_16.weights, -kTokens * (2 * kOfProducts + kOfNorms));
}

TEST(QuantizedTest, WhatRunsAgainIsKeptForWeightGradientsInTheirType) {
  PlanUnderTest bf16 = Quantized(DType::kBf16), fp8 = Quantized(DType::kFp8);
  for (PlanUnderTest* plan : {&bf16, &fp8}) {
    plan->Pp(2, Schedule::kZbH1).MicroBatches(1, 4).Recomputing(Recompute::kFull);
  }
  const Left in_16 = LeftBy(bf16), in_8 = LeftBy(fp8);
  EXPECT_EQ(in_8.forward, in_16.forward);
  EXPECT_EQ(in_8.weights, -kTokens * (kOfProducts + kOfNorms));
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
