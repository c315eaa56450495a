#ifndef PLANCAST_BASE_FORK_SAFE_MUTEX_H_
#define PLANCAST_BASE_FORK_SAFE_MUTEX_H_

#include <mutex>

namespace plancast {

// A mutex that a child process never finds taken: a fork waits until no other thread holds
// one, so that what they guard is whole in the child. Whoever holds one takes no other of
// these, nor forks.
class ForkSafeMutex {
 public:
  ForkSafeMutex();
  ~ForkSafeMutex();
  ForkSafeMutex(const ForkSafeMutex&) = delete;
  ForkSafeMutex& operator=(const ForkSafeMutex&) = delete;

  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

// Locks of a library that other code of the process takes, too: a fork takes them after the
// mutexes above, whose holders may need them, and gives them back on both sides.
struct ForeignLocks {
  void (*take)();
  void (*give)();
};
void HoldAtForks(ForeignLocks locks);

}  // namespace plancast

#endif  // PLANCAST_BASE_FORK_SAFE_MUTEX_H_
