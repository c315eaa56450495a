#include <gtest/gtest.h>

#include "cost_models/kernel_cost.h"
#include "tests/cost_models/catalogue_device.h"

namespace plancast {
namespace {

TEST(DefaultKernelCostModel, AlwaysAnswers) {
  auto model = DefaultKernelCostModel();
  for (KernelFamily family : {KernelFamily::kGemm, KernelFamily::kAttention, KernelFamily::kMemory,
                              KernelFamily::kOptimizer}) {
    KernelSpec spec;
    spec.family = family;
    spec.flops = 1e9;
    spec.read_bytes = 1e6;
    for (const DeviceType& device : {DeviceType{}, *CatalogueDevice("H100-SXM-80GB")}) {
      std::optional<KernelCost> cost = model->Estimate(spec, device);
      ASSERT_TRUE(cost.has_value());
      EXPECT_GT(cost->seconds_alone, 0);
      EXPECT_FALSE(cost->provenance.source.empty());
      EXPECT_GT(cost->factor_sigma, 0);
      EXPECT_GT(cost->sigma, 0);
    }
  }
}

TEST(DefaultKernelCostModel, PrefersTheTileModelToTheRoofline) {
  KernelSpec spec;
  spec.family = KernelFamily::kGemm;
  spec.m = spec.n = spec.k = 4096;
  KernelCost cost = *DefaultKernelCostModel()->Estimate(spec, *CatalogueDevice("A100-SXM-80GB"));
  EXPECT_EQ(cost.provenance.knowledge, Knowledge::kCalibrated);
}

}  // namespace
}  // namespace plancast
