#include "cost_models/datasheet_model.h"

#include <gtest/gtest.h>

#include "tests/cost_models/catalogue_device.h"

namespace plancast {
namespace {

double Seconds(const KernelSpec& spec, const DeviceType& device) {
  return DatasheetModel().Estimate(spec, device).value().seconds_alone;
}

// 312 TFLOP/s and 2,039 GB/s: NVIDIA's data sheet of the A100 80GB SXM.
TEST(DatasheetModel, TakesTheLongerOfPeakAndBandwidth) {
  const DeviceType device = *CatalogueDevice("A100-SXM-80GB");
  KernelSpec product;
  product.family = KernelFamily::kGemm;
  product.flops = 312e12;
  EXPECT_DOUBLE_EQ(Seconds(product, device), 1);
  product.read_bytes = 2039e9;
  product.write_bytes = 2039e9;
  EXPECT_DOUBLE_EQ(Seconds(product, device), 2);
}

TEST(DatasheetModel, OtherKernelsDoNotRunOnTensorCores) {
  const DeviceType device = *CatalogueDevice("A100-SXM-80GB");
  KernelSpec kernel;
  kernel.family = KernelFamily::kMemory;
  kernel.flops = 19.5e12;  // fp32
  EXPECT_DOUBLE_EQ(Seconds(kernel, device), 1);
}

TEST(DatasheetModel, AnswersForADeviceThatStatesNothing) {
  KernelSpec spec;
  spec.flops = 1e12;
  EXPECT_EQ(Seconds(spec, DeviceType{}), 0);
}

}  // namespace
}  // namespace plancast
