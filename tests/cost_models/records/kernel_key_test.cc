#include "cost_models/records/kernel_key.h"

#include <random>
#include <vector>

#include "tests/testing/seed.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

KernelSpec Gemm(int64_t m, int64_t n, int64_t k) {
  KernelSpec kernel;
  kernel.family = KernelFamily::kGemm;
  kernel.label = "linear";
  kernel.m = m, kernel.n = n, kernel.k = k;
  return kernel;
}

TEST(KernelKeyTest, AProductIsKnownByShapeTypeAndPassNotByItsRule) {
  KernelSpec kernel = Gemm(4096, 1024, 512);
  const KernelKey key = KeyOf(kernel);
  EXPECT_EQ(key.op, "gemm");
  EXPECT_EQ(key.shape, "batch=1 m=4096 n=1024 k=512");
  EXPECT_EQ(key.dtype, "bf16");
  EXPECT_EQ(key.layout, "forward");
  kernel.label = "qkv";
  EXPECT_EQ(KeyOf(kernel), key);
  kernel.pass = GemmPass::kWgrad;
  kernel.accumulate_fp32 = true;
  EXPECT_EQ(KeyOf(kernel).layout, "wgrad+fp32");
}

TEST(KernelKeyTest, AMemoryKernelIsKnownByItsRule) {
  KernelSpec kernel;
  kernel.family = KernelFamily::kMemory;
  kernel.label = "rms_norm.bwd";
  kernel.read_bytes = 3000, kernel.write_bytes = 1000;
  EXPECT_EQ(KeyOf(kernel).op, "memory/rms_norm.bwd");
  EXPECT_EQ(KeyOf(kernel).shape, "read=3000 write=1000 launches=1");
  kernel.dtype = DType::kFp8;  // activations stay in bf16
  EXPECT_EQ(KeyOf(kernel).dtype, "bf16");
}

TEST(KernelKeyTest, AttentionStatesWhatIsImplied) {
  KernelSpec kernel;
  kernel.family = KernelFamily::kAttention;
  kernel.batch = 2, kernel.heads = 16, kernel.q_len = kernel.kv_len = 4096, kernel.head_dim = 128;
  kernel.causal = kernel.backward = true;
  EXPECT_EQ(KeyOf(kernel).shape, "batch=2 heads=16 kv_heads=16 q=4096 kv=4096 dim=128 dim_v=128");
  EXPECT_EQ(KeyOf(kernel).layout, "causal backward");
}

// For every kernel: the key of the kernel that a key names is that key.
TEST(KernelKeyTest, KeysSurviveTheWayThereAndBack) {
  std::mt19937 random(TestSeed(5));
  const auto size = [&] { return std::uniform_int_distribution<int64_t>(1, 100'000)(random); };
  const std::vector<DType> types = {DType::kBf16, DType::kFp16, DType::kFp32,
                                    DType::kTf32, DType::kFp8,  DType::kNvfp4};
  for (int i = 0; i < 1000; ++i) {
    KernelSpec kernel = Gemm(size(), size(), size());
    kernel.family = static_cast<KernelFamily>(random() % 5);
    kernel.dtype = types[random() % types.size()];
    kernel.batch = size();
    kernel.pass = static_cast<GemmPass>(random() % 3);
    kernel.accumulate_fp32 = kernel.family == KernelFamily::kGemm && random() % 2 == 0;
    kernel.window = size(), kernel.stride = size(), kernel.width = random() % 2 * size();
    kernel.channels_last = random() % 2 == 0;
    kernel.heads = size(), kernel.q_len = size(), kernel.kv_len = size(), kernel.head_dim = size();
    kernel.causal = random() % 2 == 0, kernel.backward = random() % 2 == 0;
    kernel.read_bytes = static_cast<double>(size()),
    kernel.write_bytes = static_cast<double>(size());
    kernel.launches = 1 + static_cast<int>(random() % 5);
    const KernelKey key = KeyOf(kernel);
    ASSERT_OK_AND_ASSIGN(const KernelSpec named, SpecOf(key));
    EXPECT_EQ(named.family, kernel.family);
    EXPECT_EQ(KeyOf(named), key) << key.DebugString();
  }
}

TEST(KernelKeyTest, TheNamedKernelHasItsOwnWorkAndTraffic) {
  KernelKey key = KeyOf(Gemm(4, 8, 16));
  ASSERT_OK_AND_ASSIGN(KernelSpec kernel, SpecOf(key));
  EXPECT_EQ(kernel.flops, 2 * 4 * 8 * 16);
  EXPECT_EQ(kernel.read_bytes, 2 * (4 * 16 + 16 * 8));
  EXPECT_EQ(kernel.write_bytes, 2 * 4 * 8);
  EXPECT_FALSE(MovesMore(kernel));
  kernel.read_bytes += 2 * 4 * 8;  // a residual that an epilogue adds
  EXPECT_TRUE(MovesMore(kernel));
  key.layout = "wgrad+fp32";
  ASSERT_OK_AND_ASSIGN(kernel, SpecOf(key));
  EXPECT_EQ(kernel.write_bytes, 8 * 4 * 8);
}

TEST(KernelKeyTest, WhatNamesNoKernelIsRefusedWithWhatWould) {
  const KernelKey good = KeyOf(Gemm(4, 8, 16));
  KernelKey key = good;
  key.op = "gem";
  EXPECT_THAT(SpecOf(key).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("its op is `gem`; ops are")));
  key = good;
  key.shape = "m=4 n=8";
  EXPECT_THAT(SpecOf(key).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("give `batch= m= n= k=`")));
  key.shape = "batch=1 m=0 n=8 k=16";
  EXPECT_THAT(SpecOf(key).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("`m` is 0")));
  key = good;
  key.layout = "sideways";
  EXPECT_THAT(SpecOf(key).status(), StatusIs(absl::StatusCode::kInvalidArgument,
                                             HasSubstr("passes are `forward`, `dgrad`")));
  key = good;
  key.dtype = "bf61";
  EXPECT_THAT(SpecOf(key).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("bf61")));
  key = good;
  key.op = "memory/";
  key.layout = "";
  key.shape = "read=1 write=1 launches=1";
  EXPECT_THAT(SpecOf(key).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("names no rule")));
}

}  // namespace
}  // namespace plancast
