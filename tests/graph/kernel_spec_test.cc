#include "graph/kernel_spec.h"

#include "absl/hash/hash.h"
#include "graph/collective_kind.h"
#include "graph/dtype.h"
#include "gtest/gtest.h"

namespace plancast {
namespace {

TEST(KernelSpecTest, EqualSpecsAreOneKey) {
  KernelSpec a, b;
  a.m = b.m = 128;
  EXPECT_EQ(a, b);
  EXPECT_EQ(absl::Hash<KernelSpec>()(a), absl::Hash<KernelSpec>()(b));
  b.accumulate_fp32 = true;
  EXPECT_FALSE(a == b);
}

TEST(KernelSpecTest, Prints) {
  KernelSpec gemm;
  gemm.family = KernelFamily::kGemm;
  gemm.m = 2048, gemm.n = 12288, gemm.k = 6144;
  gemm.pass = GemmPass::kWgrad;
  EXPECT_EQ(gemm.DebugString(), "gemm bf16 2048x12288x6144 wgrad");
  gemm.batch = 4;
  EXPECT_EQ(gemm.DebugString(), "gemm bf16 4x2048x12288x6144 wgrad");
  KernelSpec norm;
  norm.label = "rms_norm";
  norm.read_bytes = 100, norm.write_bytes = 50;
  EXPECT_EQ(norm.DebugString(), "memory rms_norm read=100 write=50");
}

TEST(DTypeTest, NamesRoundTrip) {
  for (DType type : {DType::kBf16, DType::kFp16, DType::kFp32, DType::kTf32, DType::kFp8,
                     DType::kMxfp8, DType::kNvfp4, DType::kInt64, DType::kUint8}) {
    EXPECT_EQ(*ParseDType(DTypeName(type)), type);
  }
  EXPECT_EQ(ElementBytes(DType::kFp32), 4);
  EXPECT_EQ(StorageType(DType::kNvfp4), DType::kBf16);
  EXPECT_EQ(ParseDType("bf32").status().message().substr(0, 36),
            "no element type `bf32`; known: `bf16");
}

TEST(CollectiveKindTest, HasNames) {
  EXPECT_EQ(kCollectiveKindNames[CollectiveKind::kReduceScatter], "reduce_scatter");
  EXPECT_EQ(kCollectiveKindNames[CollectiveKind::kBroadcast], "broadcast");
}

TEST(KernelSpecTest, LoadsScaleWhatIsReadAgain) {
  KernelSpec norm;
  norm.read_bytes = norm.reread_bytes = 100;
  norm.row_bytes = 10;
  EXPECT_EQ(UnderLoad(norm, 1.5).reread_bytes, 150);
  EXPECT_EQ(UnderLoad(norm, 1.5).row_bytes, 10);
}

// Half as many rows again: weights are read as before, all else half as much again.
TEST(KernelSpecTest, LoadsScaleRowsAndNotWeights) {
  KernelSpec gemm;
  gemm.family = KernelFamily::kGemm;
  gemm.batch = 2, gemm.m = 8, gemm.n = 16, gemm.k = 4;
  gemm.flops = 2.0 * 2 * 8 * 16 * 4;
  const double weights = 2.0 * 2 * 16 * 4, rows = 2.0 * 2 * 8 * 4, results = 2.0 * 2 * 8 * 16;
  gemm.read_bytes = weights + rows;
  gemm.write_bytes = results;
  const KernelSpec more = UnderLoad(gemm, 1.5);
  EXPECT_EQ(more.m, 12);
  EXPECT_EQ(more.k, 4);
  EXPECT_EQ(more.flops, 1.5 * gemm.flops);
  EXPECT_EQ(more.read_bytes, weights + 1.5 * rows);
  EXPECT_EQ(more.write_bytes, 1.5 * results);
  gemm.pass = GemmPass::kWgrad;
  const KernelSpec gradient = UnderLoad(gemm, 1.5);
  EXPECT_EQ(gradient.m, 8);
  EXPECT_EQ(gradient.k, 6);
  EXPECT_EQ(gradient.write_bytes, results);
  EXPECT_EQ(UnderLoad(gemm, 1), gemm);
}

}  // namespace
}  // namespace plancast
