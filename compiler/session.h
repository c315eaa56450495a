#ifndef PLANCAST_COMPILER_SESSION_H_
#define PLANCAST_COMPILER_SESSION_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace plancast {

// A caller-owned, thread-safe memo of everything that plans share: derived
// backward rules, blocks, execution graphs. Entries are immutable values under
// a textual key that says everything the value depends on, so a Session never
// changes a result. It only grows; drop it to free the memory.
class Session {
 public:
  Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // The value under `key`, made by `make() -> absl::StatusOr<T>` if absent. Two
  // threads that miss at once both make it; the first to finish wins. One key
  // always names one type.
  template <typename T, typename Make>
  absl::StatusOr<std::shared_ptr<const T>> Memo(const std::string& key, Make&& make) {
    {
      std::shared_lock lock(mutex_);
      auto it = entries_.find(key);
      if (it != entries_.end()) return std::static_pointer_cast<const T>(it->second);
    }
    misses_.fetch_add(1, std::memory_order_relaxed);
    absl::StatusOr<T> value = std::forward<Make>(make)();
    if (!value.ok()) return value.status();
    auto shared = std::make_shared<const T>(*std::move(value));
    std::unique_lock lock(mutex_);
    auto inserted = entries_.try_emplace(key, shared);
    return std::static_pointer_cast<const T>(inserted.first->second);
  }

  // How many values had to be made; a test of sharing.
  int64_t misses() const { return misses_.load(std::memory_order_relaxed); }

 private:
  // Of the standard library: ThreadSanitizer knows nothing of a mutex in an Abseil
  // that was built without it, and would call every use a race.
  std::shared_mutex mutex_;
  absl::flat_hash_map<std::string, std::shared_ptr<const void>> entries_;  // under mutex_
  std::atomic<int64_t> misses_{0};
};

}  // namespace plancast

#endif  // PLANCAST_COMPILER_SESSION_H_
