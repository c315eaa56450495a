#include "interop/astra/simulator/event_queue.h"

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/testing/seed.h"

namespace plancast::astra {
namespace {

TEST(EventQueueTest, ByTimeThenByArrivalAlsoOfThoseThatComeWhileATimePasses) {
  EventQueue queue;
  queue.Push(5, {EventKind::kRank, 1});
  queue.Push(3, {EventKind::kRank, 2});
  queue.Push(5, {EventKind::kRank, 3});
  Event event;
  ASSERT_TRUE(queue.Pop(event));
  EXPECT_EQ(event.a, 2);
  EXPECT_EQ(queue.now(), 3);
  queue.Push(3, {EventKind::kRank, 4});
  ASSERT_TRUE(queue.Pop(event));
  EXPECT_EQ(event.a, 4);
  ASSERT_TRUE(queue.Pop(event));
  EXPECT_EQ(event.a, 1);
  ASSERT_TRUE(queue.Pop(event));
  EXPECT_EQ(event.a, 3);
  EXPECT_EQ(queue.now(), 5);
  EXPECT_FALSE(queue.Pop(event));
  queue.Push(5, {EventKind::kRank, 6});
  ASSERT_TRUE(queue.Pop(event));
  EXPECT_EQ(event.a, 6);
}

TEST(EventQueueTest, RandomTimesComeOutAsSorted) {
  std::mt19937_64 random(TestSeed(20261122));
  EventQueue queue;
  std::vector<std::pair<int64_t, int32_t>> pushed, popped;
  int32_t count = 0;
  const auto push = [&](int64_t from) {
    const int64_t time = from + static_cast<int64_t>(random() % 600);
    pushed.emplace_back(time, count);
    queue.Push(time, {EventKind::kRank, count++});
  };
  for (int i = 0; i < 500; ++i) push(0);
  for (Event event; queue.Pop(event);) {
    popped.emplace_back(queue.now(), event.a);
    if (count < 5000 && random() % 4 != 0) push(queue.now());
  }
  std::stable_sort(pushed.begin(), pushed.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  EXPECT_EQ(popped, pushed);
}

}  // namespace
}  // namespace plancast::astra
