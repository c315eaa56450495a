// Sizes and traffic of the kernels that a transformer layer runs on one device.

#include "compiler/lower/kernels/lower_kernel.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/transformer/transformer.h"
#include "gtest/gtest.h"
#include "tests/compiler/plan_under_test.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kB = 2, kS = 128, kH = 256, kHeads = 8, kD = 32, kFfn = 1024;
constexpr int64_t kTokens = kB * kS;
constexpr double kStream = 2.0 * kTokens * kH;  // bytes in bf16

TransformerConfig Llama(int64_t kv_heads = 4) {
  TransformerConfig config;
  config.name = "small";
  config.layers = 2;
  config.hidden = kH;
  config.heads = kHeads;
  config.kv_heads = kv_heads;
  config.head_dim = kD;
  config.ffn = kFfn;
  config.vocab = 512;
  config.seq = kS;
  config.mlp = Mlp::kSwiglu;
  config.norm = Norm::kRmsNorm;
  config.position = Position::kRope;
  return config;
}

TransformerConfig Gpt() {
  TransformerConfig config = Llama(kHeads);
  config.mlp = Mlp::kGelu;
  config.norm = Norm::kLayerNorm;
  config.position = Position::kNone;
  config.mlp_bias = true;
  return config;
}

// The kernels that an op (by its label in the block) runs.
std::vector<KernelSpec> Kernels(PlanUnderTest& plan, const std::string& block,
                                const std::string& label) {
  absl::StatusOr<ExecutionGraph> graph = plan.MicroBatches(kB, 1).Compile();
  EXPECT_OK(graph.status());
  return KernelsLabelled(*graph, block, label);
}

// `batch x m x n x k` of every product.
std::vector<std::string> Products(PlanUnderTest& plan, const std::string& block,
                                  const std::string& label) {
  std::vector<std::string> sizes;
  for (const KernelSpec& k : Kernels(plan, block, label)) {
    if (k.family != KernelFamily::kGemm) continue;
    EXPECT_DOUBLE_EQ(k.flops, 2.0 * k.batch * k.m * k.n * k.k);
    sizes.push_back(absl::StrCat(k.batch, "x", k.m, "x", k.n, "x", k.k));
  }
  return sizes;
}

std::string Size(int64_t batch, int64_t m, int64_t n, int64_t k) {
  return absl::StrCat(batch, "x", m, "x", n, "x", k);
}

TEST(ProductKernelTest, ALinearLayerIsThreeProducts) {
  PlanUnderTest plan = PlanUnderTest::Of(Gpt());
  plan.Tp(4);
  EXPECT_THAT(Products(plan, "layer.F", "mlp.fc1"), ElementsAre(Size(1, kTokens, kFfn / 4, kH)));
  EXPECT_THAT(Products(plan, "layer.B", "mlp.fc1.bwd"),
              ElementsAre(Size(1, kTokens, kH, kFfn / 4)));
  const KernelSpec wgrad = Kernels(plan, "layer.B", "mlp.fc1.wgrad").at(0);
  EXPECT_EQ(wgrad.k, kTokens);
  EXPECT_EQ(wgrad.m * wgrad.n, kH * kFfn / 4);
  EXPECT_TRUE(wgrad.accumulate_fp32);
}

TEST(ProductKernelTest, QueriesKeysAndValuesAreOneProductOfAFusedWeight) {
  PlanUnderTest plan = PlanUnderTest::Of(Llama());
  const int64_t wide = (kHeads + 2 * 4) * kD;
  EXPECT_THAT(Products(plan, "layer.F", "attn.qkv"), ElementsAre(Size(1, kTokens, wide, kH)));
  EXPECT_THAT(Products(plan, "layer.B", "attn.qkv.bwd"), ElementsAre(Size(1, kTokens, kH, wide)));
}

TEST(ProductKernelTest, GradientsOfAFusedWeightArePackedFirst) {
  PlanUnderTest plan = PlanUnderTest::Of(Llama());
  const std::vector<KernelSpec> kernels = Kernels(plan, "layer.B", "attn.qkv.bwd");
  ASSERT_THAT(kernels, testing::SizeIs(2));
  const double bytes = 2.0 * kTokens * (kHeads + 2 * 4) * kD;
  EXPECT_DOUBLE_EQ(kernels[0].read_bytes, bytes);
  EXPECT_DOUBLE_EQ(kernels[0].write_bytes, bytes);
  plan.profile().kernels.fusions = {"qkv_linear.packed"};  // their makers write them side by side
  EXPECT_THAT(Kernels(plan, "layer.B", "attn.qkv.bwd"), testing::SizeIs(1));
}

