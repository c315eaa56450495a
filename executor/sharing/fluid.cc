#include "executor/sharing/fluid.h"

#include <algorithm>

#include "base/check.h"

namespace plancast {

int32_t Fluid::AddResource(int64_t capacity_bytes_per_s) {
  const int32_t index = kinds_.AddResource(capacity_bytes_per_s);
  resources_.emplace_back();
  resources_.back().capacity_q36 = kinds_.capacity_q36(index);
  return index;
}

int32_t Fluid::AddKind(int64_t rate_cap_bytes_per_s, int64_t weight, absl::Span<const Use> uses,
                       int32_t priority) {
  free_.push_back(-1);
  return kinds_.AddKind(rate_cap_bytes_per_s, weight, uses, priority);
}

int32_t Fluid::AddKind(const ActivityKinds::Kind& kind, absl::Span<const Use> uses) {
  free_.push_back(-1);
  return kinds_.AddKind(kind, uses);
}

void Fluid::MarkChanged(int32_t resource) {
  if (resources_[resource].changed) return;
  resources_[resource].changed = true;
  changed_.push_back(resource);
}

Fluid::Progress Fluid::Fresh(int64_t work_bytes, int64_t now) {
  Progress progress;
  progress.left = ActivityKinds::Work(work_bytes);
  progress.since = now;
  if (work_bytes == 0) progress.end = now;
  return progress;
}

int32_t Fluid::Start(int32_t kind, int64_t work_bytes) {
  return Put(kind, Fresh(work_bytes, now_));
}

int32_t Fluid::Put(int32_t kind, const Progress& progress) {
  int32_t id;
  const bool shares = Enter(kind, progress, &id);
  completions_.Set(id, progress.end);
  // Whoever shares gets a rate with the next solution.
  if (!shares) {
    SetRate(id, kinds_[kind].AloneQ16());
    TimeCompletions();
  }
  return id;
}

bool Fluid::Enter(int32_t kind_index, const Progress& progress, int32_t* id) {
  const ActivityKinds::Kind& kind = kinds_[kind_index];
  if (free_[kind_index] < 0) {
    *id = static_cast<int32_t>(activities_.size());
    activities_.emplace_back();
    activities_.back().kind = kind_index;
    activities_.back().first_place = static_cast<int32_t>(places_.size());
    places_.resize(places_.size() + static_cast<size_t>(kind.use_end - kind.use_begin));
  } else {
    *id = free_[kind_index];
    free_[kind_index] = activities_[*id].next_free;
  }
  Activity& activity = activities_[*id];
  activity.progress = progress;
  bool shares = false;
  for (int32_t u = kind.use_begin; u < kind.use_end; ++u) {
    const Use& use = kinds_.use(u);
    Resource& resource = resources_[use.resource];
    resource.AddDemand(int128{use.coefficient_q20} * kind.weight, kind.cap_level);
    places_[activity.first_place + u - kind.use_begin] =
        static_cast<int32_t>(resource.users.size());
    resource.users.push_back({*id, u});
    if (!resource.Binds()) continue;
    shares = true;
    MarkChanged(use.resource);
  }
  return shares;
}

void Fluid::Remove(int32_t id) {
  Activity& activity = activities_[id];
  const ActivityKinds::Kind& kind = kinds_[activity.kind];
  for (int32_t u = kind.use_begin; u < kind.use_end; ++u) {
    const Use& use = kinds_.use(u);
    Resource& resource = resources_[use.resource];
    if (resource.Binds()) MarkChanged(use.resource);
    resource.AddDemand(-int128{use.coefficient_q20} * kind.weight, kind.cap_level);
    // The last user takes the place.
    const int32_t place = places_[activity.first_place + u - kind.use_begin];
    const User last = resource.users.back();
    const Activity& mover = activities_[last.activity];
    places_[mover.first_place + last.use - kinds_[mover.kind].use_begin] = place;
    resource.users[place] = last;
    resource.users.pop_back();
  }
  completions_.Remove(id);
  activity.next_free = free_[activity.kind];
  free_[activity.kind] = id;
}

Fluid::Progress Fluid::Take(int32_t id) {
  Remove(id);
  return activities_[id].progress;
}

Fluid::Progress Fluid::ProgressOf(int32_t id) {
  Solve();
  return activities_[id].progress;
}

void Fluid::Shift(int64_t time_ps) {
  Solve();
  now_ += time_ps;
  for (Activity& activity : activities_) {
    activity.progress.since += time_ps;
    if (activity.progress.end != kNever) activity.progress.end += time_ps;
  }
  completions_.Shift(time_ps);
}

int64_t Fluid::NextCompletion() {
  Solve();
  return completions_.least_key();
}

absl::Span<const int32_t> Fluid::AdvanceTo(int64_t time_ps) {
  PLANCAST_DCHECK(time_ps >= now_ && time_ps <= NextCompletion());
  Solve();
  now_ = time_ps;
  completed_.clear();
  while (completions_.least_key() <= now_ && !completions_.empty()) {
    completed_.push_back(completions_.least());
    Remove(completed_.back());
  }
  return completed_;
}

int64_t Fluid::RateQ16(int32_t id) {
  Solve();
  return activities_[id].progress.rate_q16;
}

void Fluid::SetRate(int32_t id, int64_t rate_q16) {
  Progress& progress = activities_[id].progress;
  if (rate_q16 == progress.rate_q16) return;
  PLANCAST_CHECK(!checks_) << "activity " << id << " has rate " << progress.rate_q16
                           << " and solving all gives " << rate_q16;
  progress.left = progress.LeftAt(now_);
  progress.since = now_;
  progress.rate_q16 = rate_q16;
  const int64_t duration = ActivityKinds::Duration(progress.left, rate_q16);
  progress.end = duration > kNever - now_ ? kNever : now_ + duration;
  moved_.push_back(id);
}

void Fluid::TimeCompletions() {
  if (moved_.size() * 8 < static_cast<size_t>(completions_.size())) {
    for (int32_t id : moved_) completions_.Set(id, activities_[id].progress.end);
  } else {
    for (int32_t id : moved_) completions_.Put(id, activities_[id].progress.end);
    completions_.Order();
  }
  moved_.clear();
}

}  // namespace plancast
