#include "cost_models/records/interpolation_model.h"

#include <thread>
#include <vector>

#include "tests/cost_models/records/chain_testing.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;
using InterpolationModelTest = ChainTest;

TEST_F(InterpolationModelTest, BetweenRecordsTheModelIsCorrected) {
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

TEST_F(InterpolationModelTest, FarFromRecordsTheModelStands) {
  AddAll(1.25);
  const auto chain = Chain();
  const KernelSpec far = Gemm(int64_t{1} << 34, 1, 1);
  EXPECT_NEAR(
      chain->Estimate(far, device_)->seconds_alone / base_->Estimate(far, device_)->seconds_alone,
      1, 0.02);
  EXPECT_NE(chain->Estimate(far, device_)->provenance.knowledge, Knowledge::kInterpolated);
}

TEST_F(InterpolationModelTest, AFusedEpilogueIsInterpolated) {
  AddAll(1.25);
  KernelSpec fused = Gemm(4096, 4096, 512);
  fused.read_bytes += 8.0 * 4096 * 4096;
  const KernelCost cost = *Chain()->Estimate(fused, device_);
  EXPECT_EQ(cost.provenance.knowledge, Knowledge::kInterpolated);
  EXPECT_NEAR(cost.seconds_alone / base_->Estimate(fused, device_)->seconds_alone, 1.25, 0.02);
}

TEST_F(InterpolationModelTest, ThreadsGetEqualDigits) {
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
