#include "cost_models/interference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cost_models/catalogue_device.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

DeviceType A100() { return *CatalogueDevice("A100-SXM-80GB"); }

KernelCost Kernel(double seconds, double bytes, double sm_fraction = 1) {
  KernelCost cost;
  cost.seconds_alone = seconds;
  cost.hbm_bytes = bytes;
  cost.sm_fraction = sm_fraction;
  return cost;
}

// A kernel that moves `share` of what memory sustains.
KernelCost Bound(double share) {
  const double sustained = 1 / MemoryBoundness(A100(), Kernel(1e12, 1)) / 1e12;
  return Kernel(1, share * sustained);
}

TEST(Interference, AComputeBoundKernelLosesTheSmsThatTheCollectiveHolds) {
  EXPECT_DOUBLE_EQ(KernelSlowdown(A100(), {}, Bound(0), {24.0 / 108, 0}), 108.0 / 84);
  EXPECT_DOUBLE_EQ(CollectiveSlowdown(A100(), Bound(0), {24.0 / 108, 1e11}), 1);
}

TEST(Interference, AKernelThatLeavesSmsFreeLosesNothing) {
  EXPECT_DOUBLE_EQ(KernelSlowdown(A100(), {}, Kernel(1, 0, 0.5), {0.25, 0}), 1);
  EXPECT_DOUBLE_EQ(KernelSlowdown(A100(), {}, Kernel(1, 0, 0.9), {0.25, 0}), 1.2);
}

TEST(Interference, BothLoseWhereMemoryIsShort) {
  const KernelCost kernel = Bound(1);
  const double sustained = kernel.hbm_bytes;
  const CollectiveFootprint collective{0.2, 0.3 * sustained};
  EXPECT_DOUBLE_EQ(KernelSlowdown(A100(), {}, kernel, collective), 1.3);
  EXPECT_DOUBLE_EQ(CollectiveSlowdown(A100(), kernel, collective), 1.3);
  // Together they fill it just.
  EXPECT_DOUBLE_EQ(CollectiveSlowdown(A100(), Bound(0.7), collective), 1);
}

TEST(Interference, LiesBetweenBoundByMemoryAndByComputing) {
  const CollectiveFootprint collective{0.2, 0};
  EXPECT_DOUBLE_EQ(KernelSlowdown(A100(), {}, Bound(0), collective), 1.25);
  EXPECT_DOUBLE_EQ(KernelSlowdown(A100(), {}, Bound(0.4), collective), 1.15);
  EXPECT_DOUBLE_EQ(KernelSlowdown(A100(), {}, Bound(1), collective), 1);
}

TEST(Interference, AProductMayLoseMoreSmsThanTheCollectiveHolds) {
  KernelSpec product;
  product.family = KernelFamily::kGemm;
  const CollectiveFootprint collective{0.2, 0, 0.4};
  EXPECT_DOUBLE_EQ(KernelSlowdown(A100(), product, Bound(0), collective), 1 / 0.6);
  EXPECT_DOUBLE_EQ(KernelSlowdown(A100(), product, Bound(0.4), collective), 1.4);
  EXPECT_DOUBLE_EQ(KernelSlowdown(A100(), product, Kernel(1, 0, 0.6), collective), 1);
  // Other kernels lose what is held.
  EXPECT_DOUBLE_EQ(KernelSlowdown(A100(), {}, Bound(0), collective), 1.25);
}

TEST(Interference, AProductOnAnH100TakesAsLongBesideAGatherAsItWasMeasured) {
  const CollectiveFootprint inside = FootprintInside(*MachineFromPreset("dgx-h100:4"));
  KernelSpec product;
  product.family = KernelFamily::kGemm;
  const DeviceType device = *CatalogueDevice("H100-SXM-80GB");
  EXPECT_NEAR(KernelSlowdown(device, product, Kernel(1, 0), inside), 1.7, 0.01);
  const CollectiveFootprint a100 = FootprintInside(*MachineFromPreset("dgx-a100-80g:4"));
  EXPECT_EQ(a100.product_sm_fraction, a100.sm_fraction);
}

TEST(Interference, NoCollectiveSlowsNothing) {
  for (double share : {0.0, 0.5, 1.0}) {
    EXPECT_DOUBLE_EQ(KernelSlowdown(A100(), {}, Bound(share), {}), 1);
    EXPECT_DOUBLE_EQ(CollectiveSlowdown(A100(), Bound(share), {}), 1);
  }
}

