#include "compiler/sharding/state_bytes.h"

#include <algorithm>
#include <cstdint>
#include <map>

#include "compiler/sharding/optimizer/optimizer_step.h"
#include "gtest/gtest.h"
#include "tests/compiler/plan_under_test.h"

namespace plancast {
namespace {

PlanOptions Options(int64_t dp, int zero = 0) {
  PlanOptions options;
  options.dp = dp;
  options.zero = zero;
  return options;
}

DeviceMesh Mesh() { return *DeviceMesh::Create({{"pp", 2}, {"dp", 4}, {"cp", 1}, {"tp", 2}}); }

StateBytes State(const PlanOptions& options, DType dtype, int64_t parameters) {
  return StateOf(PlainProfile(), dtype, parameters,
                 KeptElements(Mesh(), options, options.zero >= 1, parameters));
}

TEST(StateTest, MixedPrecisionTakesEighteenBytesAParameter) {
  const StateBytes bytes = State(Options(4), DType::kBf16, 1000);
  EXPECT_EQ(bytes.parameters, 2 * 1000);
  EXPECT_EQ(bytes.gradients, 4 * 1000);
  EXPECT_EQ(bytes.optimizer, (4 + 4 + 4) * 1000);
}

TEST(StateTest, Fp32NeedsNoMasterCopy) {
  const StateBytes bytes = State(Options(4), DType::kFp32, 1000);
  EXPECT_EQ(bytes.parameters, 4 * 1000);
  EXPECT_EQ(bytes.optimizer, (4 + 4) * 1000);
}

TEST(StateTest, ZeroOneShardsTheOptimizerPadded) {
  const StateBytes bytes = State(Options(8, 1), DType::kBf16, 1001);
  EXPECT_EQ(bytes.parameters, 2 * 1001);
  EXPECT_EQ(bytes.optimizer, 12 * 126);  // 1001 / 8, rounded up
}

// Bytes a parameter over `d` ranks of a distributed optimizer, its copy of the
// gradients with it, for `n` parameters.
double BytesAParameter(const SoftwareProfile& profile, DType dtype, int64_t d, int64_t n) {
  const PlanOptions options = Options(d, d > 1 ? 1 : 0);
  const int64_t kept = KeptElements(Mesh(), options, options.zero >= 1, n);
  const StateBytes state = StateOf(profile, dtype, n, kept);
  int64_t workspace = 0, most = 0;
  const BlockTemplate step = OptimizerStep(profile, dtype, kept, {});
  for (const MemoryEvent& event : step.block.memory) {
    workspace += event.delta;
    most = std::max(most, workspace);
  }
  EXPECT_EQ(workspace, 0);
  return (state.parameters + state.gradients + state.optimizer + static_cast<double>(most)) /
         static_cast<double>(n);
}

SoftwareProfile Types(DType grad, DType main_grad) {
  SoftwareProfile profile = PlainProfile();
  profile.types.grad_dtype = grad;
  profile.types.main_grad_dtype = main_grad;
  return profile;
}

// The table of Megatron-LM's docs/source/api-guide/dist_optimizer.md.
TEST(StateTest, DistributedOptimizerOfMegatron) {
  const int64_t n = 1 << 20;
  const SoftwareProfile fp16 = Types(DType::kFp16, DType::kFp32);
  const SoftwareProfile wide = Types(DType::kFp32, DType::kFp32);
  EXPECT_EQ(BytesAParameter(fp16, DType::kFp16, 1, n), 20);
  EXPECT_EQ(BytesAParameter(wide, DType::kBf16, 1, n), 18);
  EXPECT_EQ(BytesAParameter(wide, DType::kFp32, 1, n), 16);
  for (const int64_t d : {2, 8, 64}) {
    const double per = 1.0 / static_cast<double>(d);
    EXPECT_EQ(BytesAParameter(fp16, DType::kFp16, d, n), 4 + 16 * per);
    EXPECT_EQ(BytesAParameter(wide, DType::kBf16, d, n), 6 + 12 * per);
    EXPECT_EQ(BytesAParameter(wide, DType::kFp32, d, n), 8 + 8 * per);
  }
}

// Megatron's precision-aware optimizer: bf16 moments (DeepSeek-V3, section 3.3.3), fp16
// master, or the 16 bits that bf16 parameters lack.
TEST(StateTest, PrecisionAwareOptimizer) {
  const int64_t n = 1 << 20;
  SoftwareProfile profile = Types(DType::kFp32, DType::kFp32);
  profile.types.state_dtype = DType::kBf16;
  EXPECT_EQ(BytesAParameter(profile, DType::kBf16, 8, n), 6 + (4 + 2 + 2) / 8.0);
  profile.types.master_dtype = DType::kInt16;
  EXPECT_EQ(BytesAParameter(profile, DType::kBf16, 8, n), 6 + (2 + 2 + 2) / 8.0);
  profile.types.state_dtype = DType::kFp8;
  profile.types.second_state_dtype = DType::kFp16;
  profile.types.grad_dtype = profile.types.main_grad_dtype.emplace(DType::kBf16);
  EXPECT_EQ(BytesAParameter(profile, DType::kBf16, 1, n), 2 + 2 + 2 + 1 + 2);
}

// bitsandbytes: two moments of a byte, each with an fp32 maximum for 256 elements.
TEST(StateTest, EightBitMoments) {
  SoftwareProfile profile = PlainProfile();
  profile.types.state_dtype = DType::kInt8;
  EXPECT_EQ(OptimizerBytes(profile, DType::kFp32, 1 << 20), 2 * ((1 << 20) + 4 * (1 << 12)));
  EXPECT_EQ(OptimizerBytes(profile, DType::kFp32, 257), 2 * (257 + 2 * 4));
  EXPECT_EQ(OptimizerBytes(profile, DType::kBf16, 256), 256 * 4 + 2 * (256 + 4));
}

TEST(StateTest, WhatOptimizersKeepOfEachParameter) {
  const std::map<OptimizerType, double> kept = {
      {OptimizerType::kAdam, 8},        {OptimizerType::kLamb, 8},    {OptimizerType::kSgd, 0},
      {OptimizerType::kAdagrad, 4},     {OptimizerType::kRmsprop, 4}, {OptimizerType::kLion, 4},
      {OptimizerType::kSgdMomentum, 4}, {OptimizerType::kMuon, 8}};
  for (const OptimizerType type : kOptimizerTypeNames.Values()) {
    SoftwareProfile profile = PlainProfile();
    profile.update.type = type;
    EXPECT_EQ(OptimizerBytes(profile, DType::kFp32, 1000), 1000 * kept.at(type));
    EXPECT_EQ(OptimizerBytes(profile, DType::kBf16, 1000), 1000 * (4 + kept.at(type)));
    profile.types.state_dtype = DType::kBf16;
    EXPECT_EQ(OptimizerBytes(profile, DType::kFp32, 1000), 1000 * kept.at(type) / 2);
  }
  SoftwareProfile profile = PlainProfile();
  profile.update.type = OptimizerType::kMuon;
  EXPECT_EQ(OptimizerBytes(profile, DType::kFp32, 1000, /*matrices=*/600), 600 * 4 + 400 * 8);
}

// Only matrices of quantised products are kept, and gathered, in 8 bits.
TEST(StateTest, Fp8Parameters) {
  SoftwareProfile profile = PlainProfile();
  profile.types.param_dtype = DType::kFp8;
  EXPECT_EQ(StateOf(profile, DType::kFp8, 1000, 1000, 900).parameters, 900 + 2 * 100);
  EXPECT_EQ(StateOf(profile, DType::kFp8, 1000, 1000, 900).optimizer, 12 * 1000);
  EXPECT_EQ(ParameterWireBytes(profile.GatherType(DType::kFp8), DType::kFp8, 1000, 900),
            900 + 2 * 100);
  EXPECT_EQ(ParameterWireBytes(DType::kInt8, DType::kBf16, 4096, 0), 4096 + 4);
}

// FSDP's mixed precision: fp32 shards, no other copy.
TEST(StateTest, Fp32ParametersAreTheirOwnMaster) {
  SoftwareProfile profile = PlainProfile();
  profile.types.param_dtype = DType::kFp32;
  profile.types.gather_dtype = DType::kCompute;
  EXPECT_EQ(BytesAParameter(profile, DType::kBf16, 1, 1024), 16);
  EXPECT_EQ(ParameterWireBytes(profile.GatherType(DType::kBf16), DType::kBf16, 1000, 0), 2000);
}

// Of weights that axis 1 cuts there is one copy for each coordinate of the others.
TEST(StateTest, CutWeightsAreShardedOverTheirCopies) {
  EXPECT_EQ(KeptElements(Mesh(), Options(8, 1), true, 1000, {{{}, 300}, {{1}, 200}}),
            300 + 50 + 63);
  EXPECT_EQ(KeptElements(Mesh(), Options(8), false, 1000, {{{}, 300}, {{1}, 200}}), 1000);
}

}  // namespace
}  // namespace plancast
