#include "base/threads.h"

#include <pthread.h>

#include <atomic>

#include "gtest/gtest.h"

namespace plancast {
namespace {

TEST(StartThreadTest, RunsTheWork) {
  std::atomic<int> done{0};
  std::vector<std::thread> pool;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(StartThread([&] { ++done; }, pool));
  for (std::thread& thread : pool) thread.join();
  EXPECT_EQ(done, 3);
}

TEST(StartThreadTest, SaysWhereTheSystemHasNoneLeft) {
  pthread_attr_t usual, huge;
  ASSERT_EQ(pthread_getattr_default_np(&usual), 0);
  ASSERT_EQ(pthread_attr_init(&huge), 0);
  // A stack that no address space has room for.
  ASSERT_EQ(pthread_attr_setstacksize(&huge, size_t{1} << 62), 0);
  ASSERT_EQ(pthread_setattr_default_np(&huge), 0);
  std::vector<std::thread> pool;
  EXPECT_FALSE(StartThread([] {}, pool));
  EXPECT_TRUE(pool.empty());
  ASSERT_EQ(pthread_setattr_default_np(&usual), 0);
}

}  // namespace
}  // namespace plancast