TEST(Interference, FootprintsFollowTheLinks) {
  const Machine dgx = *MachineFromPreset("dgx-a100-80g:4");
  // 24 channels; 300 GB/s, 76 % of it, 2.5 bytes of memory a byte.
  EXPECT_DOUBLE_EQ(FootprintInside(dgx).sm_fraction, 24.0 / 108);
  EXPECT_DOUBLE_EQ(FootprintInside(dgx).memory_bytes_per_s, 300e9 * 0.76 * 2.5);
  // One member a host beside its own interface of 25 GB/s: two channels.
  EXPECT_DOUBLE_EQ(FootprintAcross(dgx, 1, 1).sm_fraction, 2.0 / 108);
  EXPECT_DOUBLE_EQ(FootprintAcross(dgx, 1, 1).memory_bytes_per_s, 25e9 * 0.89 * 5);
  EXPECT_DOUBLE_EQ(FootprintAcross(dgx, 8, 8).sm_fraction, 16.0 / 108);
  EXPECT_DOUBLE_EQ(FootprintAcross(dgx, 4, 1).memory_bytes_per_s, 25e9 / 4 * 0.89 * 5);
  // Where the interface carries 10 GB/s.
  EXPECT_DOUBLE_EQ(FootprintAcross(dgx, 4, 1, 10e9).memory_bytes_per_s, 10e9 / 4 * 5);
  EXPECT_EQ(FootprintAcross(dgx, 4, 1, 30e9).memory_bytes_per_s,
            FootprintAcross(dgx, 4, 1).memory_bytes_per_s);
}

TEST(Interference, KernelsMaySayHowManySmsTheyHold) {
  const Machine dgx = *MachineFromPreset("dgx-a100-80g:4");
  const CollectiveFootprint inside = FootprintInside(dgx, 20),
                            across = FootprintAcross(dgx, 8, 8, 1e9, 20);
  EXPECT_DOUBLE_EQ(inside.sm_fraction, 20.0 / 108);
  EXPECT_DOUBLE_EQ(across.sm_fraction, 20.0 / 108);
  EXPECT_EQ(inside.memory_bytes_per_s, FootprintInside(dgx).memory_bytes_per_s);
  EXPECT_EQ(across.memory_bytes_per_s, FootprintAcross(dgx, 8, 8, 1e9).memory_bytes_per_s);
}

TEST(Interference, EveryShippedGpuHasFiguresWithASource) {
  for (const std::string& name : MachinePresetNames()) {
    const Machine machine = *MachineFromPreset(name + ":2");
    EXPECT_NE(InterferenceTable::Shipped().Of(machine.device()).source, "") << name;
    const CollectiveFootprint inside = FootprintInside(machine);
    EXPECT_LT(inside.sm_fraction, 0.5) << name;
    // A collective leaves most of memory's bandwidth.
    EXPECT_LT(inside.memory_bytes_per_s, 0.7 * machine.device().memory_bytes_per_s) << name;
  }
}

TEST(Interference, GpusAreServedByNameThenByLikeness) {
  const auto table = InterferenceTable::Parse(
      R"(interference { gpu: "A" sms_inside: 7 } interference { sms_inside: 1 })", "table");
  ASSERT_OK(table);
  DeviceType device;
  device.name = "A";
  EXPECT_EQ(table->Of(device).sms_inside, 7);
  device.name = "B";
  EXPECT_EQ(table->Of(device).sms_inside, 1);
  device.like = "A";
  EXPECT_EQ(table->Of(device).sms_inside, 7);
}

TEST(Interference, RefusesFiguresOutOfRange) {
  const auto message = [](absl::string_view text) {
    return std::string(InterferenceTable::Parse(text, "table").status().message());
  };
  EXPECT_THAT(message("interference { sms_inside: -1 }"), HasSubstr("takes -1 SMs"));
  EXPECT_THAT(message("interference { link_fraction_network: 2 }"), HasSubstr("reaches 2"));
  EXPECT_THAT(message("interference { memory_per_byte_inside: nan }"), HasSubstr("moves nan"));
  EXPECT_THAT(message("interference { product_sms_per_held: 0.5 }"),
              HasSubstr("product_sms_per_held is 0.5"));
  EXPECT_THAT(message("interference { gpu: 'A' }"), HasSubstr("no entry serves"));
  EXPECT_THAT(message("interference {} interference {}"), HasSubstr("two entries"));
  EXPECT_THAT(message("interference { gpu: 'A' gpu: 'A' }"), HasSubstr("`A` is named twice"));
}

}  // namespace
}  // namespace plancast
