#include "cost_models/fit/kernel_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cost_models/fit/kernel_work.h"
#include "tests/cost_models/catalogue_device.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

KernelSpec Gemm(int64_t m, int64_t n, int64_t k) {
  KernelSpec spec;
  spec.family = KernelFamily::kGemm;
  spec.m = m;
  spec.n = n;
  spec.k = k;
  return spec;
}

KernelSpec Attention(int64_t batch, int64_t length, int64_t heads, int64_t dim, bool causal) {
  KernelSpec spec;
  spec.family = KernelFamily::kAttention;
  spec.batch = batch;
  spec.q_len = spec.kv_len = length;
  spec.heads = spec.kv_heads = heads;
  spec.head_dim = dim;
  spec.causal = causal;
  return spec;
}

KernelSpec Moving(double bytes) {
  KernelSpec spec;
  spec.family = KernelFamily::kMemory;
  spec.read_bytes = bytes;
  return spec;
}

// Kernels of a made-up GPU like an A100, timed by the formula itself.
MeasuredKernels Made(KernelFamily family, std::vector<KernelSpec> kernels,
                     const NamedCoefficients& truth) {
  MeasuredKernels measured;
  measured.family = family;
  measured.device = *CatalogueDevice("A100-SXM-80GB");
  measured.kernels = std::move(kernels);
  measured.seconds = *PriceKernels(family, measured.device, measured.kernels, truth);
  measured.weights.assign(measured.kernels.size(), 1.0);
  return measured;
}

MeasuredKernels MadeProducts(const NamedCoefficients& truth) {
  std::vector<KernelSpec> kernels;
  for (int64_t i = 0; i < 300; ++i) {
    kernels.push_back(
        Gemm(128 * (1 + i * 37 % 127), 128 * (1 + i * 53 % 61), 128 * (1 + i * 29 % 83)));
  }
  return Made(KernelFamily::kGemm, std::move(kernels), truth);
}

const NamedCoefficients kProduct = {{"mma_fraction", 0.8},      {"tile_overhead_k", 120},
                                    {"wave_quantization", 0.9}, {"memory_fraction", 0.75},
                                    {"small_tile_cost", 0.3},   {"floor_s", 3e-6},
                                    {"sustained_loss", 0.05}};
const std::vector<std::string> kFitted = {"mma_fraction",    "tile_overhead_k", "wave_quantization",
                                          "memory_fraction", "small_tile_cost", "floor_s",
                                          "sustained_loss"};
const std::vector<NamedCoefficients> kStarts = {{{"wave_quantization", 0.95}},
                                                {{"wave_quantization", 0.1}}};

TEST(FitKernels, RecoversWhatMadeTheTimesOfProducts) {
  ASSERT_OK_AND_ASSIGN(const NamedCoefficients found,
                       FitKernels(MadeProducts(kProduct), kFitted, {}, kStarts));
  EXPECT_NEAR(found.at("mma_fraction"), 0.8, 0.005);
  EXPECT_NEAR(found.at("wave_quantization"), 0.9, 0.02);
  EXPECT_NEAR(found.at("tile_overhead_k"), 120, 5);
}

TEST(FitKernels, ShrugsOffOutliers) {
  MeasuredKernels measured = MadeProducts(kProduct);
  for (size_t i = 0; i < measured.seconds.size(); i += 20) measured.seconds[i] *= 3;
  ASSERT_OK_AND_ASSIGN(const NamedCoefficients found, FitKernels(measured, kFitted, {}, kStarts));
  EXPECT_NEAR(found.at("mma_fraction"), 0.8, 0.02);
}

TEST(FitKernels, RecoversWhatMadeTheTimesOfAttention) {
  const NamedCoefficients truth = {{"mma_fraction", 0.7}, {"softmax_dim", 40},
                                   {"tail", 0.3},         {"floor_s", 5e-6},
                                   {"causal_loss", 0.1},  {"memory_fraction", 0.6}};
  std::vector<KernelSpec> kernels;
  for (const int64_t length : {512, 1024, 2048, 4096}) {
    for (const int64_t dim : {64, 128, 256}) {
      for (const bool causal : {false, true}) {
        for (const int64_t batch : {1, 4, 16}) {
          kernels.push_back(Attention(batch, length, 16, dim, causal));
        }
      }
    }
  }
  const MeasuredKernels measured = Made(KernelFamily::kAttention, std::move(kernels), truth);
  ASSERT_OK_AND_ASSIGN(
      const NamedCoefficients found,
      FitKernels(measured, {"mma_fraction", "softmax_dim", "tail", "floor_s", "causal_loss"},
                 {{"memory_fraction", 0.6}}, {{}}));
  EXPECT_NEAR(found.at("mma_fraction"), 0.7, 0.005);
  EXPECT_NEAR(found.at("softmax_dim"), 40, 1);
  EXPECT_NEAR(found.at("causal_loss"), 0.1, 0.01);
  EXPECT_EQ(found.at("memory_fraction"), 0.6);
}

