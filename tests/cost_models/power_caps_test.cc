#include "cost_models/power_caps.h"

#include <cmath>
#include <string>

#include "cluster/machine.h"
#include "cost_models/attention_model.h"
#include "cost_models/coefficients/coefficient_tables.h"
#include "cost_models/gemm_model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cost_models/catalogue_device.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

constexpr char kHalf[] =
    R"(cap { gpu: "a" dtype: "bf16" board_watts: 400 watts: 100 share: 0.5 source: "s" })";

TEST(PowerCapsTest, TheShareIsAPowerOfThePowerThroughWhatWasMeasured) {
  ASSERT_OK_AND_ASSIGN(const PowerCaps caps, PowerCaps::Parse(kHalf, "half"));
  EXPECT_DOUBLE_EQ(*caps.Kept("a", "bf16", 0.25), 0.5);
  EXPECT_DOUBLE_EQ(*caps.Kept("a", "bf16", 0.0625), 0.25);
  EXPECT_EQ(*caps.Kept("a", "bf16", 1), 1);
  EXPECT_EQ(*caps.Kept("a", "bf16", 1.5), 1);
  EXPECT_FALSE(caps.Kept("a", "fp8", 0.5).has_value());
  EXPECT_FALSE(caps.Kept("b", "bf16", 0.5).has_value());
}

TEST(PowerCapsTest, MistakesAreNamed) {
  const auto parse = [](const std::string& text) {
    return PowerCaps::Parse(text, "mine.textproto").status();
  };
  EXPECT_THAT(parse(std::string(kHalf) + kHalf),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("mine.textproto: `a`, bf16: it is there twice")));
  EXPECT_THAT(
      parse(R"(cap { gpu: "a" dtype: "bf16" board_watts: 400 watts: 500 share: 0.5 })"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("watts is 500 and board_watts 400")));
  EXPECT_THAT(parse(R"(cap { gpu: "a" dtype: "bf16" board_watts: 400 watts: 100 share: 2 })"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("share is 2")));
}

// pytorch/FBGEMM pull request 2546: cuBLAS in bf16 on an H100 under 500 W.
TEST(PowerCapsTest, ProductsUnder500WattsRunAtThePublishedRates) {
  ASSERT_OK_AND_ASSIGN(const DeviceType capped, CatalogueDevice("H100-SXM-96GB-HBM2e"));
  ASSERT_EQ(capped.tdp_watts, 500);
  const GemmTileModel model(CoefficientTables::Shipped());
  struct Published {
    int64_t m, n, k;
    double tflops;
  };
  for (const Published& p :
       {Published{8192, 8192, 8192, 585.23}, Published{65536, 7168, 8192, 575.12},
        Published{65536, 8192, 3584, 546.31}}) {
    KernelSpec kernel;
    kernel.family = KernelFamily::kGemm;
    kernel.m = p.m;
    kernel.n = p.n;
    kernel.k = p.k;
    const auto cost = model.Estimate(kernel, capped);
    ASSERT_TRUE(cost.has_value());
    const double flops = 2.0 * static_cast<double>(p.m * p.n) * static_cast<double>(p.k);
    EXPECT_NEAR(flops / cost->seconds_alone / 1e12 / p.tflops, 1, 0.03) << p.m << " " << p.k;
  }
}

TEST(PowerCapsTest, AKernelThatDrawsLessLosesLess) {
  ASSERT_OK_AND_ASSIGN(const DeviceType whole, CatalogueDevice("H100-SXM-80GB"));
  DeviceType capped = whole;
  capped.name = "capped";
  capped.tdp_watts = 500;
  const AttentionModel model(CoefficientTables::Shipped());
  KernelSpec kernel;
  kernel.family = KernelFamily::kAttention;
  kernel.heads = kernel.kv_heads = 32;
  kernel.q_len = kernel.kv_len = 8192;
  kernel.head_dim = kernel.head_dim_v = 128;
  kernel.causal = true;
  const auto loss = [&](const std::string& library) {
    kernel.library = library;
    return model.Estimate(kernel, capped)->seconds_alone /
           model.Estimate(kernel, whole)->seconds_alone;
  };
  EXPECT_GT(loss("flash-attention-3"), 1.2);
  // Takes 1.75 times as long and draws 0.83 times as much, of which 0.86 is left under the cap.
  EXPECT_NEAR(loss("flash-attention-2"), 1.12, 0.01);
}

}  // namespace
}  // namespace plancast
