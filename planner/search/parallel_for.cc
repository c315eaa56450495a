#include "planner/search/parallel_for.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "base/threads.h"

namespace plancast {

bool ParallelFor(int64_t count, int threads, const std::function<void(int64_t, int)>& work,
                 const std::function<bool(int64_t)>& progress) {
  threads = static_cast<int>(std::min<int64_t>(threads, std::max<int64_t>(count, 1)));
  const int64_t together = std::clamp<int64_t>(count / (8 * threads), 1, 8);
  std::atomic<int64_t> next{0}, done{0};
  std::atomic<bool> stop{false};
  std::mutex mutex;
  std::condition_variable finished;
  std::vector<std::thread> pool;
  const auto run = [&](int t) {
    for (int64_t begin; !stop && (begin = next.fetch_add(together)) < count;) {
      for (int64_t i = begin; !stop && i < std::min(begin + together, count); ++i) {
        work(i, t);
        if (++done < count) continue;
        std::lock_guard<std::mutex> lock(mutex);
        finished.notify_all();
      }
    }
  };
  for (int t = 0; t < threads; ++t) {
    if (!StartThread([&run, t] { run(t); }, pool)) break;
  }
  if (pool.empty()) run(0);
  {
    std::unique_lock<std::mutex> lock(mutex);
    for (int64_t told = 0; told < count && !stop;) {
      finished.wait_for(lock, std::chrono::milliseconds(100), [&] { return done >= count; });
      told = done;
      if (progress && !progress(told)) stop = true;
    }
  }
  for (std::thread& thread : pool) thread.join();
  return !stop;
}

}  // namespace plancast
