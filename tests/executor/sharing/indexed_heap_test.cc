#include "executor/sharing/indexed_heap.h"

#include <map>
#include <random>

#include "gtest/gtest.h"
#include "tests/testing/seed.h"

namespace plancast {
namespace {

int64_t LeastOf(const std::map<int32_t, int64_t>& keys) {
  int64_t least = IndexedHeap::kNever;
  for (const auto& [id, key] : keys) least = std::min(least, key);
  return least;
}

TEST(IndexedHeapTest, IsEmptyAtFirst) {
  IndexedHeap heap;
  EXPECT_TRUE(heap.empty());
  EXPECT_EQ(heap.least_key(), IndexedHeap::kNever);
  EXPECT_FALSE(heap.Contains(3));
  heap.Order();
}

TEST(IndexedHeapTest, KnowsTheLeastWhateverChanges) {
  std::mt19937 random(static_cast<uint32_t>(TestSeed(1)));
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  IndexedHeap heap;
  std::map<int32_t, int64_t> keys;
  for (int step = 0; step < 20'000; ++step) {
    const auto id = static_cast<int32_t>(draw(0, 60));
    switch (draw(0, 4)) {
      case 0:
        EXPECT_EQ(heap.Contains(id), keys.count(id) > 0);
        if (keys.erase(id) > 0) heap.Remove(id);
        break;
      case 1:
        for (int32_t i = id; i < 60; i += 7) heap.Put(i, keys[i] = draw(0, 40));
        heap.Order();
        break;
      case 2: {
        const int64_t by = draw(0, 5);
        heap.Shift(by);
        for (auto& [shifted, key] : keys) key += by;
        break;
      }
      default:
        heap.Set(id, keys[id] = draw(0, 40));
    }
    ASSERT_EQ(heap.size(), static_cast<int>(keys.size()));
    ASSERT_EQ(heap.least_key(), LeastOf(keys));
    if (!heap.empty()) {
      ASSERT_EQ(keys[heap.least()], heap.least_key());
    }
    for (const auto& [known, key] : keys) ASSERT_EQ(heap.KeyOf(known), key);
  }
}

TEST(IndexedHeapTest, ShiftsAllKeysButNever) {
  IndexedHeap heap;
  heap.Shift(5);
  EXPECT_TRUE(heap.empty());
  heap.Set(4, 30);
  heap.Set(2, IndexedHeap::kNever);
  heap.Set(7, 10);
  heap.Shift(5);
  EXPECT_EQ(heap.KeyOf(4), 35);
  EXPECT_EQ(heap.KeyOf(2), IndexedHeap::kNever);
  EXPECT_EQ(heap.least(), 7);
  EXPECT_EQ(heap.least_key(), 15);
  heap.Remove(7);
  heap.Remove(4);
  EXPECT_EQ(heap.least_key(), IndexedHeap::kNever);
}

}  // namespace
}  // namespace plancast
