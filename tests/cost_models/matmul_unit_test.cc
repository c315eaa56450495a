#include "cost_models/matmul_unit.h"

#include <gtest/gtest.h>

#include "tests/cost_models/catalogue_device.h"

namespace plancast {
namespace {

TEST(MatmulUnit, RunsEachTypeInTheNarrowestUnitThatHoldsIt) {
  DeviceType a100 = *CatalogueDevice("A100-SXM-80GB"), v100 = *CatalogueDevice("V100-SXM-16GB"),
             p4 = *CatalogueDevice("P4"), b200 = *CatalogueDevice("B200-SXM");
  EXPECT_EQ(MatmulUnitFor(a100, DType::kBf16).runs, DType::kBf16);
  EXPECT_EQ(MatmulUnitFor(a100, DType::kNvfp4).runs, DType::kBf16);
  EXPECT_EQ(MatmulUnitFor(v100, DType::kBf16).runs, DType::kFp16);
  EXPECT_EQ(MatmulUnitFor(v100, DType::kTf32).runs, DType::kFp32);
  EXPECT_EQ(MatmulUnitFor(p4, DType::kBf16).runs, DType::kFp32);
  EXPECT_EQ(MatmulUnitFor(b200, DType::kNvfp4).peak_flops, 9e15);
  EXPECT_EQ(MatmulUnitFor(b200, DType::kMxfp8).coefficients, "fp8");
}

TEST(MatmulUnit, Tf32BorrowsTheCoefficientsOf16Bits) {
  MatmulUnit unit = MatmulUnitFor(*CatalogueDevice("A100-SXM-80GB"), DType::kTf32);
  EXPECT_EQ(unit.peak_flops, 156e12);
  EXPECT_EQ(unit.coefficients, "bf16");
  EXPECT_TRUE(unit.borrowed);
}

TEST(MatmulUnit, ADeviceThatStatesNothingHasNone) {
  EXPECT_EQ(MatmulUnitFor(DeviceType{}, DType::kFp8).peak_flops, 0);
  EXPECT_EQ(SpeedGrade(DeviceType{}), 0);
}

TEST(SpeedGrade, TellsSmDesigns) {
  auto grade = [](absl::string_view gpu) { return SpeedGrade(*CatalogueDevice(gpu)); };
  EXPECT_NEAR(grade("H200-SXM") / grade("H100-PCIE-80GB"), 1, 0.05);
  EXPECT_NEAR(grade("V100-SXM-16GB") / grade("T4"), 1, 0.05);
  EXPECT_GT(grade("B200-SXM") / grade("H100-SXM-80GB"), 1.5);
}

}  // namespace
}  // namespace plancast
