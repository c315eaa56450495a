#include "executor/sharing/fluid.h"

#include <algorithm>

#include "base/check.h"

namespace plancast {
namespace {

// Work in 2^-16 bytes a second times picoseconds.
constexpr int128 kWorkPerByte = (int128{1} << 16) * 1'000'000'000'000;
// Rates stay below 2^62 in 2^-16 bytes a second; no link is as fast.
constexpr int64_t kMaxRate = int64_t{1} << 45;

// The time to finish `work` at a positive rate.
int64_t Duration(int128 work, int64_t rate_q16) {
  return SaturateToInt64(CeilDiv<int128>(work, rate_q16));
}

}  // namespace

int32_t Fluid::AddResource(int64_t capacity_bytes_per_s) {
  PLANCAST_CHECK_GT(capacity_bytes_per_s, 0);
  Resource resource;
  resource.capacity_q36 = int128{capacity_bytes_per_s} << 36;
  resources_.push_back(resource);
  return static_cast<int32_t>(resources_.size()) - 1;
}

int32_t Fluid::AddKind(int64_t rate_cap_bytes_per_s, int64_t weight, absl::Span<const Use> uses) {
  PLANCAST_CHECK_GT(weight, 0);
  PLANCAST_CHECK_GT(rate_cap_bytes_per_s, 0);
  Kind kind;
  kind.weight = weight;
  const int64_t cap = std::min(rate_cap_bytes_per_s, kMaxRate) << 16;
  kind.cap_q16 = std::max<int64_t>(cap / weight, 1) * weight;
  kind.alone_q16 = kind.cap_q16;
  kind.use_begin = static_cast<int32_t>(uses_.size());
  for (const Use& use : uses) {
    if (use.coefficient_q20 == 0) continue;
    uses_.push_back(use);
    const int128 level =
        resources_[use.resource].capacity_q36 / (int128{use.coefficient_q20} * weight);
    const int64_t limit = std::max<int64_t>(SaturateToInt64(level), 1);
    if (limit < kind.alone_q16 / weight) kind.alone_q16 = limit * weight;
  }
  kind.use_end = static_cast<int32_t>(uses_.size());
  kinds_.push_back(kind);
  return static_cast<int32_t>(kinds_.size()) - 1;
}

absl::Span<const Fluid::Use> Fluid::UsesOf(const Activity& activity) const {
  const Kind& kind = kinds_[activity.kind];
  return absl::MakeConstSpan(uses_).subspan(kind.use_begin, kind.use_end - kind.use_begin);
}

bool Fluid::Shares(const Activity& activity) const {
  for (const Use& use : UsesOf(activity)) {
    if (Binds(resources_[use.resource])) return true;
  }
  return false;
}

int64_t Fluid::AloneTime(int32_t kind, int64_t work_bytes) const {
  return Duration(work_bytes * kWorkPerByte, kinds_[kind].alone_q16);
}

int32_t Fluid::Start(int32_t kind, int64_t work_bytes) {
  int32_t id;
  if (free_.empty()) {
    id = static_cast<int32_t>(activities_.size());
    activities_.emplace_back();
  } else {
    id = free_.back();
    free_.pop_back();
  }
  Activity& activity = activities_[id];
  activity.kind = kind;
  activity.left = work_bytes * kWorkPerByte;
  activity.since = now_;
  activity.rate_q16 = 0;
  activity.end = kNever;
  activity.position = static_cast<int32_t>(active_.size());
  active_.push_back(id);
  for (const Use& use : UsesOf(activity)) {
    Resource& resource = resources_[use.resource];
    resource.demand_q36 += int128{use.coefficient_q20} * kinds_[kind].cap_q16;
    ++resource.users;
  }
  if (Shares(activity)) {
    dirty_ = true;
  } else {
    SetRate(activity, kinds_[kind].alone_q16);
  }
  return id;
}

void Fluid::Remove(int32_t id) {
  Activity& activity = activities_[id];
  if (Shares(activity)) dirty_ = true;
  for (const Use& use : UsesOf(activity)) {
    Resource& resource = resources_[use.resource];
    resource.demand_q36 -= int128{use.coefficient_q20} * kinds_[activity.kind].cap_q16;
    --resource.users;
  }
  const int32_t last = active_.back();
  active_[activity.position] = last;
  activities_[last].position = activity.position;
  active_.pop_back();
  free_.push_back(id);
}

int64_t Fluid::NextCompletion() {
  if (dirty_) Solve();
  int64_t next = kNever;
  for (int32_t id : active_) next = std::min(next, activities_[id].end);
  return next;
}

absl::Span<const int32_t> Fluid::AdvanceTo(int64_t time_ps) {
  PLANCAST_DCHECK(time_ps >= now_ && time_ps <= NextCompletion());
  if (dirty_) Solve();
  now_ = time_ps;
  completed_.clear();
  for (int32_t id : active_) {
    if (activities_[id].end <= now_) completed_.push_back(id);
  }
  for (int32_t id : completed_) Remove(id);
  return completed_;
}

int64_t Fluid::RateQ16(int32_t id) {
  if (dirty_) Solve();
  return activities_[id].rate_q16;
}

void Fluid::SetRate(Activity& activity, int64_t rate_q16) {
  if (rate_q16 == activity.rate_q16) return;
  activity.left -= int128{activity.rate_q16} * (now_ - activity.since);
  activity.left = std::max<int128>(activity.left, 0);
  activity.since = now_;
  activity.rate_q16 = rate_q16;
  const int64_t duration = Duration(activity.left, rate_q16);
  activity.end = duration > kNever - now_ ? kNever : now_ + duration;
}

void Fluid::Solve() {
  dirty_ = false;
  rising_.clear();
  filling_.clear();
  for (int32_t r = 0; r < static_cast<int32_t>(resources_.size()); ++r) {
    Resource& resource = resources_[r];
    resource.weight_q20 = 0;
    // One with a single user is here too: its user may rise beside others.
    if (resource.demand_q36 <= resource.capacity_q36) continue;
    resource.left_q36 = resource.capacity_q36;
    filling_.push_back(r);
  }
  for (int32_t id : active_) {
    Activity& activity = activities_[id];
    const Kind& kind = kinds_[activity.kind];
    if (!Shares(activity)) {
      SetRate(activity, kind.alone_q16);
      continue;
    }
    rising_.push_back(id);
    for (const Use& use : UsesOf(activity)) {
      resources_[use.resource].weight_q20 += int128{use.coefficient_q20} * kind.weight;
    }
  }
  while (!rising_.empty()) {
    int64_t level = kNever;
    for (int32_t r : filling_) {
      Resource& resource = resources_[r];
      if (resource.weight_q20 == 0) continue;
      resource.level =
          std::max<int64_t>(SaturateToInt64(resource.left_q36 / resource.weight_q20), 1);
      level = std::min(level, resource.level);
    }
    for (int32_t id : rising_) {
      const Kind& kind = kinds_[activities_[id].kind];
      level = std::min(level, kind.cap_q16 / kind.weight);
    }
    FixAtLevel(level);
  }
}

// Everything that stops rising at `level` stops at once, so that ties do not
// depend on an order.
void Fluid::FixAtLevel(int64_t level) {
  size_t kept = 0;
  const size_t rising = rising_.size();
  for (size_t i = 0; i < rising; ++i) {
    Activity& activity = activities_[rising_[i]];
    const Kind& kind = kinds_[activity.kind];
    bool stops = kind.cap_q16 / kind.weight == level;
    for (const Use& use : UsesOf(activity)) {
      const Resource& resource = resources_[use.resource];
      stops = stops || (resource.demand_q36 > resource.capacity_q36 && resource.level == level);
    }
    if (stops) {
      SetRate(activity, level * kind.weight);
    } else {
      std::swap(rising_[kept++], rising_[i]);
    }
  }
  // The stopped ones are at the end; their share leaves the resources only now.
  for (size_t i = kept; i < rising; ++i) {
    const Activity& activity = activities_[rising_[i]];
    for (const Use& use : UsesOf(activity)) {
      Resource& resource = resources_[use.resource];
      resource.left_q36 -= int128{use.coefficient_q20} * activity.rate_q16;
      resource.weight_q20 -= int128{use.coefficient_q20} * kinds_[activity.kind].weight;
    }
  }
  rising_.resize(kept);
}

}  // namespace plancast
