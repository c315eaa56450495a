// What the loss moves in shipped software, per logit, against what its source code does.

#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "strategy/software_profile.h"
#include "tests/compiler/plan_under_test.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

constexpr double kTokens = 512, kVocab = 4096;

// Read and written of a logit, forward and back.
std::pair<double, double> BytesOfLogit(const std::string& profile, DType dtype, int64_t tp = 1) {
  TransformerConfig config = SmallLlama();
  config.vocab = static_cast<int64_t>(kVocab);
  PlanUnderTest plan = PlanUnderTest::Of(config);
  plan.MicroBatches(1, 1).Type(dtype).Tp(tp);
  const absl::StatusOr<SoftwareProfile> shipped = FindSoftwareProfile(profile);
  EXPECT_TRUE(shipped.ok()) << shipped.status();
  plan.profile() = shipped->For(dtype, Schedule::kNone);
  const absl::StatusOr<ExecutionGraph> graph = plan.Compile();
  EXPECT_TRUE(graph.ok()) << graph.status();
  const auto moved = [&](const char* block, const char* label) {
    double bytes = 0;
    for (const KernelSpec& kernel : KernelsLabelled(*graph, block, label)) {
      bytes += kernel.read_bytes + kernel.write_bytes;
    }
    return bytes / (kTokens * kVocab / static_cast<double>(tp));
  };
  return {moved("head.F", "loss"), moved("head.B", "loss.bwd")};
}

// float 6, max 4, -= 8, exp 8, sum 4, div_ 8; mul_ 8, cast 6. Where ranks exchange the maximum it
// is a kernel of its own here, which reads them once more.
TEST(LossKernelsTest, MegatronsOwnLossGoesOverItsLogitsTenTimes) {
  for (const char* const profile : {"megatron-lm", "megatron-2021", "megatron-sc21"}) {
    for (const int64_t tp : {1, 4}) {
      const auto [forward, backward] = BytesOfLogit(profile, DType::kFp16, tp);
      EXPECT_NEAR(forward, tp == 1 ? 38 : 42, 0.2) << profile << " tp=" << tp;
      EXPECT_NEAR(backward, 14, 0.2) << profile << " tp=" << tp;
    }
  }
}

// The logits once and the exponentials of the rule; the gradient.
TEST(LossKernelsTest, FusedOnesGoOverThemOnce) {
  for (const char* const profile : {"megatron-core", "megatron-bridge", "compiled"}) {
    const auto [forward, backward] = BytesOfLogit(profile, DType::kBf16);
    EXPECT_LT(forward, 10) << profile;
    EXPECT_LT(backward, 8) << profile;
  }
}

// The cast 6, three reads and a write of log_softmax, of which the fused row's rereads are priced
// apart; zeros 4, three reads and a write 16, the cast 6.
TEST(LossKernelsTest, PyTorchsGoesOverFp32LogitsAndTheirGradientsTwice) {
  for (const char* const profile :
       {"eager", "fsdp", "ddp", "deepspeed", "automodel", "torchtitan-2024", "torchtitan-eager"}) {
    const auto [forward, backward] = BytesOfLogit(profile, DType::kBf16);
    EXPECT_NEAR(forward, 18, 0.2) << profile;
    EXPECT_NEAR(backward, 26, 0.2) << profile;
  }
}

}  // namespace
}  // namespace plancast
