#ifndef PLANCAST_EXECUTOR_CLUSTER_ARCHIVE_H_
#define PLANCAST_EXECUTOR_CLUSTER_ARCHIVE_H_

#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/int128.h"

namespace plancast {

// Values as bytes, bit for bit, in this machine's order: for what the same program reads again.
// One function template lists the fields of a type and serves both directions:
//
//     template <typename Archive> void Fields(Archive& a, LoopState& state) {
//       a(state.phase, state.compute_left_ps);
//     }
template <typename T>
inline constexpr bool kIsPlain =
    std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_same_v<T, int128>;

class ArchiveWriter {
 public:
  template <typename... T>
  void operator()(T&... values) {
    (Put(values), ...);
  }
  std::string Take() { return std::move(bytes_); }

 private:
  template <typename T>
  void Put(T& value) {
    if constexpr (kIsPlain<T>) {
      bytes_.append(reinterpret_cast<const char*>(&value), sizeof(T));
    } else {
      Fields(*this, value);
    }
  }
  template <typename T>
  void Put(std::vector<T>& values) {
    auto size = static_cast<int64_t>(values.size());
    Put(size);
    for (T& value : values) Put(value);
  }

  std::string bytes_;
};

class ArchiveReader {
 public:
  explicit ArchiveReader(absl::string_view bytes) : left_(bytes) {}

  template <typename... T>
  void operator()(T&... values) {
    (Get(values), ...);
  }
  // Whether there was enough for everything, and nothing else.
  bool whole() const { return ok_ && left_.empty(); }

 private:
  template <typename T>
  void Get(T& value) {
    if constexpr (kIsPlain<T>) {
      ok_ = ok_ && left_.size() >= sizeof(T);
      if (!ok_) return;
      std::memcpy(&value, left_.data(), sizeof(T));
      left_.remove_prefix(sizeof(T));
    } else {
      Fields(*this, value);
    }
  }
  template <typename T>
  void Get(std::vector<T>& values) {
    int64_t size = 0;
    Get(size);
    // Everything takes a byte at least.
    ok_ = ok_ && size >= 0 && static_cast<size_t>(size) <= left_.size();
    if (!ok_) return;
    values.assign(static_cast<size_t>(size), T());
    for (T& value : values) Get(value);
  }

  absl::string_view left_;
  bool ok_ = true;
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_CLUSTER_ARCHIVE_H_
