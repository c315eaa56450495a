#include "base/fork_safe_mutex.h"

#include <pthread.h>

#include <set>
#include <vector>

namespace plancast {
namespace {

// All that live. Made by the first and never gone, for others may outlive what is static.
struct All {
  std::mutex mutex;
  std::set<ForkSafeMutex*> members;   // under mutex
  std::vector<ForeignLocks> foreign;  // under mutex
};

All& Everyone();

void LockAll() {
  Everyone().mutex.lock();
  for (ForkSafeMutex* member : Everyone().members) member->lock();
  for (const ForeignLocks& locks : Everyone().foreign) locks.take();
}

void UnlockAll() {
  for (const ForeignLocks& locks : Everyone().foreign) locks.give();
  for (ForkSafeMutex* member : Everyone().members) member->unlock();
  Everyone().mutex.unlock();
}

All& Everyone() {
  static All& all = *[] {
    pthread_atfork(LockAll, UnlockAll, UnlockAll);
    return new All;
  }();
  return all;
}

}  // namespace

ForkSafeMutex::ForkSafeMutex() {
  const std::lock_guard<std::mutex> lock(Everyone().mutex);
  Everyone().members.insert(this);
}

ForkSafeMutex::~ForkSafeMutex() {
  const std::lock_guard<std::mutex> lock(Everyone().mutex);
  Everyone().members.erase(this);
}

void HoldAtForks(ForeignLocks locks) {
  const std::lock_guard<std::mutex> lock(Everyone().mutex);
  Everyone().foreign.push_back(locks);
}

}  // namespace plancast
