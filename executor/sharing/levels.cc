#include "executor/sharing/levels.h"

#include <algorithm>

#include "base/check.h"

namespace plancast {

int32_t Levels::AddResource(int64_t capacity_bytes_per_s, Level level, bool contended) {
  capacities_.push_back(capacity_bytes_per_s);
  levels_.push_back(level);
  contended_.push_back(contended);
  return kinds_.AddResource(capacity_bytes_per_s);
}

void Levels::Settle() {
  settled_ = true;
  tree_ = LevelTree(kinds_, levels_, contended_);
  domains_.resize(tree_.domains().size());
  place_in_fluid_.resize(capacities_.size(), -1);
  if (!Fluid::ChecksSolutions()) return;
  flat_ = std::make_unique<Fluid>(policy_);
  for (int64_t capacity : capacities_) flat_->AddResource(capacity);
  for (int32_t k = 0; k < kinds_.size(); ++k) flat_->AddKind(kinds_[k], kinds_.UsesOf(k));
  flat_->AdvanceTo(now_);
}

// A Fluid is built when its domain is first met; most never are.
void Levels::Build(int32_t domain) {
  domains_[domain].fluid = std::make_unique<Fluid>(policy_);
  Fluid& fluid = *domains_[domain].fluid;
  const LevelTree::Domain& node = tree_.domains()[domain];
  std::vector<int32_t> met;
  std::vector<Fluid::Use> uses;
  for (int32_t place = node.kind_begin; place < node.kind_end; ++place) {
    const int32_t kind = tree_.kinds()[place];
    uses.clear();
    for (Fluid::Use use : kinds_.UsesOf(kind)) {
      int32_t& here = place_in_fluid_[use.resource];
      if (here < 0) {
        here = fluid.AddResource(capacities_[use.resource]);
        met.push_back(use.resource);
      }
      use.resource = here;
      uses.push_back(use);
    }
    fluid.AddKind(kinds_[kind], uses);
  }
  for (int32_t resource : met) place_in_fluid_[resource] = -1;
}

Fluid& Levels::At(int32_t domain) {
  Domain& d = domains_[domain];
  if (d.fluid == nullptr) Build(domain);
  // Nothing ends on the way: it would have been the next completion of all.
  if (d.fluid->now() < now_) d.fluid->AdvanceTo(now_);
  if (!d.touched) {
    d.touched = true;
    touched_.push_back(domain);
  }
  return *d.fluid;
}

void Levels::Put(int32_t id, int32_t domain, const Fluid::Progress& progress) {
  Activity& activity = activities_[id];
  activity.domain = domain;
  const int32_t first_kind = tree_.domains()[domain].kind_begin;
  activity.id = At(domain).Put(tree_.PlaceOf(activity.kind) - first_kind, progress);
  Domain& d = domains_[domain];
  activity.place = static_cast<int32_t>(d.active.size());
  d.active.push_back(id);
  if (activity.id >= static_cast<int32_t>(d.ids.size())) d.ids.resize(activity.id + 1);
  d.ids[activity.id] = id;
}

Fluid::Progress Levels::TakeFromDomain(int32_t id) {
  const Activity& activity = activities_[id];
  Leave(activity);
  return At(activity.domain).Take(activity.id);
}

void Levels::Leave(const Activity& activity) {
  std::vector<int32_t>& active = domains_[activity.domain].active;
  activities_[active.back()].place = activity.place;
  active[activity.place] = active.back();
  active.pop_back();
}

void Levels::HandUp(int32_t inner, int32_t outer) {
  while (!domains_[inner].active.empty()) {
    const int32_t id = domains_[inner].active.back();
    CountWay(inner, outer, 1);
    Put(id, outer, TakeFromDomain(id));
  }
}

void Levels::CountWay(int32_t inner, int32_t outer, int32_t by) {
  for (; inner != outer; inner = tree_.domains()[inner].parent) domains_[inner].visitors += by;
}

void Levels::CountVisits(const Activity& activity, int32_t by) {
  for (int32_t d : tree_.CrossedBy(activity.kind)) domains_[d].visitors += by;
  CountWay(tree_.HomeOf(activity.kind), activity.domain, by);
}

int32_t Levels::Start(int32_t kind, const Fluid::Progress& progress) {
  if (!settled_) Settle();
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
  // Where its home's activities go on now.
  activity.domain = tree_.HomeOf(kind);
  while (domains_[activity.domain].visitors > 0) {
    activity.domain = tree_.domains()[activity.domain].parent;
  }
  handed_.clear();
  for (int32_t d : tree_.CrossedBy(kind)) {
    if (domains_[d].visitors == 0) handed_.push_back(d);
  }
  CountVisits(activity, 1);
  for (int32_t d : handed_) HandUp(d, activity.domain);
  Put(id, activity.domain, progress);
  ++num_active_;
  if (flat_ != nullptr) activity.flat_id = flat_->Put(kind, progress);
  return id;
}

void Levels::ChangeKind(int32_t id, int32_t kind) {
  Activity& activity = activities_[id];
  const Fluid::Progress progress = TakeFromDomain(id);
  activity.kind = kind;
  Put(id, activity.domain, progress);
  if (flat_ != nullptr) activity.flat_id = flat_->Put(kind, flat_->Take(activity.flat_id));
}

Fluid::Progress Levels::Take(int32_t id) {
  const Fluid::Progress progress = TakeFromDomain(id);
  if (flat_ != nullptr) flat_->Remove(activities_[id].flat_id);
  Forget(id);
  return progress;
}

void Levels::Forget(int32_t id) {
  CountVisits(activities_[id], -1);
  free_.push_back(id);
  --num_active_;
}

void Levels::TimeCompletions() {
  for (int32_t d : touched_) {
    domains_[d].touched = false;
    completions_.Set(d, domains_[d].fluid->NextCompletion());
  }
  touched_.clear();
  if (flat_ != nullptr) CheckAgainstFlat();
}

void Levels::EndUntil(int64_t time_ps) {
  PLANCAST_DCHECK(time_ps >= now_ && time_ps <= completions_.least_key());
  now_ = time_ps;
  if (flat_ != nullptr) flat_->AdvanceTo(time_ps);
  while (completions_.least_key() <= now_ && !completions_.empty()) {
    const int32_t domain = completions_.least();
    completions_.Set(domain, kNever);  // asked for again when needed
    const Domain& d = domains_[domain];
    for (int32_t local : d.fluid->AdvanceTo(now_)) {
      completed_.push_back(d.ids[local]);
      Leave(activities_[d.ids[local]]);
      Forget(d.ids[local]);
    }
    At(domain);
  }
}

int64_t Levels::RateQ16(int32_t id) {
  const Activity& activity = activities_[id];
  return domains_[activity.domain].fluid->RateQ16(activity.id);
}

int64_t Levels::RateAmongQ16(absl::Span<const int32_t> kinds) const {
  Fluid fluid(policy_);
  std::vector<int32_t> resources;
  std::vector<int32_t> ids;
  for (const int32_t kind : kinds) {
    std::vector<Fluid::Use> uses(kinds_.UsesOf(kind).begin(), kinds_.UsesOf(kind).end());
    for (Fluid::Use& use : uses) {
      const auto known = std::find(resources.begin(), resources.end(), use.resource);
      const auto place = static_cast<int32_t>(known - resources.begin());
      if (known == resources.end()) {
        resources.push_back(use.resource);
        fluid.AddResource(capacities_[use.resource]);
      }
      use.resource = place;
    }
    ids.push_back(fluid.Start(fluid.AddKind(kinds_[kind], uses), /*work_bytes=*/1));
  }
  return fluid.RateQ16(ids[0]);
}

void Levels::Shift(int64_t time_ps) {
  NextCompletion();
  now_ += time_ps;
  for (Domain& domain : domains_) {
    if (domain.fluid != nullptr) domain.fluid->Shift(time_ps);
  }
  completions_.Shift(time_ps);
  if (flat_ != nullptr) flat_->Shift(time_ps);
}

void Levels::CheckAgainstFlat() {
  PLANCAST_CHECK_EQ(flat_->NextCompletion(), completions_.least_key());
  for (const Domain& d : domains_) {
    for (int32_t id : d.active) {
      PLANCAST_CHECK_EQ(flat_->RateQ16(activities_[id].flat_id), RateQ16(id))
          << "activity " << id << " of kind " << activities_[id].kind;
    }
  }
}

}  // namespace plancast