TEST(ProductKernelTest, GateAndUpAreOneProductToo) {
  PlanUnderTest plan = PlanUnderTest::Of(Llama());
  EXPECT_THAT(Products(plan.Tp(2), "layer.F", "mlp.fc1"), ElementsAre(Size(1, kTokens, kFfn, kH)));
}

TEST(ProductKernelTest, WeightsApartAreAProductEach) {
  PlanUnderTest plan = PlanUnderTest::Of(Llama());
  plan.profile().kernels.separate_products = {"qkv_linear"};
  const int64_t narrow = 4 * kD;
  EXPECT_THAT(
      Products(plan, "layer.F", "attn.qkv"),
      testing::UnorderedElementsAre(Size(1, kTokens, kHeads * kD, kH), Size(1, kTokens, narrow, kH),
                                    Size(1, kTokens, narrow, kH)));
  EXPECT_THAT(
      Products(plan, "layer.B", "attn.qkv.bwd"),
      testing::UnorderedElementsAre(Size(1, kTokens, kH, kHeads * kD), Size(1, kTokens, kH, narrow),
                                    Size(1, kTokens, kH, narrow)));
  // Two of the three gradients of the input are read once more by who reads their sum.
  const KernelSpec sum = Kernels(plan, "layer.B", "attn.qkv.bwd").back();
  EXPECT_EQ(sum.family, KernelFamily::kMemory);
  EXPECT_DOUBLE_EQ(sum.read_bytes, 2 * 2.0 * kTokens * kH);
  EXPECT_THAT(Products(plan, "layer.F", "mlp.fc1"), testing::SizeIs(1));
}

TEST(AttentionKernelTest, KeysAndValuesAreCopiedForEachQueryHead) {
  PlanUnderTest plan = PlanUnderTest::Of(Llama());
  EXPECT_THAT(Kernels(plan, "layer.F", "attn.core"), testing::SizeIs(1));
  plan.profile().kernels.repeats_kv = true;
  const double once = 2.0 * 2 * kTokens * 4 * kD, all = once / 4 * kHeads;
  const std::vector<KernelSpec> forward = Kernels(plan, "layer.F", "attn.core");
  ASSERT_THAT(forward, testing::SizeIs(2));
  EXPECT_DOUBLE_EQ(forward[1].read_bytes, once);
  EXPECT_DOUBLE_EQ(forward[1].write_bytes, all);
  const std::vector<KernelSpec> backward = Kernels(plan, "layer.B", "attn.core.bwd");
  ASSERT_THAT(backward, testing::SizeIs(2));
  EXPECT_DOUBLE_EQ(backward[1].read_bytes, all);
  EXPECT_DOUBLE_EQ(backward[1].write_bytes, once);
}

TEST(AttentionKernelTest, AWindowReadsAsManyKeysAsThereAre) {
  TransformerConfig config = Llama();
  config.window = 32;
  PlanUnderTest plan = PlanUnderTest::Of(config);
  const KernelSpec kernel = Kernels(plan, "window_layer.F", "attn.core").at(0);
  EXPECT_FALSE(kernel.causal);
  const int64_t pairs = 32 * 33 / 2 + (kS - 32) * 32;
  EXPECT_DOUBLE_EQ(kernel.flops, 2.0 * 2 * kB * kHeads * kD * pairs);
  EXPECT_EQ(kernel.kv_len, (pairs + kS / 2) / kS);  // on average
}

TEST(AttentionKernelTest, RunsInSixteenBitsUnlessAskedFor) {
  PlanUnderTest plan = PlanUnderTest::Of(Llama());
  plan.Type(DType::kMxfp8);
  EXPECT_EQ(Kernels(plan, "layer.F", "attn.core").at(0).dtype, DType::kBf16);
  EXPECT_EQ(Kernels(plan, "layer.F", "mlp.fc2").at(0).dtype, DType::kMxfp8);
  plan.profile().types.attention_dtype = DType::kMxfp8;
  EXPECT_EQ(Kernels(plan, "layer.F", "attn.core").at(0).dtype, DType::kMxfp8);
}

