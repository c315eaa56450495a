// Progressive filling of what changed: reach the activities that are connected to
// it, and let them rise class by class, level by level.

#include <algorithm>
#include <functional>

#include "base/check.h"
#include "executor/sharing/fluid.h"

namespace plancast {
namespace {

// Levels up to which scanning all takes less time than a heap.
constexpr size_t kFew = 96;

}  // namespace

#ifdef NDEBUG
std::atomic<bool> Fluid::check_solutions_{false};
#else
std::atomic<bool> Fluid::check_solutions_{true};
#endif

// At least one while nothing more urgent uses the resource, however many share
// it: what runs comes to an end.
int64_t Fluid::Resource::Level() const {
  return std::max(SaturateToInt64(left_q36 / weight_q20), least_level);
}

void Fluid::Solve() {
  if (changed_.empty()) return;
  Reach();
  const auto priority = [this](int32_t id) { return kinds_[activities_[id].kind].priority; };
  int32_t* begin = component_.data();
  int32_t* const end = begin + component_.size();
  if (policy_ == LinkSharing::kPriority) {
    std::sort(begin, end, [&](int32_t a, int32_t b) { return priority(a) < priority(b); });
  }
  for (int32_t r : reached_) resources_[r].left_q36 = resources_[r].capacity_q36;
  if (begin == end || policy_ == LinkSharing::kMaxMin || priority(*begin) == priority(end[-1])) {
    PrepareAll();
    FillUp(end - begin);
  } else {
    while (begin < end) {
      int32_t* const next = std::find_if(
          begin, end, [&, first = priority(*begin)](int32_t id) { return priority(id) != first; });
      PrepareClass(begin, next);
      FillUp(next - begin);
      begin = next;
    }
  }
  TimeCompletions();
  if (ChecksSolutions() && !checks_) CheckAgainstAll();
}

// From the changed resources over their users to the resources that hold those,
// and so on. Only one that binds leads further; one with a single user is reached
// with it if it may rise alongside others. Users of a resource that binds no more get
// their rates alone or are reached from others.
void Fluid::Reach() {
  ++solution_;
  reached_.swap(changed_);
  changed_.clear();
  component_.clear();
  for (int32_t r : reached_) {
    resources_[r].changed = false;
    resources_[r].reached = solution_;
  }
  for (size_t i = 0; i < reached_.size(); ++i) {
    for (const User& user : resources_[reached_[i]].users) {
      Activity& activity = activities_[user.activity];
      if (activity.reached == solution_) continue;
      activity.reached = solution_;
      const size_t before = reached_.size();
      bool shares = false;
      for (const Use& use : UsesOf(activity)) {
        Resource& resource = resources_[use.resource];
        if (!resource.overloads) continue;
        shares = shares || resource.users.size() > 1;
        if (resource.reached == solution_) continue;
        resource.reached = solution_;
        reached_.push_back(use.resource);
      }
      if (shares) {
        component_.push_back(user.activity);
      } else {
        reached_.resize(before);
        SetRate(user.activity, kinds_[activity.kind].AloneQ16());
      }
    }
  }
}

// Few levels are scanned each time, many are heaps.
void Fluid::OrderLevels() {
  few_ = filling_.size() + capped_.size() <= kFew;
  if (few_) return;
  std::make_heap(filling_.begin(), filling_.end(), std::greater<>());
  std::make_heap(capped_.begin(), capped_.end(), std::greater<>());
}

// Activities of one class: all users of the resources that were reached rise.
void Fluid::PrepareAll() {
  ++pass_;
  filling_.clear();
  capped_.clear();
  for (int32_t id : component_) Rise(id);
  for (int32_t r : reached_) {
    if (!resources_[r].overloads) continue;
    resources_[r].weight_q20 = resources_[r].demand_q20;
    filling_.emplace_back(FirstLevel(r), r);
  }
  OrderLevels();
}

// One class of several, with what those before have left.
void Fluid::PrepareClass(const int32_t* begin, const int32_t* end) {
  ++pass_;
  filling_.clear();
  capped_.clear();
  for (const int32_t* id = begin; id < end; ++id) {
    Rise(*id);
    const int64_t weight = kinds_[activities_[*id].kind].weight;
    for (const Use& use : UsesOf(activities_[*id])) {
      Resource& resource = resources_[use.resource];
      if (!resource.overloads) continue;
      if (resource.pass != pass_) {
        resource.pass = pass_;
        resource.weight_q20 = 0;
        filling_.emplace_back(0, use.resource);
      }
      resource.weight_q20 += int128{use.coefficient_q20} * weight;
    }
  }
  for (auto& [level, resource] : filling_) level = FirstLevel(resource);
  OrderLevels();
}

void Fluid::Rise(int32_t id) {
  Activity& activity = activities_[id];
  activity.rises = pass_;
  const ActivityKinds::Kind& kind = kinds_[activity.kind];
  // Any other is stopped by a resource before its cap.
  if (kind.cap_level == kind.alone_level) capped_.emplace_back(kind.cap_level, id);
}

int64_t Fluid::FirstLevel(int32_t r) {
  Resource& resource = resources_[r];
  resource.stale = false;
  resource.least_level = resource.left_q36 == resource.capacity_q36 ? 1 : 0;
  return resource.Level();
}

void Fluid::FillUp(int64_t rising) {
  for (; rising > 0; rising -= static_cast<int64_t>(stopped_.size())) StopAt(NextLevel());
}

// Levels only rise as activities stop, so that those that are kept are lower bounds
// and only the least have to be exact.
int64_t Fluid::NextLevel() {
  if (few_) return NextOfFew();
  while (!filling_.empty()) {
    const int32_t r = filling_.front().second;
    Resource& resource = resources_[r];
    if (resource.weight_q20 > 0 && !resource.stale) break;
    std::pop_heap(filling_.begin(), filling_.end(), std::greater<>());
    if (resource.weight_q20 == 0) {
      filling_.pop_back();
      continue;
    }
    resource.stale = false;
    filling_.back().first = resource.Level();
    std::push_heap(filling_.begin(), filling_.end(), std::greater<>());
  }
  while (!capped_.empty() && activities_[capped_.front().second].rises != pass_) {
    std::pop_heap(capped_.begin(), capped_.end(), std::greater<>());
    capped_.pop_back();
  }
  PLANCAST_DCHECK(!filling_.empty() || !capped_.empty());
  const int64_t level = filling_.empty() ? kNever : filling_.front().first;
  return capped_.empty() ? level : std::min(level, capped_.front().first);
}

int64_t Fluid::NextOfFew() {
  int64_t least = kNever;
  for (size_t i = 0; i < filling_.size();) {
    if (filling_[i].first < least) {
      Resource& resource = resources_[filling_[i].second];
      if (resource.weight_q20 == 0) {
        filling_[i] = filling_.back();
        filling_.pop_back();
        continue;
      }
      if (resource.stale) {
        resource.stale = false;
        filling_[i].first = resource.Level();
      }
      least = std::min(least, filling_[i].first);
    }
    ++i;
  }
  for (size_t i = 0; i < capped_.size();) {
    if (activities_[capped_[i].second].rises != pass_) {
      capped_[i] = capped_.back();
      capped_.pop_back();
      continue;
    }
    least = std::min(least, capped_[i++].first);
  }
  return least;
}

void Fluid::StopFewAt(int64_t level) {
  for (size_t i = 0; i < filling_.size();) {
    if (filling_[i].first != level) {
      ++i;
      continue;
    }
    Resource& resource = resources_[filling_[i].second];
    if (resource.stale && resource.weight_q20 > 0) {
      resource.stale = false;
      filling_[i].first = resource.Level();
      continue;
    }
    filling_[i] = filling_.back();
    filling_.pop_back();
    for (const User& user : resource.users) Stop(user.activity);
  }
  for (const auto& [cap, id] : capped_) {
    if (cap == level) Stop(id);
  }
}

void Fluid::Stop(int32_t id) {
  if (activities_[id].rises != pass_) return;
  activities_[id].rises = 0;
  stopped_.push_back(id);
}

// Everything that stops rising at `level` stops at once, so that ties do not
// depend on an order; shares leave the resources only then.
void Fluid::StopAt(int64_t level) {
  stopped_.clear();
  if (few_) {
    StopFewAt(level);
  } else {
    StopManyAt(level);
  }
  for (int32_t id : stopped_) {
    const Activity& activity = activities_[id];
    const int64_t weight = kinds_[activity.kind].weight, rate_q16 = level * weight;
    for (const Use& use : UsesOf(activity)) {
      Resource& resource = resources_[use.resource];
      if (!resource.overloads) continue;
      resource.left_q36 -= int128{use.coefficient_q20} * rate_q16;
      resource.weight_q20 -= int128{use.coefficient_q20} * weight;
      resource.stale = true;
    }
    SetRate(id, rate_q16);
  }
}

void Fluid::StopManyAt(int64_t level) {
  while (!filling_.empty() && filling_.front().first == level) {
    const int32_t r = filling_.front().second;
    Resource& resource = resources_[r];
    std::pop_heap(filling_.begin(), filling_.end(), std::greater<>());
    if (resource.stale && resource.weight_q20 > 0) {
      resource.stale = false;
      filling_.back().first = resource.Level();
      std::push_heap(filling_.begin(), filling_.end(), std::greater<>());
      continue;
    }
    filling_.pop_back();
    for (const User& user : resource.users) Stop(user.activity);
  }
  while (!capped_.empty() && capped_.front().first == level) {
    Stop(capped_.front().second);
    std::pop_heap(capped_.begin(), capped_.end(), std::greater<>());
    capped_.pop_back();
  }
}

void Fluid::CheckAgainstAll() {
  checks_ = true;
  for (int32_t r = 0; r < static_cast<int32_t>(resources_.size()); ++r) MarkChanged(r);
  Solve();
  checks_ = false;
}

}  // namespace plancast
