#include "executor/memory/caching_allocator.h"

#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "tests/executor/memory/pytorch_allocator.h"
#include "tests/testing/seed.h"

namespace plancast {
namespace {

TEST(CachingAllocatorTest, SegmentsComeInThreeSizes) {
  CachingAllocator allocator(PyTorch());
  allocator.Allocate(1000);
  EXPECT_EQ(allocator.reserved(), 2 * kMiB);
  allocator.Allocate(3 * kMiB);
  EXPECT_EQ(allocator.reserved(), 22 * kMiB);
  allocator.Allocate(31 * kMiB);
  EXPECT_EQ(allocator.reserved(), 54 * kMiB);
  EXPECT_EQ(allocator.live(), 1024 + 3 * kMiB + 32 * kMiB);  // the last MiB is not split off
}

TEST(CachingAllocatorTest, TheSmallestFreeBlockThatIsLargeEnoughServes) {
  CachingAllocator allocator(PyTorch());
  const int32_t large = allocator.Allocate(40 * kMiB), middle = allocator.Allocate(24 * kMiB);
  allocator.Allocate(30 * kMiB);
  allocator.Free(large);
  allocator.Free(middle);
  allocator.Allocate(22 * kMiB);  // of the 24: the rest is split off
  allocator.Allocate(38 * kMiB);  // of the 40
  EXPECT_EQ(allocator.reserved(), 94 * kMiB);
  allocator.Allocate(2 * kMiB);
  EXPECT_EQ(allocator.reserved(), 94 * kMiB);
}

TEST(CachingAllocatorTest, FreeNeighboursGrowTogether) {
  CachingAllocator allocator(PyTorch());
  const int32_t whole = allocator.Allocate(100 * kMiB);
  allocator.Free(whole);
  std::vector<int32_t> parts;
  for (int i = 0; i < 4; ++i) parts.push_back(allocator.Allocate(25 * kMiB));
  for (int i : {2, 0, 3, 1}) allocator.Free(parts[i]);
  allocator.Allocate(100 * kMiB);
  EXPECT_EQ(allocator.reserved(), 100 * kMiB);
}

TEST(CachingAllocatorTest, ASplitSegmentServesNoLargerBlock) {
  // Half of what was 40 MiB stays in use: the other half is of no use to 30.
  CachingAllocator allocator(PyTorch());
  allocator.Free(allocator.Allocate(40 * kMiB));
  allocator.Allocate(20 * kMiB);
  allocator.Allocate(30 * kMiB);
  EXPECT_EQ(allocator.live(), 50 * kMiB);
  EXPECT_EQ(allocator.reserved(), 70 * kMiB);
}

TEST(CachingAllocatorTest, AtTheLimitWholeFreeSegmentsAreGivenBackFirst) {
  CachingAllocator allocator(PyTorch(), 100 * kMiB);
  allocator.Free(allocator.Allocate(60 * kMiB));
  EXPECT_NE(allocator.Allocate(80 * kMiB), CachingAllocator::kNone);
  EXPECT_EQ(allocator.retries(), 1);
  EXPECT_EQ(allocator.reserved(), 80 * kMiB);
  EXPECT_EQ(allocator.most_reserved(), 80 * kMiB);
}

TEST(CachingAllocatorTest, ThenItIsOutOfMemory) {
  // A fifth of the segment is in use, so it cannot go back.
  CachingAllocator allocator(PyTorch(), 100 * kMiB);
  allocator.Free(allocator.Allocate(60 * kMiB));
  allocator.Allocate(12 * kMiB);
  EXPECT_EQ(allocator.Allocate(60 * kMiB), CachingAllocator::kNone);
  EXPECT_EQ(allocator.wanted(), 120 * kMiB);
  EXPECT_EQ(allocator.live(), 12 * kMiB);
}

TEST(CachingAllocatorTest, SegmentsMayAllStay) {
  CachingAllocator allocator(PyTorch(), 100 * kMiB, CachingAllocator::GiveBack::kNever);
  allocator.Free(allocator.Allocate(60 * kMiB));
  EXPECT_EQ(allocator.Allocate(80 * kMiB), CachingAllocator::kNone);
  EXPECT_EQ(allocator.wanted(), 140 * kMiB);
}

TEST(CachingAllocatorTest, OrGoBackBeforeTheyTakeMoreThanEver) {
  for (const int64_t capacity : {0, 100}) {
    CachingAllocator allocator(PyTorch(), capacity * kMiB,
                               CachingAllocator::GiveBack::kBeforeGrowth);
    allocator.Free(allocator.Allocate(60 * kMiB));
    allocator.Allocate(80 * kMiB);
    EXPECT_EQ(allocator.most_reserved(), 80 * kMiB);
    EXPECT_EQ(allocator.retries(), 2);  // also for the first
    allocator.Allocate(12 * kMiB);
    EXPECT_EQ(allocator.most_reserved(), 92 * kMiB);
    EXPECT_EQ(allocator.Allocate(20 * kMiB) == CachingAllocator::kNone, capacity > 0);
  }
  // Below 100 MiB they stay.
  CachingAllocator allocator(PyTorch(), 0, CachingAllocator::GiveBack::kBeforeGrowth, 100 * kMiB);
  allocator.Free(allocator.Allocate(60 * kMiB));
  allocator.Allocate(40 * kMiB);
  EXPECT_EQ(allocator.reserved(), 60 * kMiB);
  allocator.Allocate(40 * kMiB);
  EXPECT_EQ(allocator.reserved(), 100 * kMiB);
  EXPECT_EQ(allocator.retries(), 0);
}

AllocatorParams Expandable() {
  AllocatorParams params = PyTorch();
  params.expandable_segments = true;
  return params;
}

TEST(ExpandableSegmentsTest, GrowByPagesAndFreeTailsGrowOn) {
  CachingAllocator allocator(Expandable());
  allocator.Allocate(1000);
  EXPECT_EQ(allocator.reserved(), 2 * kMiB);
  const int32_t tail = allocator.Allocate(30 * kMiB);
  EXPECT_EQ(allocator.reserved(), 42 * kMiB);  // two pages of 20 MiB
  allocator.Allocate(10 * kMiB);               // the rest of the second
  EXPECT_EQ(allocator.reserved(), 42 * kMiB);
  allocator.Free(tail);
  allocator.Allocate(50 * kMiB);  // a hole of 30 is of no use to it
  EXPECT_EQ(allocator.reserved(), 42 * kMiB + 60 * kMiB);
}

TEST(ExpandableSegmentsTest, AFreeEndServesOnlyWhereNoOtherBlockDoes) {
  CachingAllocator allocator(Expandable());
  const int32_t hole = allocator.Allocate(60 * kMiB);
  allocator.Allocate(20 * kMiB);
  allocator.Free(allocator.Allocate(40 * kMiB));  // the end
  allocator.Free(hole);
  allocator.Allocate(40 * kMiB);  // of the 60: the end could be 100 as well
  allocator.Allocate(100 * kMiB);
  EXPECT_EQ(allocator.reserved(), 180 * kMiB);
}

TEST(ExpandableSegmentsTest, AtTheLimitFreePagesAreGivenBack) {
  CachingAllocator allocator(Expandable(), 100 * kMiB);
  const int32_t hole = allocator.Allocate(60 * kMiB);
  allocator.Allocate(20 * kMiB);
  allocator.Free(hole);
  EXPECT_NE(allocator.Allocate(80 * kMiB), CachingAllocator::kNone);
  EXPECT_EQ(allocator.retries(), 1);
  EXPECT_EQ(allocator.reserved(), 100 * kMiB);
  EXPECT_EQ(allocator.Allocate(2 * kMiB), CachingAllocator::kNone);
}

TEST(CachingAllocatorTest, WhatAStreamHasFreedIsOfNoUseToAnother) {
  for (const AllocatorParams& params : {PyTorch(), Expandable()}) {
    CachingAllocator allocator(params);
    allocator.Free(allocator.Allocate(40 * kMiB, /*stream=*/1));
    allocator.Allocate(40 * kMiB, /*stream=*/0);
    EXPECT_EQ(allocator.reserved(), 80 * kMiB);
    allocator.Allocate(40 * kMiB, /*stream=*/1);
    EXPECT_EQ(allocator.reserved(), 80 * kMiB);
  }
}

TEST(CachingAllocatorTest, RandomBlocksNeverTakeMoreThanTheirSegments) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    std::mt19937 random(TestSeed(seed));
    CachingAllocator allocator(seed % 2 == 0 ? PyTorch() : Expandable());
    std::vector<int32_t> blocks;
    for (int i = 0; i < 2000; ++i) {
      if (!blocks.empty() && random() % 2 == 0) {
        const size_t which = random() % blocks.size();
        allocator.Free(blocks[which]);
        blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(which));
      } else {
        const int64_t scale = int64_t{1} << (random() % 27);
        const auto stream = static_cast<int>(random() % kNumMemoryPools);
        blocks.push_back(allocator.Allocate(1 + static_cast<int64_t>(random()) % scale, stream));
      }
      ASSERT_LE(allocator.live(), allocator.reserved());
      ASSERT_LE(allocator.reserved(), allocator.most_reserved());
    }
    for (int32_t block : blocks) allocator.Free(block);
    ASSERT_EQ(allocator.live(), 0);
  }
}

}  // namespace
}  // namespace plancast
