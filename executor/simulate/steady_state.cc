#include "executor/simulate/steady_state.h"

#include <algorithm>
#include <utility>

#include "executor/simulate/clock.h"

namespace plancast {
namespace {

// Points of a period to look at, and instances between two of them at least.
constexpr int32_t kMostPhases = 8;
constexpr int32_t kInstancesPerPhase = 16;

// Snapshots to keep, and figures in them: times may come again only after many periods, whose
// lengths are rounded.
constexpr size_t kMostSights = 64;
constexpr size_t kMostFigures = 1'000'000;

// A period is looked for anew so many times, or after so many instances, and after twice as many
// whenever so many looks at one saw no steady state.
constexpr int32_t kMostSearches = 64;
constexpr int32_t kInstancesPerSearch = 16;
constexpr int32_t kMostLooks = 96;

}  // namespace

SteadyState::SteadyState(const SimInput& in, Streams& streams, HostClock& hosts,
                         KernelChains& kernels, Transfers& transfers, LayerRuns& runs,
                         Overlap& overlap, Events& events)
    : in_(in),
      streams_(streams),
      hosts_(hosts),
      kernels_(kernels),
      transfers_(transfers),
      runs_(runs),
      overlap_(overlap),
      events_(events),
      periods_(in.graph) {
  if (!runs_.enabled() || streams_.num_entities() == 0) return;
  in_middle_ = periods_.found();
  if (in_middle_) {
    StartLooking(0);
    return;
  }
  const size_t size = in_.graph.programs[in_.ProgramOf(0)].instances.size();
  search_after_ = std::max(kInstancesPerSearch, static_cast<int32_t>(size / kMostSearches));
  next_look_ = 0;
}

void SteadyState::StartLooking(int32_t instance) {
  const int32_t period = periods_.Of(in_.ProgramOf(0));
  sights_.clear();
  sights_per_period_ = std::clamp(period / kInstancesPerPhase, 1, kMostPhases);
  next_look_ = instance;
  looks_ = 0;
  since_.clear();
}

void SteadyState::StopLooking() {
  next_look_ = StreamCursor::kDone;
  if (in_middle_) return;
  periods_.Forget();
  next_look_ = FirstKernels().instance + search_after_;
}

void SteadyState::FindPeriod() {
  std::vector<int32_t> instances(in_.graph.programs.size(), StreamCursor::kDone);
  for (int32_t e = 0; e < streams_.num_entities(); ++e) {
    int32_t& instance = instances[in_.ProgramOf(e)];
    instance = std::min(instance, streams_.cursor(CursorOf(e, kCompute)).instance);
  }
  if (std::find(instances.begin(), instances.end(), StreamCursor::kDone) == instances.end() &&
      periods_.FindFrom(instances)) {
    StartLooking(FirstKernels().instance);
  } else {
    StopLooking();
  }
}

bool SteadyState::LookNow() {
  if (FirstKernels().done()) {
    next_look_ = StreamCursor::kDone;
    return false;
  }
  if (!periods_.found()) FindPeriod();
  if (!periods_.found()) return false;
  TakeSight();
  const auto ago = static_cast<size_t>(sights_per_period_);
  if (sights_.size() <= ago) return false;
  const Snapshot& now = sights_.back().snapshot;
  const Snapshot& before = sights_[sights_.size() - 1 - ago].snapshot;
  if (IsLater(now, before)) {
    if (!since_.empty() && now.now() - before.now() == period_ps_) return GoOn(now, before);
    BeginSteady(now, before);
    return false;
  }
  since_.clear();
  if (FindCycle(now)) return false;
  const bool vain = ++looks_ > kMostLooks;
  if (!in_middle_ && (vain || !periods_.Alike(in_.ProgramOf(0), FirstKernels().instance))) {
    if (vain) search_after_ *= 2;
    StopLooking();
  }
  return false;
}

void SteadyState::TakeSight() {
  Sight sight;
  if (!sights_.empty()) {
    const size_t figures = sights_.back().snapshot.exact().size() + 1;
    const size_t most = std::min(kMostSights, kMostFigures / figures);
    if (sights_.size() > std::max<size_t>(most, sights_per_period_)) {
      sight = std::move(sights_.front());
      sights_.pop_front();
    }
  }
  sight.instance = FirstKernels().instance;
  Take(sight.snapshot);
  sights_.push_back(std::move(sight));
  // A period after the next of those that were before, if there is one.
  const int32_t period = periods_.Of(in_.ProgramOf(0));
  const auto ago = static_cast<size_t>(sights_per_period_);
  next_look_ = sights_.size() < ago ? sights_.back().instance + period / sights_per_period_
                                    : sights_[sights_.size() - ago].instance + period;
}

void SteadyState::BeginSteady(const Snapshot& now, const Snapshot& before) {
  period_ps_ = now.now() - before.now();
  since_ps_ = before.now();
  since_ = FrontsOf(now, before);
}

bool SteadyState::FindCycle(const Snapshot& now) {
  const auto ago = static_cast<size_t>(sights_per_period_);
  for (size_t n = 2; n * ago < sights_.size(); ++n) {
    const Snapshot& before = sights_[sights_.size() - 1 - n * ago].snapshot;
    if (before.hash() != now.hash()) continue;
    const auto periods = static_cast<int32_t>(n);
    if (!Widen(periods)) return false;
    if (IsLater(now, before)) {
      BeginSteady(now, before);
      return true;
    }
    periods_.Narrow(periods);
    sights_per_period_ /= periods;
  }
  return false;
}

bool SteadyState::GoOn(const Snapshot& now, const Snapshot& before) {
  std::vector<Front> fronts = FrontsOf(now, before);
  const bool past = IsPast(fronts);
  if (!past && now.now() - since_ps_ < 2 * period_ps_) return false;
  if (!HostsKeepPace(now, before, fronts)) {
    since_ps_ = before.now();
    since_ = std::move(fronts);
    return false;
  }
  const int32_t periods = past ? PeriodsAhead(fronts) : 0;
  if (periods > 0) {
    Skip(periods, now, before, fronts);
    StopLooking();
    return true;
  }
  // Streams that are further apart may be within several periods, as one.
  const int32_t spread = Spread(fronts);
  if (spread > 1 && Widen(spread)) {
    since_.clear();
    return false;
  }
  search_after_ *= 2;
  StopLooking();
  return false;
}

void SteadyState::Take(Snapshot& snapshot) const {
  snapshot.Begin(events_.now());
  for (int32_t e = 0; e < streams_.num_entities(); ++e) {
    const Overlap::Entity& overlap = overlap_.of(e);
    snapshot.Exact(overlap.comms);
    snapshot.Exact(overlap.open);
    snapshot.Time(overlap.comms > overlap.open ? overlap.over_at : Snapshot::kNoTime);
    snapshot.Exact(overlap.transfers);
    snapshot.Exact(overlap.busy);
    runs_.Describe(e, snapshot);
    const uint32_t streams = in_.index.program(in_.ProgramOf(e)).streams;
    constexpr uint32_t kOwnSlots = 1u << Events::kRunEnd | 1u << Events::kBusyChange;
    for (uint32_t rest = streams | kOwnSlots; rest != 0; rest &= rest - 1) {
      const int slot = __builtin_ctz(rest);
      const bool set = events_.IsSet(e, slot);
      snapshot.Time(set ? events_.TimeOf(e, slot) : Snapshot::kNoTime);
      if (set) snapshot.Exact(events_.MomentOf(e, slot));
    }
    int32_t first = StreamCursor::kDone;
    for (uint32_t rest = streams; rest != 0; rest &= rest - 1) {
      const int32_t c = CursorOf(e, __builtin_ctz(rest));
      const StreamCursor& cursor = streams_.cursor(c);
      first = std::min(first, cursor.instance);
      snapshot.At(e, cursor.instance, StreamOf(c));
      snapshot.Exact(TaskIndex::Place(cursor.state, cursor.layer, cursor.rank));
      if (cursor.state == StreamCursor::kBlocked) {
        snapshot.At(e, cursor.blocker.instance, StreamOf(c));
        snapshot.Exact(TaskIndex::Place(0, cursor.blocker.layer, cursor.blocker.task));
      }
      if (cursor.state == StreamCursor::kKernels) kernels_.Describe(c, snapshot);
      if (cursor.state == StreamCursor::kInFlight) transfers_.Describe(c, snapshot);
    }
    if (in_.index.program(in_.ProgramOf(e)).syncs && first != StreamCursor::kDone) {
      DescribeHost(e, first, snapshot);
    }
  }
}

// What a host has waited for: the last task before an instance, and all since. They are over
// one after another.
void SteadyState::DescribeHost(int32_t e, int32_t first, Snapshot& snapshot) const {
  const int32_t program = in_.ProgramOf(e);
  const TaskRef before = in_.index.SyncBefore(program, {first, 0, 0});
  snapshot.Waited({e, true, before, before.instance < 0 ? 0 : streams_.EndOf(e, before)});
  const std::vector<int32_t>& sync_before = in_.index.program(program).sync_before;
  for (auto next = sync_before.begin() + first + 1;; ++next) {
    // The next instance that the host waits for.
    next = std::lower_bound(next, sync_before.end(), next - sync_before.begin() - 1);
    const auto instance = static_cast<int32_t>(next - sync_before.begin()) - 1;
    if (!DescribeSyncs(e, instance, snapshot) || next == sync_before.end()) return;
  }
}

// Whether all of an instance are over.
bool SteadyState::DescribeSyncs(int32_t e, int32_t instance, Snapshot& snapshot) const {
  const int32_t layers = in_.index.InstanceOf(in_.ProgramOf(e), instance).layer_count;
  const std::vector<uint8_t>& flags = in_.BlockAt(e, instance).flags;
  TaskRef task{instance, 0, 0};
  for (; task.layer < layers; ++task.layer) {
    for (task.task = 0; task.task < static_cast<int32_t>(flags.size()); ++task.task) {
      if ((flags[task.task] & Block::kHostSync) == 0) continue;
      const int64_t end = streams_.EndOf(e, task);
      if (end == Streams::kUnknown) return false;
      snapshot.Waited({e, false, task, end});
    }
  }
  return true;
}

// A place a period later, or that of what waits for something after the steady
// state, which comes to the same. A host that has not waited since goes on by itself.
bool SteadyState::IsLater(const Snapshot& now, const Snapshot& before) const {
  if (now.exact() != before.exact() || now.places().size() != before.places().size() ||
      now.syncs().size() != before.syncs().size()) {
    return false;
  }
  for (size_t i = 0; i < now.syncs().size(); ++i) {
    const Snapshot::HostSync &a = now.syncs()[i], &b = before.syncs()[i];
    if (a.entity != b.entity || a.first != b.first) return false;
    if (a.first && a.task == b.task) continue;
    TaskRef later = b.task;
    later.instance += periods_.Of(in_.ProgramOf(a.entity));
    if (!(a.task == later) || a.end - now.now() != b.end - before.now()) return false;
  }
  for (size_t i = 0; i < now.places().size(); ++i) {
    const auto [entity, instance, stream] = now.places()[i];
    const int32_t way = instance - before.places()[i].instance;
    if (way != 0 && way != periods_.Of(in_.ProgramOf(entity))) return false;
  }
  return true;
}

bool SteadyState::HostsKeepPace(const Snapshot& now, const Snapshot& before,
                                const std::vector<Front>& fronts) const {
  std::vector<bool> waits(in_.graph.programs.size());  // in every period
  for (size_t i = 0; i < now.syncs().size(); ++i) {
    if (now.syncs()[i].task == before.syncs()[i].task) continue;
    waits[in_.ProgramOf(now.syncs()[i].entity)] = true;
  }
  for (int32_t e = 0; e < streams_.num_entities(); ++e) {
    const int32_t program = in_.ProgramOf(e);
    if (fronts[e].first == StreamCursor::kDone) return false;
    if (!hosts_.Matters(program) || waits[program]) continue;
    const int32_t period = periods_.Of(program);
    if (!hosts_.KeepsPace(program, fronts[e].first - period, period, period_ps_, since_ps_)) {
      return false;
    }
  }
  return true;
}

std::vector<SteadyState::Front> SteadyState::FrontsOf(const Snapshot& now,
                                                      const Snapshot& before) const {
  std::vector<Front> fronts(streams_.num_entities());
  for (int32_t e = 0; e < streams_.num_entities(); ++e) fronts[e].ahead = FarAhead(e);
  // Streams that go on are those a period ago, shifted.
  for (size_t i = 0; i < now.places().size(); ++i) {
    const auto [entity, instance, stream] = now.places()[i];
    if (instance == before.places()[i].instance) continue;
    Front& front = fronts[entity];
    if ((front.ahead & MaskOf(stream)) != 0) {
      front.goes_ahead |= MaskOf(stream);
      front.at[stream] = instance;
      continue;
    }
    front.first = std::min(front.first, instance);
    front.last = std::max(front.last, instance);
  }
  for (int32_t e = 0; e < streams_.num_entities(); ++e) {
    Front& front = fronts[e];
    front.ahead = front.goes_ahead;
    front.begun = front.first - 1;
    for (int32_t c = CursorOf(e, 0); c < CursorOf(e + 1, 0); ++c) {
      const StreamCursor& cursor = streams_.cursor(c);
      if (cursor.instance > front.last) continue;
      const bool begun = cursor.layer > 0 || cursor.rank > 0 || !cursor.waits();
      front.begun = std::max(front.begun, cursor.instance - (begun ? 0 : 1));
    }
  }
  return fronts;
}

StreamMask SteadyState::FarAhead(int32_t e) const {
  const int32_t program = in_.ProgramOf(e), period = periods_.Of(program);
  const ProgramIndex& index = in_.index.program(program);
  const int32_t kernels = streams_.cursor(CursorOf(e, kCompute)).instance;
  StreamMask ahead = 0;
  if (kernels == StreamCursor::kDone) return ahead;
  for (uint32_t rest = index.streams & ~(1u << kCompute); rest != 0; rest &= rest - 1) {
    const int stream = __builtin_ctz(rest);
    const StreamCursor& cursor = streams_.cursor(CursorOf(e, stream));
    if (cursor.done() || cursor.state == StreamCursor::kBlocked) continue;
    if (cursor.instance - kernels <= period) continue;
    // The host launches all of them without waiting for any.
    if (index.sync_before[cursor.instance] != index.sync_before[kernels]) continue;
    const int32_t* at = &index.instances_of_streams[index.stream_begin[stream] + cursor.position];
    const int32_t* const begin = &index.instances_of_streams[index.stream_begin[stream]];
    bool alone = true;
    for (; alone && at >= begin && *at >= cursor.instance - period; --at) {
      alone = in_.index.BlockAt(program, *at).streams == MaskOf(stream);
    }
    if (alone) ahead |= MaskOf(stream);
  }
  return ahead;
}

bool SteadyState::IsPast(const std::vector<Front>& fronts) const {
  for (size_t e = 0; e < fronts.size(); ++e) {
    if (fronts[e].first <= since_[e].begun || fronts[e].ahead != since_[e].ahead) return false;
    for (uint32_t rest = fronts[e].ahead; rest != 0; rest &= rest - 1) {
      const int stream = __builtin_ctz(rest);
      if (fronts[e].at[stream] <= since_[e].at[stream]) return false;
    }
  }
  return true;
}

bool SteadyState::Widen(int32_t periods) {
  if (!periods_.Widen(periods)) return false;
  sights_per_period_ *= periods;
  return true;
}

int32_t SteadyState::Spread(const std::vector<Front>& fronts) const {
  int32_t most = 1;
  for (int32_t e = 0; e < streams_.num_entities(); ++e) {
    const int32_t period = periods_.Of(in_.ProgramOf(e));
    if (fronts[e].begun > fronts[e].first) {
      most = std::max(most, (fronts[e].begun - fronts[e].first) / period + 1);
    }
  }
  return most;
}

}  // namespace plancast