// Its backward kernel does not leave out what lies outside of a window.
TEST(AttentionKernelTest, InEightBitsBackwardComputesTheWholeMask) {
  TransformerConfig config = Llama();
  config.window = 32;
  PlanUnderTest plan = PlanUnderTest::Of(config);
  plan.profile().types.attention_dtype = DType::kFp8;
  EXPECT_FALSE(Kernels(plan, "window_layer.F", "attn.core").at(0).causal);
  const KernelSpec backward = Kernels(plan, "window_layer.B", "attn.core.bwd").at(0);
  EXPECT_TRUE(backward.causal);
  EXPECT_EQ(backward.kv_len, kS);
  plan.profile().types.attention_dtype = DType::kBf16;
  EXPECT_FALSE(Kernels(plan, "window_layer.B", "attn.core.bwd").at(0).causal);
}

TEST(AttentionKernelTest, LatentHeadsHaveTwoPartsAndAValue) {
  TransformerConfig config = Llama(kHeads);
  config.latent = {48, 64, 24, 8, 16};
  PlanUnderTest plan = PlanUnderTest::Of(config);
  const KernelSpec kernel = Kernels(plan, "layer.F", "attn.core").at(0);
  EXPECT_TRUE(kernel.causal);
  EXPECT_EQ(kernel.head_dim, 24 + 8);
  EXPECT_EQ(kernel.head_dim_v, 16);
  EXPECT_DOUBLE_EQ(kernel.flops, 2.0 * kB * kHeads * (24 + 8 + 16) * kS * (kS + 1) / 2);
}

TEST(ProductKernelTest, UnfusedAttentionIsAProductPerHead) {
  PlanUnderTest plan = PlanUnderTest::Of(Gpt(), /*flash=*/false);
  plan.Tp(2);
  EXPECT_THAT(Products(plan, "layer.F", "attn.scores"),
              ElementsAre(Size(kB * kHeads / 2, kS, kS, kD)));
  EXPECT_THAT(Products(plan, "layer.F", "attn.context"),
              ElementsAre(Size(kB * kHeads / 2, kS, kD, kS)));
  EXPECT_THAT(Kernels(plan, "layer.B", "attn.scores.bwd"), testing::SizeIs(2));
}

// Queries and keys lie head by head, scores key by key; so do their gradients.
TEST(ProductKernelTest, BatchedProductsKnowWhatTheirRowsAreMultiplesOf) {
  const auto rows = [](int64_t head_dim, int64_t seq, const char* block, const char* label) {
    TransformerConfig config = Gpt();
    config.head_dim = head_dim;
    config.seq = seq;
    PlanUnderTest plan = PlanUnderTest::Of(config, /*flash=*/false);
    std::vector<int64_t> multiples;
    for (const KernelSpec& kernel : Kernels(plan, block, label)) {
      if (kernel.family == KernelFamily::kGemm) multiples.push_back(kernel.row_multiple);
    }
    return multiples;
  };
  EXPECT_THAT(rows(32, 128, "layer.F", "attn.scores"), ElementsAre(8));
  EXPECT_THAT(rows(108, 128, "layer.F", "attn.scores"), ElementsAre(4));
  EXPECT_THAT(rows(150, 128, "layer.F", "attn.context"), ElementsAre(2));
  EXPECT_THAT(rows(108, 128, "layer.B", "attn.scores.bwd"), ElementsAre(4, 4));
  EXPECT_THAT(rows(32, 125, "layer.F", "attn.scores"), ElementsAre(8));
  EXPECT_THAT(rows(32, 125, "layer.F", "attn.context"), ElementsAre(1));
  // Those of a weight are padded by who makes it, or slow by another rule.
  EXPECT_THAT(rows(108, 128, "layer.F", "attn.qkv"), testing::Each(8));
}

TEST(AttentionKernelTest, KnowsItsHeadsAndHalvesItsSquare) {
  PlanUnderTest plan = PlanUnderTest::Of(Llama());
  const std::vector<KernelSpec> kernels = Kernels(plan.Tp(2), "layer.F", "attn.core");
  ASSERT_THAT(kernels, testing::SizeIs(1));
  const KernelSpec& k = kernels[0];
  EXPECT_EQ(k.family, KernelFamily::kAttention);
  EXPECT_EQ(k.heads, kHeads / 2);
  EXPECT_EQ(k.kv_heads, 2);
  EXPECT_EQ(k.q_len, kS);
  EXPECT_EQ(k.head_dim, kD);
  EXPECT_TRUE(k.causal);
  // Two products over the pairs of positions that may see each other.
  EXPECT_DOUBLE_EQ(k.flops, 2 * 2.0 * kB * kHeads / 2 * kD * kS * (kS + 1) / 2);
}

