#ifndef PLANCAST_EXECUTOR_SHARING_ACTIVITY_KINDS_H_
#define PLANCAST_EXECUTOR_SHARING_ACTIVITY_KINDS_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/types/span.h"
#include "base/int128.h"

namespace plancast {

// Resources, and kinds of activities that load them.
//
// A resource carries `capacity` bytes a second. An activity has work in bytes, a
// rate it never exceeds, a weight, a priority (the lowest number goes first), and
// uses: per byte of its work a resource carries `coefficient` bytes.
//
// Rates are in 2^-16 bytes a second; the level of an activity is its rate over
// its weight. Loads, rates times coefficients, are in 2^-36 bytes a second.
class ActivityKinds {
 public:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  struct Use {
    int32_t resource = 0;
    int64_t coefficient_q20 = 0;  // fixed point, 2^-20
  };
  struct Kind {
    int64_t weight = 1;
    int64_t cap_level = 0;
    int64_t alone_level = 0;  // nothing else running
    int32_t use_begin = 0, use_end = 0;
    int32_t priority = 0;

    int64_t CapQ16() const { return cap_level * weight; }
    int64_t AloneQ16() const { return alone_level * weight; }
  };

  int32_t AddResource(int64_t capacity_bytes_per_s);
  // `uses` names each resource once at most.
  int32_t AddKind(int64_t rate_cap_bytes_per_s, int64_t weight, absl::Span<const Use> uses,
                  int32_t priority);
  // A kind of another table, in terms of this one's resources.
  int32_t AddKind(const Kind& kind, absl::Span<const Use> uses);

  int32_t num_resources() const { return static_cast<int32_t>(capacities_q36_.size()); }
  int32_t size() const { return static_cast<int32_t>(kinds_.size()); }
  int128 capacity_q36(int32_t resource) const { return capacities_q36_[resource]; }
  const Kind& operator[](int32_t kind) const { return kinds_[kind]; }
  const Use& use(int32_t index) const { return uses_[index]; }
  absl::Span<const Use> UsesOf(int32_t kind) const {
    const Kind& k = kinds_[kind];
    return absl::MakeConstSpan(uses_).subspan(k.use_begin, k.use_end - k.use_begin);
  }

  // The time that an activity takes alone.
  int64_t AloneTime(int32_t kind, int64_t work_bytes) const;

  // Work in 2^-16 bytes a second times picoseconds.
  static int128 Work(int64_t bytes) { return bytes * kWorkPerByte; }
  // The time to finish it, rounded up; kNever at no rate.
  static int64_t Duration(int128 work, int64_t rate_q16);

 private:
  static constexpr int128 kWorkPerByte = (int128{1} << 16) * 1'000'000'000'000;

  std::vector<int128> capacities_q36_;
  std::vector<Kind> kinds_;
  std::vector<Use> uses_;
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_SHARING_ACTIVITY_KINDS_H_
