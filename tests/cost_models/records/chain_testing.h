#ifndef PLANCAST_TESTS_COST_MODELS_RECORDS_CHAIN_TESTING_H_
#define PLANCAST_TESTS_COST_MODELS_RECORDS_CHAIN_TESTING_H_

#include <memory>
#include <vector>

#include "cost_models/records/model_with_records.h"
#include "tests/cost_models/catalogue_device.h"
#include "tests/cost_models/records/store_testing.h"
#include "tests/testing/status_matchers.h"

// Chains of cost models over a small store, for tests.

namespace plancast {

inline KernelSpec Gemm(int64_t m, int64_t n = 1024, int64_t k = 512) {
  KernelSpec kernel;
  kernel.family = KernelFamily::kGemm;
  kernel.m = m, kernel.n = n, kernel.k = k;
  return *SpecOf(KeyOf(kernel));
}

// Records of kernels that all take `factor` times what the shipped model says.
class ChainTest : public ::testing::Test {
 protected:
  void AddAll(double factor) {
    std::vector<Measurement> rows;
    for (int64_t m = 512; m <= 8192; m *= 2) {
      for (int64_t n = 512; n <= 8192; n *= 2) {
        for (int64_t k = 512; k <= 8192; k *= 2) {
          KernelKey key = KeyOf(Gemm(m, n, k));
          key.gpu = device_.name, key.library = "cublas", key.version = "12.4";
          const double seconds = factor * base_->Estimate(Gemm(m, n, k), device_)->seconds_alone;
          rows.push_back({static_cast<int64_t>(rows.size()), key, SampleOf(seconds)});
        }
      }
    }
    ASSERT_OK(store_->Ingest("all", rows));
  }
  std::shared_ptr<const KernelCostModel> Chain(const RecordFilter& filter = {}) {
    auto chain = KernelCostModelWith(*store_, filter);
    EXPECT_OK(chain.status());
    return *chain;
  }

  DeviceType device_ = *CatalogueDevice("H100-SXM-80GB");
  std::shared_ptr<const KernelCostModel> base_ = DefaultKernelCostModel();
  std::unique_ptr<RecordStore> store_ =
      *RecordStore::Open(FreshPath(), RecordStore::Access::kCreate);
};

}  // namespace plancast

#endif  // PLANCAST_TESTS_COST_MODELS_RECORDS_CHAIN_TESTING_H_