TEST(AttentionKernelTest, BackwardRunsFiveProductsForTwo) {
  PlanUnderTest plan = PlanUnderTest::Of(Llama());
  const KernelSpec forward = Kernels(plan, "layer.F", "attn.core").at(0);
  const KernelSpec backward = Kernels(plan, "layer.B", "attn.core.bwd").at(0);
  EXPECT_TRUE(backward.backward);
  EXPECT_DOUBLE_EQ(backward.flops, forward.flops * 5 / 2);
}

TEST(MemoryKernelTest, AResidualReadsTwoStreamsAndWritesOne) {
  PlanUnderTest plan = PlanUnderTest::Of(Llama());
  const KernelSpec k = Kernels(plan, "layer.F", "attn.residual").at(0);
  EXPECT_EQ(k.family, KernelFamily::kMemory);
  EXPECT_DOUBLE_EQ(k.read_bytes, 2 * kStream);
  EXPECT_DOUBLE_EQ(k.write_bytes, kStream);
}

TEST(MemoryKernelTest, TheGradientOfAResidualIsNoKernel) {
  PlanUnderTest plan = PlanUnderTest::Of(Llama());
  EXPECT_THAT(Kernels(plan, "layer.B", "attn.residual.bwd"), IsEmpty());
}

TEST(MemoryKernelTest, ANormKeepsItsStatistic) {
  PlanUnderTest plan = PlanUnderTest::Of(Llama());
  const KernelSpec k = Kernels(plan, "layer.F", "attn.norm").at(0);
  EXPECT_DOUBLE_EQ(k.read_bytes, kStream + 2.0 * kH);
  EXPECT_DOUBLE_EQ(k.write_bytes, kStream + 4.0 * kTokens);  // and rstd in fp32
}

TEST(FusedKernelTest, WhatIsPassedOnInsideIsNotMoved) {
  PlanUnderTest apart = PlanUnderTest::Of(Gpt()), fused = PlanUnderTest::Of(Gpt());
  fused.profile().kernels.fusions = {"bias_gelu"};
  const double wide = 2.0 * kTokens * kFfn, bias = 2.0 * kFfn;
  const std::vector<KernelSpec> one = Kernels(fused, "layer.F", "mlp.fc1_bias");
  ASSERT_THAT(one, testing::SizeIs(1));
  EXPECT_DOUBLE_EQ(one[0].read_bytes, wide + bias);
  EXPECT_DOUBLE_EQ(one[0].write_bytes, wide);
  EXPECT_THAT(Kernels(fused, "layer.F", "mlp.act"), IsEmpty());
  EXPECT_THAT(Kernels(apart, "layer.F", "mlp.act"), testing::SizeIs(1));
}

// The kernels of products of all pairs of so many rows, then an activation, under one label.
std::vector<KernelSpec> PairsOfRows(int64_t rows, bool fused, const std::string& block,
                                    const std::string& label) {
  PlanUnderTest plan({{"rows", rows}, {"rows_other", rows}, {"width", 64}});
  plan.MicroBatches(kB, 1).ByHand();
  if (fused) plan.profile().kernels.fusions = {"dot_interaction"};
  BodyWriter& body = plan.Segment("m");
  const int ports[] = {body.InPort("x", {"batch", "rows", "width"}),
                       body.InPort("z", {"batch", "rows_other", "width"})};
  const int x = body.Op1("x_act", "relu_nd(rank=3)", {ports[0]});
  const int z = body.Op1("z_act", "relu_nd(rank=3)", {ports[1]});
  body.Fusion("dot_interaction");
  const FactorDims dims = {{"i", "rows"}, {"j", "rows_other"}, {"k", "width"}};
  const int y = body.Op1("pairs", "pairwise_products", {x, z}, dims);
  body.OutPort(body.Op1("act", "relu_nd(rank=3)", {y}));
  body.Fusion("");
  absl::StatusOr<ExecutionGraph> graph = plan.Compile();
  EXPECT_OK(graph.status());
  return KernelsLabelled(*graph, block, label);
}

