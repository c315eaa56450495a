#include "cost_models/records/model_with_records.h"

#include "tests/cost_models/records/chain_testing.h"

namespace plancast {
namespace {

using ModelWithRecordsTest = ChainTest;

TEST_F(ModelWithRecordsTest, AnEmptyStoreChangesNoDigit) {
  const auto chain = Chain();
  for (int64_t m : {1, 100, 4096}) {
    const KernelCost a = *chain->Estimate(Gemm(m), device_), b = *base_->Estimate(Gemm(m), device_);
    EXPECT_EQ(a.seconds_alone, b.seconds_alone);
    EXPECT_EQ(a.sigma, b.sigma);
    EXPECT_EQ(a.provenance.source, b.provenance.source);
  }
}

TEST_F(ModelWithRecordsTest, OtherPassesAndTypesAreNotTouched) {
  AddAll(1.25);
  const auto chain = Chain();
  KernelSpec dgrad = Gemm(3000);
  dgrad.pass = GemmPass::kDgrad;
  EXPECT_EQ(chain->Estimate(dgrad, device_)->seconds_alone,
            base_->Estimate(dgrad, device_)->seconds_alone);
}

// What is measured goes before what is near, and that before the model.
TEST_F(ModelWithRecordsTest, TheBestKnowledgeAnswers) {
  AddAll(1.25);
  const auto chain = Chain();
  const auto known = [&](const KernelSpec& kernel) {
    return chain->Estimate(kernel, device_)->provenance.knowledge;
  };
  EXPECT_EQ(known(Gemm(1024, 1024, 1024)), Knowledge::kMeasured);
  EXPECT_EQ(known(Gemm(1025, 1024, 1024)), Knowledge::kInterpolated);
  EXPECT_EQ(known(Gemm(int64_t{1} << 34, 1, 1)), Knowledge::kCalibrated);
}

}  // namespace
}  // namespace plancast
