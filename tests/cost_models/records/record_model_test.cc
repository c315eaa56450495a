#include "cost_models/records/record_model.h"

#include "tests/cost_models/records/chain_testing.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;
using RecordModelTest = ChainTest;

TEST_F(RecordModelTest, AHitIsTheRecord) {
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

}  // namespace
}  // namespace plancast