TEST(FusedKernelTest, SmallProductsStayOnTheChip) {
  constexpr int64_t kRows = 32;
  EXPECT_EQ(PairsOfRows(kRows, false, "m.F", "pairs").at(0).family, KernelFamily::kGemm);
  const std::vector<KernelSpec> forward = PairsOfRows(kRows, true, "m.F", "pairs");
  ASSERT_THAT(forward, testing::SizeIs(1));
  EXPECT_EQ(forward[0].family, KernelFamily::kMemory);
  EXPECT_DOUBLE_EQ(forward[0].read_bytes, 2.0 * kB * 2 * kRows * 64);
  EXPECT_THAT(PairsOfRows(kRows, true, "m.F", "act"), IsEmpty());
  const std::vector<KernelSpec> backward = PairsOfRows(kRows, true, "m.B", "act.bwd");
  ASSERT_THAT(backward, testing::SizeIs(1));
  EXPECT_EQ(backward[0].family, KernelFamily::kMemory);
  EXPECT_DOUBLE_EQ(backward[0].write_bytes, 2.0 * kB * 2 * kRows * 64);
}

TEST(FusedKernelTest, LargeProductsAreProducts) {
  EXPECT_EQ(PairsOfRows(512, true, "m.F", "pairs").at(0).family, KernelFamily::kGemm);
}

TEST(ProductBiasTest, AProductAddsItsBiasAndTheGradientIsASumOfItsOwn) {
  PlanUnderTest apart = PlanUnderTest::Of(Gpt()), added = PlanUnderTest::Of(Gpt());
  added.profile().kernels.fusions = {"product_bias"};
  for (const char* bias : {"mlp.fc1_bias", "mlp.fc2_bias"}) {
    EXPECT_THAT(Kernels(apart, "layer.F", bias), testing::SizeIs(1)) << bias;
    EXPECT_THAT(Kernels(added, "layer.F", bias), IsEmpty()) << bias;
    EXPECT_THAT(Kernels(added, "layer.B", absl::StrCat(bias, ".wgrad")), testing::SizeIs(1))
        << bias;
  }
  // The activation reads what the product wrote.
  const KernelSpec act = Kernels(added, "layer.F", "mlp.act").at(0);
  EXPECT_DOUBLE_EQ(act.read_bytes, 2.0 * kTokens * kFfn);
}

TEST(ProductBiasTest, ABiasBehindASumOverDevicesIsAKernel) {
  PlanUnderTest plan = PlanUnderTest::Of(Gpt());
  plan.Tp(2);
  plan.profile().kernels.fusions = {"product_bias"};
  EXPECT_THAT(Kernels(plan, "layer.F", "mlp.fc1_bias"), IsEmpty());
  EXPECT_THAT(Kernels(plan, "layer.F", "mlp.fc2_bias"), testing::SizeIs(1));
}

TEST(ProductBiasTest, ABiasThatIsFusedWithWhatFollowsIsThatKernels) {
  PlanUnderTest plan = PlanUnderTest::Of(Gpt());
  plan.profile().kernels.fusions = {"product_bias", "bias_gelu"};
  const KernelSpec fused = Kernels(plan, "layer.F", "mlp.fc1_bias").at(0);
  EXPECT_DOUBLE_EQ(fused.read_bytes, 2.0 * kTokens * kFfn + 2.0 * kFfn);
}

TEST(ExtraKernelsTest, ScalesMasksAndCastsOfAFrameworkAreAddedToItsOp) {
  PlanUnderTest plain = PlanUnderTest::Of(Gpt(), /*flash=*/false);
  PlanUnderTest mixed = PlanUnderTest::Of(Gpt(), /*flash=*/false);
  mixed.profile().kernels.extra["softmax_causal"] = {2, 1, true, 1, 3};
  const auto kernel = [&](PlanUnderTest& plan, const std::string& block, const std::string& label) {
    const std::vector<KernelSpec> kernels = Kernels(plan, block, label);
    EXPECT_THAT(kernels, testing::SizeIs(1));
    return kernels[0];
  };
  const double scores = 1.0 * kB * kHeads * kS * kS, statistic = 4.0 * kB * kHeads * kS;
  const KernelSpec alone = kernel(plain, "layer.F", "attn.softmax");
  EXPECT_DOUBLE_EQ(alone.read_bytes + alone.write_bytes, (2 + 2) * scores + statistic);
  // Two passes of 2 + 2 bytes, one cast of 2 + 4, and itself in fp32.
  const KernelSpec forward = kernel(mixed, "layer.F", "attn.softmax");
  EXPECT_DOUBLE_EQ(forward.read_bytes + forward.write_bytes,
                   (2 * 4 + 6 + 4 + 4) * scores + statistic);
  EXPECT_EQ(forward.launches, 4);
  // One pass, three casts; the result, its gradient and the statistic are read.
  const KernelSpec backward = kernel(mixed, "layer.B", "attn.softmax.bwd");
  EXPECT_DOUBLE_EQ(backward.read_bytes + backward.write_bytes,
                   (4 + 3 * 6 + 12) * scores + statistic);
  EXPECT_EQ(backward.launches, 5);
  // Where all is fp32, nothing is cast.
  const KernelSpec wide = kernel(mixed.Type(DType::kFp32), "layer.F", "attn.softmax");
  EXPECT_DOUBLE_EQ(wide.read_bytes + wide.write_bytes, (2 * 8 + 4 + 4) * scores + statistic);
}

