#include "cost_models/attention_kernels.h"

#include <string>

#include "cluster/machine.h"
#include "cost_models/attention_model.h"
#include "cost_models/coefficients/coefficient_tables.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cost_models/catalogue_device.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

constexpr char kThree[] = R"(
  kernel { name: "a" next: "b" forward: 2 backward: 3 }
  kernel { name: "b" next: "c" forward: 1.5 backward: 1 }
  kernel { name: "c" })";

TEST(AttentionKernelsTest, FactorsMultiplyDownToTheKernelThatWasMeasured) {
  ASSERT_OK_AND_ASSIGN(const AttentionKernels kernels, AttentionKernels::Parse(kThree, "three"));
  EXPECT_EQ(kernels.Slowdown("a", "a", "", false), 1);
  EXPECT_EQ(kernels.Slowdown("a", "b", "", false), 2);
  EXPECT_EQ(kernels.Slowdown("a", "c", "", false), 3);
  EXPECT_EQ(kernels.Slowdown("a", "c", "", true), 3);
  EXPECT_EQ(kernels.Slowdown("b", "c", "", true), 1);
}

TEST(AttentionKernelsTest, WhatIsUnknownOrNewerTakesAsLongAsWhatWasMeasured) {
  ASSERT_OK_AND_ASSIGN(const AttentionKernels kernels, AttentionKernels::Parse(kThree, "three"));
  EXPECT_EQ(kernels.Slowdown("", "b", "", false), 1);
  EXPECT_EQ(kernels.Slowdown("a", "", "", false), 1);
  EXPECT_EQ(kernels.Slowdown("c", "a", "", false), 1);
  EXPECT_EQ(kernels.Slowdown("d", "c", "", false), 1);
}

TEST(AttentionKernelsTest, WhatServesTakesLongerThanWhatTrains) {
  ASSERT_OK_AND_ASSIGN(const AttentionKernels kernels, AttentionKernels::Parse(R"(
    kernel { name: "b-serving" training: "b" forward: 1.25 backward: 2 }
    kernel { name: "a" next: "b" forward: 2 backward: 3 }
    kernel { name: "b" next: "c" forward: 1.5 backward: 1 }
    kernel { name: "c" })",
                                                                               "served"));
  EXPECT_EQ(kernels.Slowdown("", "b-serving", "", false), 0.8);
  EXPECT_EQ(kernels.Slowdown("b", "b-serving", "", true), 0.5);
  EXPECT_EQ(kernels.Slowdown("a", "b-serving", "", false), 1.6);
  EXPECT_EQ(kernels.Slowdown("b-serving", "b-serving", "", false), 1);
  EXPECT_EQ(kernels.Slowdown("b-serving", "c", "", false), 1.875);
  // A newer one is no slower than what was measured, as it trains.
  EXPECT_EQ(kernels.Slowdown("c", "b-serving", "", false), 0.8);
  EXPECT_EQ(kernels.Slowdown(AttentionKernels::kAsMeasured, "b-serving", "", false), 1);
}

TEST(AttentionKernelsTest, ArchitecturesHaveKernelsOfTheirOwn) {
  ASSERT_OK_AND_ASSIGN(const AttentionKernels kernels, AttentionKernels::Parse(R"(
    kernel { name: "serves" architecture: "new" training: "c" forward: 1.25 backward: 1.25 }
    kernel { name: "old" next: "a" forward: 2 backward: 2 }
    kernel { name: "a" architecture: "new" next: "b" forward: 4 backward: 4 }
    kernel { name: "a" architecture: "other" next: "b" forward: 1.5 backward: 1.5 }
    kernel { name: "a" }
    kernel { name: "b" architecture: "new" next: "c" forward: 2 backward: 1 }
    kernel { name: "b" architecture: "other" }
    kernel { name: "c" architecture: "new" })",
                                                                               "chips"));
  EXPECT_EQ(kernels.Slowdown("old", "b", "new", false), 8);
  EXPECT_EQ(kernels.Slowdown("old", "b", "other", false), 3);
  EXPECT_EQ(kernels.Slowdown("old", "a", "", false), 2);
  // Elsewhere `b` is unknown, and what is newer is what was measured.
  EXPECT_EQ(kernels.Slowdown("b", "a", "", false), 1);
  EXPECT_EQ(kernels.Slowdown("old", "b", "", false), 1);
  // On a chip with kernels of its own, the newer one is faster.
  EXPECT_EQ(kernels.Slowdown("c", "b", "new", false), 0.5);
  EXPECT_EQ(kernels.Slowdown("c", "b", "new", true), 1);
  EXPECT_EQ(kernels.Slowdown("b", "serves", "new", false), 1.6);
  EXPECT_EQ(kernels.Slowdown("c", "serves", "new", false), 0.8);
}