TEST(FitKernels, RecoversBandwidthAndFloor) {
  const MeasuredKernels measured =
      Made(KernelFamily::kMemory, {Moving(1e5), Moving(1e6), Moving(1e7), Moving(1e8), Moving(1e9)},
           {{"memory_fraction", 0.85}, {"floor_s", 3e-6}});
  ASSERT_OK_AND_ASSIGN(const NamedCoefficients found,
                       FitKernels(measured, {"memory_fraction", "floor_s"}, {}, {{}}));
  EXPECT_NEAR(found.at("memory_fraction"), 0.85, 1e-3);
  EXPECT_NEAR(found.at("floor_s"), 3e-6, 1e-8);
}

// Milliseconds for seconds and thousandfold rates: the same shares of peak.
TEST(FitKernels, FindsTheSameSharesInOtherUnits) {
  MeasuredKernels measured = MadeProducts(kProduct);
  MeasuredKernels scaled = measured;
  scaled.device.bf16_flops /= 1.25;
  scaled.device.fp16_flops /= 1.25;
  scaled.device.memory_bytes_per_s /= 1.25;
  for (double& seconds : scaled.seconds) seconds *= 1.25;
  const std::vector<std::string> shares = {"mma_fraction", "wave_quantization", "memory_fraction"};
  NamedCoefficients known = kProduct;
  for (const std::string& name : shares) known.erase(name);
  known["sustained_loss"] = 0;
  NamedCoefficients longer = known;
  longer["floor_s"] *= 1.25;
  ASSERT_OK_AND_ASSIGN(const auto one, FitKernels(measured, shares, known, kStarts));
  ASSERT_OK_AND_ASSIGN(const auto other, FitKernels(scaled, shares, longer, kStarts));
  for (const std::string& name : shares) EXPECT_NEAR(one.at(name), other.at(name), 1e-3) << name;
}

TEST(FitKernels, IsDeterministic) {
  const MeasuredKernels measured = MadeProducts(kProduct);
  EXPECT_EQ(*FitKernels(measured, kFitted, {}, kStarts),
            *FitKernels(measured, kFitted, {}, kStarts));
}

TEST(FitKernels, NamesWhatIsWrong) {
  MeasuredKernels measured = MadeProducts(kProduct);
  EXPECT_THAT(FitKernels(measured, {"speed"}, {}, {{}}).status().message(),
              HasSubstr("no coefficient `speed`; known: mma_fraction, tile_overhead_k"));
  measured.seconds[3] = 0;
  EXPECT_THAT(FitKernels(measured, kFitted, {}, {{}}).status().message(),
              HasSubstr("a kernel took 0 s"));
  measured.seconds.pop_back();
  EXPECT_THAT(FitKernels(measured, kFitted, {}, {{}}).status().message(),
              HasSubstr("300 kernels have 299 times and 300 weights"));
  EXPECT_THAT(FitKernels({}, kFitted, {}, {{}}).status().message(), HasSubstr("no kernel"));
  EXPECT_THAT(
      PriceKernels(KernelFamily::kGemm, DeviceType{}, {Gemm(16, 16, 16)}, {}).status().message(),
      HasSubstr("a size or a rate of the GPU is missing"));
}

TEST(WithWork, StatesFlopsAndBytesOfProductsAndAttention) {
  const DeviceType device = *CatalogueDevice("A100-SXM-80GB");
  const KernelSpec product = WithWork(Gemm(64, 32, 16), device);
  EXPECT_EQ(product.flops, 2 * 64 * 32 * 16);
  EXPECT_EQ(product.read_bytes, 2 * (64 * 16 + 16 * 32 + 64 * 32));
  const KernelSpec whole = WithWork(Attention(2, 1024, 8, 64, false), device);
  EXPECT_EQ(whole.flops, 4.0 * 2 * 8 * 1024 * 1024 * 64);
  EXPECT_EQ(WithWork(Attention(2, 1024, 8, 64, true), device).flops, whole.flops / 2);
  EXPECT_EQ(whole.read_bytes, 2.0 * 4 * 2 * 8 * 1024 * 64);
}

}  // namespace
}  // namespace plancast
