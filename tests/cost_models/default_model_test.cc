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

// In a balanced ring a rank's later steps are all queries over half of the keys that come, or half
// of the queries over all of them; the last rank has the first kind alone, whose results go over
// all its queries. Bodies price that rank (docs/context_parallel.md): others take hardly longer.
TEST(DefaultKernelCostModel, TheLastRankOfABalancedRingIsAmongTheSlowest) {
  const auto model = DefaultKernelCostModel();
  for (const char* gpu : {"A100-SXM-80GB", "H100-SXM-80GB", "B200-SXM"}) {
    const DeviceType device = *CatalogueDevice(gpu);
    for (const int64_t positions : {2'048, 8'192, 32'768}) {
      for (const bool backward : {false, true}) {
        const auto step = [&](int64_t q, int64_t kv) {
          KernelSpec attention;
          attention.family = KernelFamily::kAttention;
          attention.heads = 32, attention.kv_heads = 8;
          attention.q_len = q, attention.kv_len = kv;
          attention.head_dim = attention.head_dim_v = 128;
          attention.backward = backward;
          KernelSpec merge;  // results, or gradients of queries
          merge.write_bytes = 2.0 * 32 * 128 * static_cast<double>(q);
          merge.read_bytes = 2 * merge.write_bytes;
          return model->Estimate(attention, device)->seconds_alone +
                 model->Estimate(merge, device)->seconds_alone;
        };
        const double last = step(positions, positions / 2), first = step(positions / 2, positions);
        const double least = positions > 4096 ? 0.97 : 0.93;
        EXPECT_GE(last, least * first) << gpu << " " << positions << " " << backward;
        // Blocks of keys go over all queries: few of them leave SMs idle for the longest one.
        const double most = positions > 4096 ? 1.25 : 1.4;
        EXPECT_LE(last, most * first) << gpu << " " << positions << " " << backward;
      }
    }
  }
}

}  // namespace
}  // namespace plancast