// Experts whose results get their bias times the tokens' weights.
PlanUnderTest BiasedExperts() {
  TransformerConfig config = Llama();
  config.mlp_bias = true;
  config.experts.count = 8;
  config.experts.topk = 2;
  config.experts.ffn = kFfn;
  TransformerChoices choices;
  choices.experts_weigh_activations = true;
  absl::StatusOr<ModelGraph> graph = BuildTransformer(config, choices);
  EXPECT_OK(graph.status());
  return PlanUnderTest::Of(*std::move(graph));
}

KernelSpec BiasKernel(PlanUnderTest& plan, const std::string& pass) {
  const bool forward = pass.empty();
  const std::vector<KernelSpec> kernels =
      Kernels(plan, forward ? "moe_layer.F" : "moe_layer.B", "mlp.experts.fc2_bias" + pass);
  EXPECT_THAT(kernels, testing::SizeIs(1));
  return kernels.empty() ? KernelSpec() : kernels[0];
}

TEST(EagerKernelTest, BiasesOfExpertsAreAddedExpertByExpert) {
  constexpr double kPlaces = 2.0 * kTokens, kElements = kPlaces * kH, kExperts = 8;
  constexpr double kSmall = 10 * kPlaces + 10 * kExperts * kH;  // biases, weights, their gradients
  const auto bytes = [](const KernelSpec& kernel) {
    return kernel.read_bytes + kernel.write_bytes;
  };
  PlanUnderTest plan = BiasedExperts();
  EXPECT_DOUBLE_EQ(bytes(BiasKernel(plan, "")), 4 * kElements + 2 * kPlaces + 2 * kExperts * kH);
  EXPECT_EQ(BiasKernel(plan, "").launches, 1);

  // A product that is written, the sum of it and the results, and all of them joined; backward,
  // for biases and weights, a product and its sum.
  plan.profile().kernels.fusions = {"parameter_gradients"};
  plan.profile().kernels.eager = {"expert_bias_add_weighted"};
  plan.profile().kernels.extra["expert_bias_add_weighted"] = {1, 1};
  const KernelSpec forward = BiasKernel(plan, ""), backward = BiasKernel(plan, ".bwd");
  EXPECT_NEAR(bytes(forward), (2 + 6 + 4) * kElements, kSmall);
  EXPECT_NEAR(bytes(backward), (2 * 6 + 4) * kElements, kSmall);
  EXPECT_EQ(forward.launches, 2 * kExperts + 1);
  EXPECT_EQ(backward.launches, 4 * kExperts + 1);

  // With weights in fp32 all of it is.
  plan.profile().kernels.extra["expert_bias_add_weighted"] = {2, 1, true, 1, 2};
  EXPECT_NEAR(bytes(BiasKernel(plan, "")), (4 + 12 + 8 + 6) * kElements, 2 * kSmall);
  EXPECT_NEAR(bytes(BiasKernel(plan, ".bwd")), (2 * 12 + 4 + 12) * kElements, 2 * kSmall);

  // One kernel an operation for all experts, where products are so too.
  plan.profile().kernels.fusions = {"grouped_products"};
  EXPECT_EQ(BiasKernel(plan, "").launches, 2 + 3);
}

