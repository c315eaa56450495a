#include "cost_models/attention_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cost_models/catalogue_device.h"

namespace plancast {
namespace {

using ::testing::AllOf;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Lt;

KernelSpec Attention(int64_t batch, int64_t heads, int64_t length, int64_t dim = 128) {
  KernelSpec spec;
  spec.family = KernelFamily::kAttention;
  spec.batch = batch;
  spec.heads = spec.kv_heads = heads;
  spec.q_len = spec.kv_len = length;
  spec.head_dim = spec.head_dim_v = dim;
  spec.causal = true;
  return spec;
}

KernelCost Price(const KernelSpec& spec, absl::string_view gpu) {
  return AttentionModel(CoefficientTables::Shipped()).Estimate(spec, *CatalogueDevice(gpu)).value();
}

double Seconds(const KernelSpec& spec, absl::string_view gpu) {
  return Price(spec, gpu).seconds_alone;
}

constexpr absl::string_view kGpus[] = {"A100-SXM-80GB", "H100-SXM-80GB", "B200-SXM", "GB200",
                                       "V100-SXM-16GB"};

TEST(AttentionModel, IsNeverFasterThanTheNominalPeak) {
  for (absl::string_view gpu : kGpus) {
    DeviceType device = *CatalogueDevice(gpu);
    double peak = device.bf16_flops > 0 ? device.bf16_flops : device.fp16_flops;
    for (int64_t length : {128, 1000, 4096, 65536}) {
      for (bool causal : {false, true}) {
        for (bool backward : {false, true}) {
          KernelSpec spec = Attention(1, 16, length);
          spec.causal = causal;
          spec.backward = backward;
          SCOPED_TRACE(spec.DebugString());
          double pairs = 16.0 * length * length * (causal ? 0.5 : 1.0);
          EXPECT_GE(Seconds(spec, gpu), pairs * 4 * 128 * (backward ? 2.5 : 1) / peak);
        }
      }
    }
  }
}

TEST(AttentionModel, BackwardTakesAboutThreeTimesForward) {
  for (absl::string_view gpu : kGpus) {
    KernelSpec forward = Attention(2, 32, 8192), backward = forward;
    backward.backward = true;
    EXPECT_THAT(Seconds(backward, gpu) / Seconds(forward, gpu), AllOf(Gt(2.5), Lt(3.7))) << gpu;
  }
}

// Kernels whose values have another dim than their queries take longer backward, with the same
// FLOPs (192 and 128 elements beside 160 and 160), and in 8 bits less so.
TEST(AttentionModel, LatentHeadsHaveBackwardKernelsOfTheirOwn) {
  const auto backward = [](DType dtype, int64_t dim, int64_t dim_v, bool is = true) {
    KernelSpec spec = Attention(2, 128, 32768, dim);
    spec.head_dim_v = dim_v;
    spec.dtype = dtype;
    spec.backward = is;
    return Seconds(spec, "GB300") / (is ? 6 * dim + 4 * dim_v : 2 * dim + 2 * dim_v);
  };
  const double latent = backward(DType::kBf16, 192, 128) / backward(DType::kBf16, 160, 160);
  EXPECT_THAT(latent, AllOf(Gt(1.15), Lt(1.3)));
  EXPECT_LT(backward(DType::kMxfp8, 192, 128), backward(DType::kMxfp8, 160, 160));
  EXPECT_NEAR(backward(DType::kBf16, 192, 128, false) / backward(DType::kBf16, 160, 160, false), 1,
              0.01);
}

TEST(AttentionModel, ACausalMaskSavesAboutHalf) {
  for (absl::string_view gpu : kGpus) {
    KernelSpec causal = Attention(1, 32, 16384), full = causal;
    full.causal = false;
    EXPECT_THAT(Seconds(causal, gpu) / Seconds(full, gpu), AllOf(Gt(0.5), Lt(0.7))) << gpu;
  }
}

TEST(AttentionModel, SmallHeadDimensionsSustainLess) {
  // The same products, in twice as many scores.
  EXPECT_GT(Seconds(Attention(1, 64, 8192, 64), "H100-SXM-80GB"),
            1.15 * Seconds(Attention(1, 32, 8192, 128), "H100-SXM-80GB"));
}

TEST(AttentionModel, TwoHalvesOfTheKeysCostAtLeastTheWhole) {
  // As in ring context parallelism: one block of queries against parts of the keys.
  KernelSpec whole = Attention(1, 8, 8192);
  whole.causal = false;
  KernelSpec half = whole;
  half.kv_len /= 2;
  EXPECT_GE(2 * Seconds(half, "A100-SXM-80GB"), Seconds(whole, "A100-SXM-80GB"));
}

TEST(AttentionModel, FewThreadBlocksLeaveSmsIdle) {
  EXPECT_LT(Price(Attention(1, 1, 1024), "A100-SXM-80GB").sm_fraction, 0.1);
  EXPECT_DOUBLE_EQ(Price(Attention(8, 32, 1024), "A100-SXM-80GB").sm_fraction, 1);
}

// Measured by cudnn-frontend's benchmarks: two sequences, 64 heads of 8 groups, a causal mask.
TEST(AttentionModel, EightBitsHaveFiguresOfTheirOwn) {
  KernelSpec spec = Attention(2, 64, 8192);
  spec.kv_heads = 8;
  const auto microseconds = [&spec](DType dtype, bool backward) {
    spec.dtype = dtype;
    spec.backward = backward;
    return Seconds(spec, "GB200") * 1e6;
  };
  EXPECT_NEAR(microseconds(DType::kBf16, false), 1397, 0.12 * 1397);
  EXPECT_NEAR(microseconds(DType::kFp8, false), 1074, 0.12 * 1074);
  EXPECT_NEAR(microseconds(DType::kMxfp8, false), 1156, 0.12 * 1156);
  EXPECT_NEAR(microseconds(DType::kFp8, true), 3781, 0.12 * 3781);
  EXPECT_NEAR(microseconds(DType::kMxfp8, true), 4272, 0.12 * 4272);
}

TEST(AttentionModel, OtherTypesOfEightAndFourBitsRunInSixteen) {
  KernelSpec bf16 = Attention(1, 32, 8192), other = bf16;
  for (const DType type : {DType::kFp8Block, DType::kNvfp4}) {
    other.dtype = type;
    EXPECT_DOUBLE_EQ(Seconds(bf16, "H100-SXM-80GB"), Seconds(other, "H100-SXM-80GB"));
  }
  // Nor has an A100 units for fewer bits.
  other.dtype = DType::kFp8;
  EXPECT_DOUBLE_EQ(Seconds(bf16, "A100-SXM-80GB"), Seconds(other, "A100-SXM-80GB"));
}

// As products: cost_models/data/power_caps.textproto.
TEST(AttentionModel, ACapOnPowerHoldsItBack) {
  const KernelSpec large = Attention(4, 32, 16384);
  const double whole = Seconds(large, "H100-SXM-80GB");
  const double capped = Seconds(large, "H100-SXM-96GB-HBM2e");  // 500 W for 700
  EXPECT_GT(capped, 1.26 * whole);
  EXPECT_LT(capped, 1.3 * whole);
}

TEST(AttentionModel, SaysHowItKnows) {
  KernelCost own = Price(Attention(1, 8, 4096), "A100-SXM-80GB");
  EXPECT_EQ(own.provenance.knowledge, Knowledge::kCalibrated);
  EXPECT_EQ(own.factor, "A100-SXM-80GB/attention");
  KernelSpec backward = Attention(1, 8, 4096);
  backward.backward = true;
  KernelCost guessed = Price(backward, "A100-SXM-80GB");
  EXPECT_EQ(guessed.provenance.knowledge, Knowledge::kExtrapolated);
  EXPECT_THAT(guessed.provenance.source, HasSubstr("backward"));
  EXPECT_GT(guessed.factor_sigma, own.factor_sigma);
  EXPECT_EQ(Price(backward, "GB200").provenance.knowledge, Knowledge::kCalibrated);
  EXPECT_EQ(Price(backward, "L40S").provenance.knowledge, Knowledge::kExtrapolated);
}

TEST(AttentionModel, LeavesOtherKernelsAlone) {
  AttentionModel model(CoefficientTables::Shipped());
  DeviceType device = *CatalogueDevice("A100-SXM-80GB");
  EXPECT_FALSE(model.Estimate(KernelSpec{}, device).has_value());
  EXPECT_FALSE(model.Estimate(Attention(1, 0, 128), device).has_value());
}

}  // namespace
}  // namespace plancast
