// Sizes and layouts of the kernels that convolutions and batch norms run.

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/compiler/plan_under_test.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

constexpr int64_t kBatch = 2, kIn = 8, kOut = 16, kHeight = 32, kWidth = 16;

// One 3x3 convolution in steps of two; `depthwise`: a channel by itself.
std::vector<KernelSpec> Kernels(const std::string& block, const std::string& label,
                                bool channels_last, bool depthwise = false) {
  PlanUnderTest plan({{"inputs", kIn},
                      {"outputs", kOut},
                      {"height", kHeight},
                      {"width", kWidth},
                      {"half_height", kHeight / 2},
                      {"half_width", kWidth / 2},
                      {"window", 3}});
  plan.MicroBatches(kBatch, 1).ByHand();
  if (channels_last) plan.profile().kernels.fusions_16bit.insert("nhwc");
  plan.profile() = plan.profile().For(DType::kBf16, Schedule::kNone);
  BodyWriter& body = plan.Segment("m");
  const int x = body.InPort("x", {"batch", "inputs", "height", "width"});
  const int y = body.Op1("act", "relu_nd(rank=4)", {x});
  const std::string rule = depthwise ? "conv2d_depthwise" : "conv2d";
  // Single channels have no dim of their own for results.
  body.OutPort(body.Op1("conv", rule + "(stride=2, pad=1)", {y},
                        {{"c", "inputs"},
                         {"i", "half_height"},
                         {"j", "half_width"},
                         {"p", "height"},
                         {"q", "width"},
                         {"k", "window"},
                         {"u", "window"},
                         {depthwise ? "c" : "n", depthwise ? "inputs" : "outputs"}}));
  absl::StatusOr<ExecutionGraph> graph = plan.Compile();
  EXPECT_OK(graph.status());
  return KernelsLabelled(*graph, block, label);
}

TEST(ConvolutionKernelTest, IsAProductOfWindows) {
  const std::vector<KernelSpec> forward = Kernels("m.F", "conv", false);
  ASSERT_EQ(forward.size(), 1u);
  EXPECT_EQ(forward[0].DebugString(),
            "convolution bf16 256x16x72 forward window=9 stride=2 width=8");
  const double image = 2.0 * kBatch * kIn * kHeight * kWidth;
  EXPECT_EQ(forward[0].read_bytes, image + 2.0 * kIn * kOut * 9);
  const std::vector<KernelSpec> dgrad = Kernels("m.B", "conv.bwd", false);
  ASSERT_EQ(dgrad.size(), 1u);
  EXPECT_EQ(dgrad[0].DebugString(), "convolution bf16 256x8x144 dgrad window=9 stride=2 width=8");
  const std::vector<KernelSpec> wgrad = Kernels("m.B", "conv.wgrad", false);
  ASSERT_EQ(wgrad.size(), 1u);
  EXPECT_EQ(wgrad[0].window, 9);
  EXPECT_EQ(wgrad[0].n, kIn * 9);
  EXPECT_EQ(wgrad[0].width, kWidth / 2);
}

// Each channel by itself is no product of matrices: bytes, and points of windows, once forward and
// twice backward.
TEST(ConvolutionKernelTest, OfSingleChannelsWalksItsWindows) {
  constexpr double kPoints = 9.0 * kBatch * kIn * kHeight / 2 * kWidth / 2;
  const std::vector<KernelSpec> forward = Kernels("m.F", "conv", false, /*depthwise=*/true);
  ASSERT_EQ(forward.size(), 1u);
  EXPECT_EQ(forward[0].family, KernelFamily::kMemory);
  EXPECT_DOUBLE_EQ(forward[0].window_points, kPoints);
  double backward = 0;
  for (const char* label : {"conv.bwd", "conv.wgrad"}) {
    for (const KernelSpec& kernel : Kernels("m.B", label, false, /*depthwise=*/true)) {
      backward += kernel.window_points;
    }
  }
  EXPECT_DOUBLE_EQ(backward, 2 * kPoints);
  EXPECT_EQ(Kernels("m.F", "conv", false).at(0).window_points, 0);
}

TEST(ConvolutionKernelTest, TheProfileSaysWhereChannelsAre) {
  EXPECT_TRUE(Kernels("m.F", "conv", true).at(0).channels_last);
  EXPECT_FALSE(Kernels("m.F", "conv", false).at(0).channels_last);
}

}  // namespace
}  // namespace plancast
