#include "cost_models/memory_model.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cost_models/catalogue_device.h"

namespace plancast {
namespace {

KernelSpec Moving(double bytes, KernelFamily family = KernelFamily::kMemory) {
  KernelSpec spec;
  spec.family = family;
  spec.read_bytes = bytes * 0.6;
  spec.write_bytes = bytes * 0.4;
  return spec;
}

KernelCost Price(const KernelSpec& spec, absl::string_view gpu) {
  return MemoryModel(CoefficientTables::Shipped()).Estimate(spec, *CatalogueDevice(gpu)).value();
}

TEST(MemoryModel, LargeKernelsReachTheSustainedBandwidth) {
  // 0.85 of A100's 2,039 GB/s.
  EXPECT_NEAR(1e10 / Price(Moving(1e10), "A100-SXM-80GB").seconds_alone / 2039e9, 0.85, 0.02);
}

TEST(MemoryModel, IsNeverFasterThanTheNominalBandwidth) {
  for (absl::string_view gpu : {"A100-SXM-80GB", "H100-SXM-80GB", "B200-SXM", "T4", "MI300X"}) {
    for (double bytes : {1.0, 1e5, 1e8, 1e11}) {
      EXPECT_GE(Price(Moving(bytes), gpu).seconds_alone,
                bytes / CatalogueDevice(gpu)->memory_bytes_per_s);
    }
  }
}

// Bytes a second of kernels that move so many; without the floor of a launch.
double Rate(double bytes, absl::string_view gpu) {
  return bytes / (Price(Moving(bytes), gpu).seconds_alone - Price(Moving(0), gpu).seconds_alone);
}

// On GB200 quantisation of 25 to 300 MB reaches 0.5 to 0.59 of the memory's rate, cudnn's norms
// 0.55 to 0.77 backward and 0.73 to 0.8 forward; quantisation of 1.6 GB 0.84 (elementwise.csv).
TEST(MemoryModel, AnSmPassesSoManyBytesAClock) {
  const DeviceType device = *CatalogueDevice("GB200");
  const double passing = 16.5 * device.sms * device.boost_mhz * 1e6;
  for (double bytes : {25e6, 1e8, 3e8}) EXPECT_NEAR(Rate(bytes, "GB200") / passing, 1, 1e-6);
  EXPECT_NEAR(passing / device.memory_bytes_per_s, 0.65, 0.01);
  EXPECT_NEAR(Rate(1.6e9, "GB200") / device.memory_bytes_per_s, 0.82, 0.01);
  EXPECT_NEAR(Rate(1e11, "GB200") / Rate(1e10, "GB200"), 1, 1e-6);
}

// Memory of these brings less to each SM than it can pass.
TEST(MemoryModel, EarlierMemoryIsPassedOnAtOnce) {
  for (absl::string_view gpu : {"A100-SXM-80GB", "H100-SXM-80GB", "T4", "MI300X"}) {
    EXPECT_NEAR(Rate(5e7, gpu) / Rate(5e9, gpu), 1, 1e-6) << gpu;
  }
}

TEST(MemoryModel, RandomNumbersTakeInstructions) {
  // 1e9 numbers of 28 instructions on 108 SMs of 64 lanes at 1.41 GHz.
  KernelSpec dropout = Moving(5e9);
  const double moving = Price(dropout, "A100-SXM-80GB").seconds_alone;
  dropout.random_numbers = 1e9;
  const double drawing = 28e9 / (108 * 64 * 1.41e9);
  EXPECT_NEAR(Price(dropout, "A100-SXM-80GB").seconds_alone,
              std::cbrt(std::pow(moving, 3) + std::pow(drawing, 3)), 1e-5);
}

TEST(MemoryModel, WindowsTakeAsLongAsTheirPoints) {
  // 3.4 points a clock on each of 108 SMs at 1.41 GHz; 1.5 of wider numbers.
  KernelSpec windows = Moving(1e6);
  const double moving = Price(windows, "A100-SXM-80GB").seconds_alone;
  windows.window_points = 1e10;
  const double narrow = Price(windows, "A100-SXM-80GB").seconds_alone;
  EXPECT_NEAR(narrow, 1e10 / (3.4 * 108 * 1.41e9), 1e-5);
  for (const DType type : {DType::kTf32, DType::kFp32}) {
    windows.dtype = type;
    EXPECT_NEAR(Price(windows, "A100-SXM-80GB").seconds_alone, 3.4 / 1.5 * narrow, 1e-5);
  }
  // Whatever moves longer hides it.
  windows.window_points = 1;
  EXPECT_EQ(Price(windows, "A100-SXM-80GB").seconds_alone, moving);
}

TEST(MemoryModel, EachLaunchHasAFloor) {
  KernelSpec one = Moving(1000), four = one;
  four.launches = 4;
  EXPECT_GT(Price(one, "A100-SXM-80GB").seconds_alone, 1e-6);
  EXPECT_NEAR(Price(four, "A100-SXM-80GB").seconds_alone,
              4 * Price(one, "A100-SXM-80GB").seconds_alone, 1e-8);
}

// Layer norms of fp32 rows on an A100 (elementwise.csv, neusight): 0.82 of bandwidth with
// 2,048 columns, 0.58 with 8,192 and with 16,384, whose rows are read from memory twice.
TEST(MemoryModel, RowsThatDoNotStayInTheCacheAreReadTwice) {
  const auto share = [](double columns) {
    KernelSpec norm;
    norm.read_bytes = norm.write_bytes = norm.reread_bytes = 1e9;
    norm.row_bytes = 4 * columns;
    return 2e9 / Price(norm, "A100-PCIE-40GB").seconds_alone / 1555e9;
  };
  EXPECT_NEAR(share(2048), 0.82, 0.05);
  EXPECT_NEAR(share(8192), 0.58, 0.02);
  EXPECT_NEAR(share(16384), 0.58, 0.02);
  double last = share(1);
  for (double columns = 1; columns < 1e5; columns *= 1.2) {
    EXPECT_LE(share(columns), last);
    EXPECT_GE(share(columns), 0.9 * last);  // no cliff
    last = share(columns);
  }
}

TEST(MemoryModel, ATwiceReadTensorIsTraffic) {
  KernelSpec norm = Moving(1e9);
  norm.reread_bytes = 6e8;
  norm.row_bytes = 1e9;
  EXPECT_DOUBLE_EQ(Price(norm, "A100-SXM-80GB").hbm_bytes, 1.6e9);
  EXPECT_DOUBLE_EQ(TrafficOf(norm, DeviceType{}), 1e9);  // nothing is known of its cache
}

TEST(MemoryModel, GrowsWithBytes) {
  for (absl::string_view gpu : {"H100-SXM-80GB", "B200-SXM"}) {
    double last = 0;
    for (double bytes = 1; bytes < 1e12; bytes *= 1.05) {
      const double seconds = Price(Moving(bytes), gpu).seconds_alone;
      EXPECT_GT(seconds, last) << gpu << " at " << bytes;
      last = seconds;
    }
  }
}

TEST(MemoryModel, OptimizersAreBoundByMemoryToo) {
  EXPECT_DOUBLE_EQ(Price(Moving(1e9, KernelFamily::kOptimizer), "B200-SXM").seconds_alone,
                   Price(Moving(1e9), "B200-SXM").seconds_alone);
}

TEST(MemoryModel, LeavesOtherKernelsAlone) {
  MemoryModel model(CoefficientTables::Shipped());
  EXPECT_FALSE(model.Estimate(Moving(1, KernelFamily::kGemm), *CatalogueDevice("T4")).has_value());
  EXPECT_FALSE(model.Estimate(Moving(1), DeviceType{}).has_value());
}

}  // namespace
}  // namespace plancast
