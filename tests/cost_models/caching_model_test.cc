#include "cost_models/caching_model.h"

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/cost_models/catalogue_device.h"

namespace plancast {
namespace {

class CountingModel : public KernelCostModel {
 public:
  std::optional<KernelCost> Estimate(const KernelSpec& kernel,
                                     const DeviceType& device) const override {
    ++calls;
    if (kernel.m == 13) return std::nullopt;
    KernelCost cost;
    cost.seconds_alone = static_cast<double>(kernel.m) + device.sms;
    return cost;
  }
  mutable std::atomic<int> calls{0};
};

KernelSpec Gemm(int64_t m) {
  KernelSpec spec;
  spec.family = KernelFamily::kGemm;
  spec.m = m;
  spec.n = spec.k = 4096;
  return spec;
}

TEST(CachingModel, AsksOncePerKernelAndDevice) {
  auto counting = std::make_shared<CountingModel>();
  CachingModel cache(counting);
  DeviceType a, b;
  a.name = "a";
  b.name = "b";
  b.sms = 100;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(cache.Estimate(Gemm(1), a)->seconds_alone, 1);
    EXPECT_EQ(cache.Estimate(Gemm(2), a)->seconds_alone, 2);
    EXPECT_EQ(cache.Estimate(Gemm(1), b)->seconds_alone, 101);
    EXPECT_FALSE(cache.Estimate(Gemm(13), a).has_value());
    EXPECT_EQ(cache.Find(Gemm(13), a), nullptr);
  }
  EXPECT_EQ(counting->calls, 4);
  EXPECT_EQ(cache.size(), 4);
}

TEST(CachingModel, AnswersAsTheModelDoes) {
  auto model = DefaultKernelCostModel();
  CachingModel cache(model);
  DeviceType device = *CatalogueDevice("H100-SXM-80GB");
  for (int repeat = 0; repeat < 2; ++repeat) {
    for (int64_t m = 1; m < 5000; m = m * 3 + 1) {
      KernelCost cached = *cache.Estimate(Gemm(m), device);
      KernelCost asked = *model->Estimate(Gemm(m), device);
      EXPECT_EQ(cached.seconds_alone, asked.seconds_alone);
      EXPECT_EQ(cached.hbm_bytes, asked.hbm_bytes);
      EXPECT_EQ(cached.provenance.source, asked.provenance.source);
      EXPECT_EQ(cached.factor, asked.factor);
    }
  }
}

TEST(CachingModel, ServesManyThreads) {
  CachingModel cache(std::make_shared<CountingModel>());
  DeviceType device;
  device.name = "a";
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20000; ++i) {
        int64_t m = 20 + i % 200;
        if (cache.Find(Gemm(m), device)->seconds_alone != static_cast<double>(m)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(cache.size(), 200);
}

}  // namespace
}  // namespace plancast
