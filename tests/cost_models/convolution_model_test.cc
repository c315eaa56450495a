#include "cost_models/convolution_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cost_models/catalogue_device.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

// 64 images of 56 x 56 positions, 64 channels to 64, windows of `window` points.
KernelSpec Convolution(int64_t window, DType dtype, GemmPass pass = GemmPass::kForward) {
  constexpr int64_t kPositions = int64_t{64} * 56 * 56, kChannels = 64;
  const bool wgrad = pass == GemmPass::kWgrad;
  KernelSpec spec;
  spec.family = KernelFamily::kConvolution;
  spec.dtype = dtype;
  spec.pass = pass;
  spec.m = wgrad ? kChannels : kPositions;
  spec.n = wgrad ? kChannels * window : kChannels;
  spec.k = wgrad ? kPositions : kChannels * window;
  spec.window = window;
  spec.flops = 2.0 * static_cast<double>(kPositions * kChannels * kChannels * window);
  const double bytes = dtype == DType::kFp16 ? 2 : 4;
  spec.read_bytes = bytes * static_cast<double>(kPositions * kChannels);
  spec.write_bytes = spec.read_bytes;
  spec.channels_last = true;
  return spec;
}

KernelCost Price(const KernelSpec& spec, absl::string_view gpu) {
  return ConvolutionModel(CoefficientTables::Shipped())
      .Estimate(spec, *CatalogueDevice(gpu))
      .value();
}

double Seconds(const KernelSpec& spec, absl::string_view gpu) {
  return Price(spec, gpu).seconds_alone;
}

TEST(ConvolutionModel, IsNeverFasterThanMemory) {
  for (absl::string_view gpu :
       {"A100-SXM-80GB", "V100-SXM-16GB", "P100-PCIE-16GB", "H100-SXM-80GB"}) {
    for (DType dtype : {DType::kFp16, DType::kFp32}) {
      for (int64_t window : {1, 9, 25}) {
        const KernelSpec spec = Convolution(window, dtype);
        EXPECT_GE(Seconds(spec, gpu) * CatalogueDevice(gpu)->memory_bytes_per_s,
                  0.5 * (spec.read_bytes + spec.write_bytes));
      }
    }
  }
}

TEST(ConvolutionModel, WindowsOfThreeSaveMultiplicationsInFp32) {
  // Winograd's algorithm: nine times the direct multiplications, well below nine times
  // the time; a 5 x 5 window has no such kernel.
  const double one = Seconds(Convolution(1, DType::kFp32), "P100-PCIE-16GB");
  EXPECT_LT(Seconds(Convolution(9, DType::kFp32), "P100-PCIE-16GB"), 7 * one);
  const double rate3 = 9 / Seconds(Convolution(9, DType::kFp32), "GTX1080Ti");
  const double rate5 = 25 / Seconds(Convolution(25, DType::kFp32), "GTX1080Ti");
  EXPECT_GT(rate3, rate5);
}

TEST(ConvolutionModel, WindowsAreNotReadFromMemory) {
  // The product of a 3 x 3 window has nine times the operand of the image.
  const KernelSpec spec = Convolution(9, DType::kFp16);
  EXPECT_EQ(Price(spec, "A100-SXM-80GB").hbm_bytes, spec.read_bytes + spec.write_bytes);
}

TEST(ConvolutionModel, ChannelsFirstAreCopiedForTensorCoresOnly) {
  KernelSpec last = Convolution(9, DType::kFp16), first = last;
  first.channels_last = false;
  const double more = Seconds(first, "A100-SXM-80GB") - Seconds(last, "A100-SXM-80GB");
  const double bytes = 2 * (last.read_bytes + last.write_bytes);
  EXPECT_NEAR(bytes / more / CatalogueDevice("A100-SXM-80GB")->memory_bytes_per_s, 0.85, 0.02);
  last = first = Convolution(9, DType::kFp32);
  first.channels_last = false;
  EXPECT_EQ(Seconds(first, "V100-SXM-16GB"), Seconds(last, "V100-SXM-16GB"));
}

TEST(ConvolutionModel, FewChannelsFillAVectorOnTensorCores) {
  KernelSpec rgb = Convolution(49, DType::kFp16), rgba = rgb;
  rgb.k = 49 * 3;
  rgba.k = 49 * 4;
  EXPECT_EQ(Seconds(rgb, "A100-SXM-80GB"), Seconds(rgba, "A100-SXM-80GB"));
}

TEST(ConvolutionModel, StridedPointsOfTheInputGradientAreDear) {
  KernelSpec near = Convolution(1, DType::kFp32, GemmPass::kDgrad), far = near;
  far.stride = 2;
  EXPECT_GT(Seconds(far, "P100-PCIE-16GB"), 1.5 * Seconds(near, "P100-PCIE-16GB"));
}

TEST(ConvolutionModel, SaysWhoseFactorsItTakes) {
  EXPECT_THAT(Price(Convolution(9, DType::kFp32), "P100-PCIE-16GB").provenance.source,
              HasSubstr("conv.csv"));
  const KernelCost volta = Price(Convolution(9, DType::kFp32), "V100-SXM-16GB");
  EXPECT_EQ(volta.provenance.knowledge, Knowledge::kExtrapolated);
  EXPECT_THAT(volta.provenance.source, HasSubstr("same SM design"));
  EXPECT_THAT(volta.factor, HasSubstr("/convolution/fp32"));
}

TEST(ConvolutionModel, LeavesOtherKernelsAlone) {
  KernelSpec gemm = Convolution(9, DType::kFp16);
  gemm.family = KernelFamily::kGemm;
  EXPECT_FALSE(ConvolutionModel(CoefficientTables::Shipped())
                   .Estimate(gemm, *CatalogueDevice("A100-SXM-80GB"))
                   .has_value());
}

}  // namespace
}  // namespace plancast