TEST(EagerKernelTest, WhatAProductsEpilogueDoesIsNot) {
  PlanUnderTest plan = BiasedExperts();
  const auto bytes = [&](const std::string& label) {
    double sum = 0;
    for (const KernelSpec& k : Kernels(plan, "moe_layer.F", label)) {
      sum += k.read_bytes + k.write_bytes;
    }
    return sum;
  };
  const double product = bytes("mlp.experts.fc2");
  plan.profile().kernels.eager = {"expert_bias_add_weighted"};
  plan.profile().kernels.fusions = {"expert_bias_epilogue"};
  EXPECT_DOUBLE_EQ(bytes("mlp.experts.fc2_bias"), 0);
  EXPECT_DOUBLE_EQ(bytes("mlp.experts.fc2"), product + 2 * 2.0 * kTokens + 2 * 8.0 * kH);
}

TEST(EagerKernelTest, AClampRunsBeforeTheFusedActivation) {
  TransformerConfig config = Llama();
  config.mlp = Mlp::kSwigluClamped;
  config.experts.count = 8;
  config.experts.topk = 2;
  config.experts.ffn = kFfn;
  PlanUnderTest plain = PlanUnderTest::Of(config), clamped = PlanUnderTest::Of(config);
  clamped.profile().kernels.extra["expert_swiglu_clamped"].forward_passes = 4;
  clamped.profile().kernels.extra["expert_swiglu_clamped"].backward_passes = 5;
  const double half = 2.0 * 2 * kTokens * kFfn;  // of the wide tensor, bytes
  for (const bool forward : {true, false}) {
    const std::string block = forward ? "moe_layer.F" : "moe_layer.B";
    const std::string label = forward ? "mlp.experts.act" : "mlp.experts.act.bwd";
    const auto bytes = [&](PlanUnderTest& plan) {
      const KernelSpec kernel = Kernels(plan, block, label).at(0);
      return kernel.read_bytes + kernel.write_bytes;
    };
    // Two clamps and a concatenation of both halves; their gradients read the halves too.
    EXPECT_DOUBLE_EQ(bytes(clamped) - bytes(plain), half * (forward ? 2 * 2 + 4 : 2 * 3 + 4));
  }
}

TEST(AttentionKernelTest, TheProfileSaysWhoseKernelsRun) {
  PlanUnderTest plan = PlanUnderTest::Of(Llama());
  plan.profile().kernels.attention_kernel = "flash-attention-2";
  EXPECT_EQ(Kernels(plan, "layer.F", "attn.core").at(0).library, "flash-attention-2");
  EXPECT_EQ(Kernels(plan, "layer.B", "attn.core.bwd").at(0).library, "flash-attention-2");
  EXPECT_EQ(Kernels(plan, "layer.F", "attn.qkv").at(0).library, "");
}

TEST(ExtraKernelsTest, MetricsCastTheLogitsAndGoOverThem) {
  PlanUnderTest plan = PlanUnderTest::Of(Gpt());
  plan.profile().kernels.extra["cross_entropy"].metrics = 2;
  const std::vector<KernelSpec> kernels = Kernels(plan, "head.F", "loss");
  ASSERT_THAT(kernels, testing::SizeIs(2));
  const double logits = 1.0 * kTokens * Gpt().vocab;
  EXPECT_EQ(kernels[1].label, "cross_entropy.metrics");
  // Each reads 2 bytes and writes 4, then reads 4 and writes 4.
  EXPECT_DOUBLE_EQ(kernels[1].read_bytes, 2 * 6 * logits);
  EXPECT_DOUBLE_EQ(kernels[1].write_bytes, 2 * 8 * logits);
  EXPECT_EQ(kernels[1].launches, 4);
  EXPECT_THAT(Kernels(plan, "head.B", "loss.bwd"), testing::SizeIs(1));
}

TEST(SplitKernelTest, AStatisticSharedByRanksCutsAnOpInPieces) {
  PlanUnderTest plan = PlanUnderTest::Of(Llama());
  plan.Tp(4).Split("layers.*.attn.norm", "tp", {"hidden"});
  absl::StatusOr<ExecutionGraph> graph = plan.MicroBatches(kB, 1).Compile();
  ASSERT_OK(graph.status());
  const Block& block = BlockNamed(*graph, "layer.F");
  std::vector<std::string> tasks;
  for (int32_t t = 0; t < block.size() && tasks.size() < 3; ++t) {
    if (block.label[t].find("attn.norm") != std::string::npos) tasks.push_back(block.label[t]);
  }
  EXPECT_THAT(tasks, ElementsAre("attn.norm", "all_reduce attn.norm/squares", "attn.norm"));
}

}  // namespace
}  // namespace plancast
