#include "executor/memory/footprint.h"

#include "gtest/gtest.h"
#include "tests/executor/memory/pytorch_allocator.h"

namespace plancast {
namespace {

MemoryOverhead Overhead(int64_t capacity) {
  MemoryOverhead overhead;
  overhead.allocator = PyTorch();
  overhead.allocator.fragmentation = 0.05;
  overhead.context_bytes = 10 * kMiB;
  overhead.capacity_bytes = capacity;
  return overhead;
}

Peak PeakOf(int64_t bytes, int64_t largest) {
  Peak peak;
  peak.allocated = bytes;
  peak.pools.large = bytes;
  peak.largest = largest;
  return peak;
}

TEST(FootprintTest, FarFromTheCapacityFragmentationIsAShare) {
  const Footprint footprint =
      FootprintOf(Program(), PeakOf(1000 * kMiB, 40 * kMiB), 20 * kMiB, Overhead(2000 * kMiB));
  EXPECT_FALSE(footprint.near_capacity);
  EXPECT_EQ(footprint.memory.device, (1000 + 50 + 20 + 10) * kMiB);
}

TEST(FootprintTest, NearItPlacesDecide) {
  Footprint footprint =
      FootprintOf(Program(), PeakOf(1000 * kMiB, 40 * kMiB), 20 * kMiB, Overhead(1040 * kMiB));
  EXPECT_TRUE(footprint.near_capacity);
  EXPECT_EQ(footprint.room, 1010 * kMiB);
  AllocatorReplay placed;
  placed.reserved = 1006 * kMiB;
  footprint.Place(placed);
  EXPECT_EQ(footprint.memory.device, (1006 + 20 + 10) * kMiB);
}

TEST(FootprintTest, PlacedBlocksTakeOneSegmentMoreThanThereIsAtMost) {
  EXPECT_EQ(
      FootprintOf(Program(), PeakOf(1000 * kMiB, 41 * kMiB), 0, Overhead(1040 * kMiB)).most_placed,
      (1040 + 42) * kMiB);
  EXPECT_EQ(
      FootprintOf(Program(), PeakOf(1000 * kMiB, 12 * kMiB), 0, Overhead(1040 * kMiB)).most_placed,
      (1040 + 20) * kMiB);
}

}  // namespace
}  // namespace plancast
