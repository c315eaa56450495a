#include "executor/memory/allocator.h"

#include "gtest/gtest.h"
#include "tests/executor/memory/pytorch_allocator.h"

namespace plancast {
namespace {

TEST(AllocatorTest, SmallBlocksAreRoundedTo512Bytes) {
  EXPECT_EQ(PooledBytes(PyTorch(), 1).small, 512);
  EXPECT_EQ(PooledBytes(PyTorch(), 513).small, 1024);
  EXPECT_EQ(PooledBytes(PyTorch(), kMiB).small, kMiB);
  EXPECT_EQ(PooledBytes(PyTorch(), kMiB).large, 0);
}

TEST(AllocatorTest, LargeBlocksHaveSegmentsOfMultiplesOf2MiB) {
  EXPECT_EQ(PooledBytes(PyTorch(), kMiB + 1).large, kMiB + 512);
  EXPECT_EQ(PooledBytes(PyTorch(), 10 * kMiB - 512).large, 10 * kMiB - 512);
  EXPECT_EQ(PooledBytes(PyTorch(), 11 * kMiB).large, 12 * kMiB);
  EXPECT_EQ(PooledBytes(PyTorch(), 12 * kMiB).small, 0);
}

TEST(AllocatorTest, AFreeGivesBackWhatItsAllocationTook) {
  for (int64_t bytes : {int64_t{0}, int64_t{1}, int64_t{512}, kMiB, kMiB + 1, 11 * kMiB + 3}) {
    EXPECT_EQ(PooledBytes(PyTorch(), -bytes).small, -PooledBytes(PyTorch(), bytes).small);
    EXPECT_EQ(PooledBytes(PyTorch(), -bytes).large, -PooledBytes(PyTorch(), bytes).large);
  }
}

TEST(AllocatorTest, PoolsTakeWholeSegments) {
  EXPECT_EQ(SegmentBytes(PyTorch(), {0, 0}), 0);
  EXPECT_EQ(SegmentBytes(PyTorch(), {512, 0}), 2 * kMiB);
  EXPECT_EQ(SegmentBytes(PyTorch(), {2 * kMiB + 1, 3 * kMiB}), 4 * kMiB + 20 * kMiB);
}

TEST(AllocatorTest, WithoutParametersNothingIsRounded) {
  EXPECT_EQ(PooledBytes({}, 777).large, 777);
  EXPECT_EQ(SegmentBytes({}, {3, 777}), 780);
}

}  // namespace
}  // namespace plancast
