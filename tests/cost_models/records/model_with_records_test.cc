#include "cost_models/records/model_with_records.h"

#include <cmath>
#include <memory>
#include <thread>
#include <vector>

#include "tests/cost_models/catalogue_device.h"
#include "tests/cost_models/records/store_testing.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

KernelSpec Gemm(int64_t m, int64_t n = 1024, int64_t k = 512) {
  KernelSpec kernel;
  kernel.family = KernelFamily::kGemm;
  kernel.m = m, kernel.n = n, kernel.k = k;
  return *SpecOf(KeyOf(kernel));
}

// Records of kernels that all take `factor` times what the shipped model says.
class ModelWithRecordsTest : public ::testing::Test {
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

TEST_F(ModelWithRecordsTest, AnEmptyStoreChangesNoDigit) {
  const auto chain = Chain();
  for (int64_t m : {1, 100, 4096}) {
    const KernelCost a = *chain->Estimate(Gemm(m), device_), b = *base_->Estimate(Gemm(m), device_);
    EXPECT_EQ(a.seconds_alone, b.seconds_alone);
    EXPECT_EQ(a.sigma, b.sigma);
    EXPECT_EQ(a.provenance.source, b.provenance.source);
  }
}

TEST_F(ModelWithRecordsTest, AHitIsTheRecord) {
  KernelKey key = KeyOf(Gemm(4096));
  key.gpu = device_.name, key.library = "cublas", key.version = "12.4";
  ASSERT_OK(store_->Add(key, SampleOf(0x1.23456789abcdep-14)));
  const KernelCost cost = *Chain()->Estimate(Gemm(4096), device_);
  EXPECT_EQ(cost.seconds_alone, 0x1.23456789abcdep-14);
  EXPECT_EQ(cost.provenance.knowledge, Knowledge::kMeasured);
  EXPECT_THAT(cost.provenance.source, HasSubstr("cublas 12.4, measured once (test 2026-11-22)"));
  EXPECT_EQ(cost.factor, "H100-SXM-80GB/records");
  EXPECT_LT(cost.sigma, base_->Estimate(Gemm(4096), device_)->sigma);
  EXPECT_GT(cost.hbm_bytes, 0);
  // Not that version, not that GPU: as shipped.
  EXPECT_EQ(Chain({"", "cublas", "13"})->Estimate(Gemm(4096), device_)->provenance.knowledge,
            Knowledge::kCalibrated);
  EXPECT_EQ(Chain()->Estimate(Gemm(4096), *CatalogueDevice("A100-SXM-80GB"))->provenance.knowledge,
            Knowledge::kCalibrated);
}

TEST_F(ModelWithRecordsTest, BetweenRecordsTheModelIsCorrected) {
  AddAll(1.25);
  const auto chain = Chain();
  for (int64_t m : {700, 1500, 3000, 6000}) {
    const KernelCost cost = *chain->Estimate(Gemm(m, 1500, 3000), device_);
    const KernelCost model = *base_->Estimate(Gemm(m, 1500, 3000), device_);
    EXPECT_NEAR(cost.seconds_alone / model.seconds_alone, 1.25, 0.02) << m;
    EXPECT_EQ(cost.provenance.knowledge, Knowledge::kInterpolated);
    EXPECT_THAT(cost.provenance.source, HasSubstr("between 125 records of gemm bf16 forward"));
    EXPECT_LT(cost.sigma, model.sigma);
    EXPECT_LT(cost.factor_sigma, model.factor_sigma + 1e-12);
  }
}

TEST_F(ModelWithRecordsTest, FarFromRecordsTheModelStands) {
  AddAll(1.25);
  const auto chain = Chain();
  const KernelSpec far = Gemm(int64_t{1} << 34, 1, 1);
  EXPECT_NEAR(
      chain->Estimate(far, device_)->seconds_alone / base_->Estimate(far, device_)->seconds_alone,
      1, 0.02);
  EXPECT_NE(chain->Estimate(far, device_)->provenance.knowledge, Knowledge::kInterpolated);
}

TEST_F(ModelWithRecordsTest, AFusedEpilogueIsInterpolated) {
  AddAll(1.25);
  KernelSpec fused = Gemm(4096, 4096, 512);
  fused.read_bytes += 8.0 * 4096 * 4096;
  const KernelCost cost = *Chain()->Estimate(fused, device_);
  EXPECT_EQ(cost.provenance.knowledge, Knowledge::kInterpolated);
  EXPECT_NEAR(cost.seconds_alone / base_->Estimate(fused, device_)->seconds_alone, 1.25, 0.02);
}

TEST_F(ModelWithRecordsTest, OtherPassesAndTypesAreNotTouched) {
  AddAll(1.25);
  const auto chain = Chain();
  KernelSpec dgrad = Gemm(3000);
  dgrad.pass = GemmPass::kDgrad;
  EXPECT_EQ(chain->Estimate(dgrad, device_)->seconds_alone,
            base_->Estimate(dgrad, device_)->seconds_alone);
}

TEST_F(ModelWithRecordsTest, ThreadsGetEqualDigits) {
  AddAll(1.25);
  const auto chain = Chain();
  std::vector<std::vector<double>> answers(4);
  std::vector<std::thread> threads;
  for (auto& mine : answers) {
    threads.emplace_back([&] {
      for (int64_t m = 600; m < 700; ++m) {
        mine.push_back(chain->Estimate(Gemm(m), device_)->seconds_alone);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& mine : answers) EXPECT_EQ(mine, answers[0]);
}

}  // namespace
}  // namespace plancast
