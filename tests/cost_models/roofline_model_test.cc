#include "cost_models/roofline_model.h"

#include <gtest/gtest.h>

#include "tests/cost_models/catalogue_device.h"

namespace plancast {
namespace {

KernelCost Price(const KernelSpec& spec, const DeviceType& device) {
  return RooflineModel(CoefficientTables::Shipped()).Estimate(spec, device).value();
}

TEST(RooflineModel, TakesTheSlowerOfComputeAndMemory) {
  DeviceType device = *CatalogueDevice("A100-SXM-80GB");
  KernelSpec compute;
  compute.flops = 1e13;
  KernelSpec memory;
  memory.read_bytes = 1e9;
  KernelSpec both = compute;
  both.read_bytes = 1e9;
  EXPECT_GT(Price(compute, device).seconds_alone, 1e13 / 312e12);
  EXPECT_GT(Price(memory, device).seconds_alone, 1e9 / 2039e9);
  EXPECT_DOUBLE_EQ(Price(both, device).seconds_alone, Price(compute, device).seconds_alone);
  EXPECT_EQ(Price(both, device).provenance.knowledge, Knowledge::kAnalytic);
}

TEST(RooflineModel, AnswersForADeviceThatStatesNothing) {
  KernelSpec spec;
  spec.flops = 1e12;
  EXPECT_GT(Price(spec, DeviceType{}).seconds_alone, 0);
}

}  // namespace
}  // namespace plancast