TEST(AttentionKernelsTest, MistakesAreNamed) {
  const auto parse = [](const std::string& text) {
    return AttentionKernels::Parse(text, "mine.textproto").status();
  };
  EXPECT_THAT(parse(R"(kernel { name: "a" } kernel { name: "a" })"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("mine.textproto: `a` has to be a name that no other")));
  EXPECT_THAT(
      parse(R"(kernel { name: "a" next: "b" forward: 0.5 backward: 1 } kernel { name: "b" })"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("takes 0.5 times as long")));
  EXPECT_THAT(parse(R"(kernel { name: "a" next: "a" forward: 1 backward: 1 })"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("further down in the file")));
  EXPECT_THAT(
      parse(R"(kernel { name: "a" training: "b" forward: 1 backward: 1 })"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("what trains for `a` is `b`")));
  EXPECT_THAT(
      parse(R"(kernel { name: "a" next: "b" training: "b" forward: 1 backward: 1 }
                       kernel { name: "b" })"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("or one that trains, not both")));
}

TEST(AttentionKernelsTest, TheModelKnowsWhoseRowsItWasFittedTo) {
  const AttentionModel model(CoefficientTables::Shipped());
  KernelSpec kernel;
  kernel.family = KernelFamily::kAttention;
  kernel.heads = kernel.kv_heads = 16;
  kernel.q_len = kernel.kv_len = 8192;
  kernel.head_dim = kernel.head_dim_v = 128;
  kernel.causal = true;
  const auto slowdown = [&](const std::string& gpu, const std::string& library, bool backward) {
    kernel.backward = backward;
    kernel.library = "";
    const DeviceType device = CatalogueDevice(gpu).value();
    const double best = model.Estimate(kernel, device)->seconds_alone;
    kernel.library = library;
    return model.Estimate(kernel, device)->seconds_alone / best;
  };
  EXPECT_DOUBLE_EQ(slowdown("A100-SXM-80GB", "flash-attention-2", false), 1);
  EXPECT_DOUBLE_EQ(slowdown("A100-SXM-80GB", "flash-attention-triton", true), 2);
  EXPECT_DOUBLE_EQ(slowdown("A100-SXM-80GB", "flex-attention", true), 1.18);
  EXPECT_DOUBLE_EQ(slowdown("H100-SXM-80GB", "flash-attention-2", false), 1.75);
  EXPECT_DOUBLE_EQ(slowdown("H100-SXM-80GB", "flash-attention-2", true), 1.74);
  // sglang's rows.
  EXPECT_DOUBLE_EQ(slowdown("A100-SXM-80GB", "measured", false), 1.09);
  EXPECT_DOUBLE_EQ(slowdown("H100-SXM-80GB", "measured", false), 1.16);
  // cuDNN of the container's year; on A100 it is what FlashAttention-2 is.
  EXPECT_DOUBLE_EQ(slowdown("H100-SXM-80GB", "cudnn-2024", false), 1.08);
  EXPECT_DOUBLE_EQ(slowdown("H100-SXM-80GB", "cudnn-2026", true), 1 / 1.087);
  EXPECT_DOUBLE_EQ(slowdown("B200-SXM", "cudnn-2026", false), 1 / 1.13);
  EXPECT_DOUBLE_EQ(slowdown("B200-SXM", "sdpa", false), 1);
  EXPECT_DOUBLE_EQ(slowdown("GB200", "flash-attention-2", true), 3.1 * 1.09);
  EXPECT_DOUBLE_EQ(slowdown("A100-SXM-80GB", "cudnn-2026", false), 1);
  EXPECT_DOUBLE_EQ(slowdown("A100-SXM-80GB", "sdpa", false), 1);
}

}  // namespace
}  // namespace plancast
