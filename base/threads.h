#ifndef PLANCAST_BASE_THREADS_H_
#define PLANCAST_BASE_THREADS_H_

#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace plancast {

// Starts `work` on a thread of its own behind those of `pool`. False where the system
// gives no thread more, which std::thread says by an exception: go on with those there are.
template <typename Work>
bool StartThread(Work work, std::vector<std::thread>& pool) {
  try {
    pool.emplace_back(std::move(work));
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

}  // namespace plancast

#endif  // PLANCAST_BASE_THREADS_H_
