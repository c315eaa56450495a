#include "base/fork_safe_mutex.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace plancast {
namespace {

// Two numbers that are equal whenever the mutex is free.
struct Guarded {
  ForkSafeMutex mutex;
  int64_t first = 0, second = 0;

  void Count() {
    const std::lock_guard<ForkSafeMutex> lock(mutex);
    ++first;
    for (int i = 0; i < 100; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
    ++second;
  }
};

TEST(ForkSafeMutexTest, AChildFindsItFreeAndWhatItGuardsWhole) {
  Guarded some, more;
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      while (!stop) {
        some.Count();
        more.Count();
        const Guarded brief;
      }
    });
  }
  for (int i = 0; i < 100; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(60);  // it would wait for ever
      some.Count();
      more.Count();
      _exit(some.first == some.second && more.first == more.second ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

TEST(ForkSafeMutexTest, HoldsOthersOut) {
  Guarded guarded;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) guarded.Count();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(guarded.first, 4000);
  EXPECT_EQ(guarded.second, 4000);
}

}  // namespace
}  // namespace plancast
