#include "executor/sharing/activity_kinds.h"

#include <algorithm>

#include "base/check.h"

namespace plancast {
namespace {

// Rates stay below 2^62 in 2^-16 bytes a second; no link is as fast.
constexpr int64_t kMaxRate = int64_t{1} << 45;

}  // namespace

int64_t ActivityKinds::Duration(int128 work, int64_t rate_q16) {
  if (work == 0) return 0;
  if (rate_q16 == 0) return kNever;
  return SaturateToInt64(CeilDiv<int128>(work, rate_q16));
}

int64_t ActivityKinds::AloneTime(int32_t kind, int64_t work_bytes) const {
  return Duration(Work(work_bytes), kinds_[kind].AloneQ16());
}

int32_t ActivityKinds::AddResource(int64_t capacity_bytes_per_s) {
  PLANCAST_CHECK_GT(capacity_bytes_per_s, 0);
  capacities_q36_.push_back(int128{capacity_bytes_per_s} << 36);
  return num_resources() - 1;
}

int32_t ActivityKinds::AddKind(int64_t rate_cap_bytes_per_s, int64_t weight,
                               absl::Span<const Use> uses, int32_t priority) {
  PLANCAST_CHECK_GT(weight, 0);
  PLANCAST_CHECK_GT(rate_cap_bytes_per_s, 0);
  Kind kind;
  kind.weight = weight;
  kind.priority = priority;
  const int64_t cap = std::min(rate_cap_bytes_per_s, kMaxRate) << 16;
  kind.cap_level = std::max<int64_t>(cap / weight, 1);
  kind.alone_level = kind.cap_level;
  for (const Use& use : uses) {
    if (use.coefficient_q20 == 0) continue;
    const int128 level = capacities_q36_[use.resource] / (int128{use.coefficient_q20} * weight);
    kind.alone_level = std::min(kind.alone_level, std::max<int64_t>(SaturateToInt64(level), 1));
  }
  return AddKind(kind, uses);
}

int32_t ActivityKinds::AddKind(const Kind& kind, absl::Span<const Use> uses) {
  kinds_.push_back(kind);
  kinds_.back().use_begin = static_cast<int32_t>(uses_.size());
  for (const Use& use : uses) {
    if (use.coefficient_q20 != 0) uses_.push_back(use);
  }
  kinds_.back().use_end = static_cast<int32_t>(uses_.size());
  return size() - 1;
}

}  // namespace plancast
