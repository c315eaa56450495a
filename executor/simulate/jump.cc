// Jumps over periods of a steady state: if all that goes on is what went on two
// periods ago and one, but for the time and the micro-batch, then so it goes until
// the programs change.

#include <algorithm>

#include "executor/simulate/clock.h"
#include "executor/simulate/simulator.h"

namespace plancast {
namespace {

constexpr int64_t kNoTime = -1;

}  // namespace

class Simulator::Snapshot {
 public:
  explicit Snapshot(const Simulator& s) : s_(s) {}

  State Take() && {
    state_.now = s_.now_;
    for (int32_t e = 0; e < static_cast<int32_t>(s_.entities_.size()); ++e) OfEntity(e);
    return std::move(state_);
  }

 private:
  void Exact(int64_t value) { state_.exact.push_back(value); }
  void Wide(int128 value) {
    Exact(static_cast<int64_t>(value >> 64));
    Exact(static_cast<int64_t>(value));
  }
  void Time(int64_t time) { Exact(time == kNoTime ? kNoTime : time - s_.now_); }
  void Place(int32_t entity, int32_t instance) { state_.places.push_back({entity, instance}); }

  void OfEntity(int32_t e) {
    const Entity& entity = s_.entities_[e];
    Exact(entity.comms);
    Exact(entity.open);
    Time(entity.comms > entity.open ? entity.over_at : kNoTime);
    Exact(entity.flows);
    Exact(entity.busy);
    Exact(entity.run.active);
    if (entity.run.active) OfRun(e, entity.run);
    for (int32_t slot = e * kNumSlots; slot < (e + 1) * kNumSlots; ++slot) {
      const bool set = s_.events_.Contains(slot);
      Time(set ? s_.events_.KeyOf(slot) >> 1 : kNoTime);
      Exact(set ? s_.events_.KeyOf(slot) & 1 : 0);
    }
    int32_t first = Lane::kDone;
    for (int32_t lane = e * kNumStreams; lane < (e + 1) * kNumStreams; ++lane) {
      OfLane(e, lane);
      first = std::min(first, s_.lanes_[lane].instance);
    }
    if (s_.in_.index.program(s_.in_.ProgramOf(e)).syncs && first != Lane::kDone) OfHost(e, first);
  }

  // What its host has waited for: the last task before an instance, and all since. They
  // are over one after another.
  void OfHost(int32_t e, int32_t first) {
    const int32_t program = s_.in_.ProgramOf(e);
    const TaskRef before = s_.in_.index.SyncBefore(program, {first, 0, 0});
    state_.syncs.push_back({e, true, before, before.instance < 0 ? 0 : s_.EndOf(e, before)});
    const std::vector<int32_t>& sync_before = s_.in_.index.program(program).sync_before;
    for (auto next = sync_before.begin() + first + 1;; ++next) {
      // The next instance that the host waits for.
      next = std::lower_bound(next, sync_before.end(), next - sync_before.begin() - 1);
      const auto instance = static_cast<int32_t>(next - sync_before.begin()) - 1;
      if (!OfSyncs(e, instance) || next == sync_before.end()) return;
    }
  }
  // Whether all of an instance are over.
  bool OfSyncs(int32_t e, int32_t instance) {
    const int32_t program = s_.in_.ProgramOf(e);
    const std::vector<uint8_t>& flags = s_.in_.BlockAt(e, instance).flags;
    TaskRef task{instance, 0, 0};
    for (; task.copy < s_.in_.index.InstanceOf(program, instance).layer_count; ++task.copy) {
      for (task.task = 0; task.task < static_cast<int32_t>(flags.size()); ++task.task) {
        if ((flags[task.task] & plancast::Block::kHostSync) == 0) continue;
        const int64_t end = s_.EndOf(e, task);
        if (end == kUnknown) return false;
        state_.syncs.push_back({e, false, task, end});
      }
    }
    return true;
  }

  void OfRun(int32_t e, const CopyRun& run) {
    Place(e, run.instance);
    Exact(run.first_copy);
    Exact(run.copies);
    Exact(run.partial);
    Exact(run.streams);
    Time(run.begin);
    Exact(run.conditions.host);
    for (const int64_t toggle : run.conditions.toggles) Exact(toggle);
    for (const CopyConditions::Ahead& ahead : run.conditions.ahead) {
      Exact(ahead.stream);
      Exact(ahead.rank);
      Exact(ahead.runs);
      Exact(ahead.since);
      Wide(ahead.work_left);
    }
  }

  void OfLane(int32_t e, int32_t index) {
    const Lane& lane = s_.lanes_[index];
    Place(e, lane.instance);
    Exact(lane.copy);
    Exact(lane.rank);
    Exact(lane.state);
    if (lane.state == Lane::kBlocked) {
      Place(e, lane.blocker.instance);
      Exact(lane.blocker.copy);
      Exact(lane.blocker.task);
    }
    if (lane.state == Lane::kKernel) {
      const Chain& chain = s_.chains_[index];
      Exact(chain.end_rank);
      Exact(chain.rank);
      Time(chain.since);
      Exact(chain.left);
      Exact(chain.slow);
      Time(chain.end);
    }
    if (lane.state != Lane::kFlies) return;
    Exact(s_.next_member_[index]);
    Exact(s_.flight_of_[index]);
    if (s_.flight_of_[index] == index) OfFlight(s_.flights_[index]);
  }

  void OfFlight(const Flight& flight) {
    Exact(flight.group);
    Exact(flight.flows);
    Exact(flight.slow);
    Exact(flight.busy);
    if (!flight.flows) {
      Time(flight.transfer_at);
      return Wide(flight.work_left);
    }
    const Fluid::Progress progress =
        flight.activity >= 0 ? s_.fluid_.ProgressOf(flight.activity) : flight.progress;
    Wide(progress.LeftAt(s_.now_));
    Exact(progress.rate_q16);
  }

  const Simulator& s_;
  State state_;
};

// A place a period later, or that of what waits for something after the steady
// state, which comes to the same. A host that has not waited since goes on by itself.
bool Simulator::IsLater(const State& state, const State& before) const {
  if (state.exact != before.exact || state.places.size() != before.places.size() ||
      state.syncs.size() != before.syncs.size()) {
    return false;
  }
  for (size_t i = 0; i < state.syncs.size(); ++i) {
    const under_way::HostSync &a = state.syncs[i], &b = before.syncs[i];
    if (a.entity != b.entity || a.first != b.first) return false;
    if (a.first && a.task == b.task) continue;
    TaskRef later = b.task;
    later.instance += periods_.Of(in_.ProgramOf(a.entity));
    if (!(a.task == later) || a.end - state.now != b.end - before.now) return false;
  }
  for (size_t i = 0; i < state.places.size(); ++i) {
    const auto [entity, instance] = state.places[i];
    const int32_t way = instance - before.places[i].second;
    if (way != 0 && way != periods_.Of(in_.ProgramOf(entity))) return false;
  }
  return true;
}

void Simulator::LookForPeriod() {
  const int32_t at = lanes_[kCompute].instance;
  if (at < next_anchor_) return;
  next_anchor_ = at + periods_.Of(in_.ProgramOf(0));
  State state = Snapshot(*this).Take();
  const bool steady = IsLater(state, last_state_);
  const bool again = steady && steady_ && state.now - last_state_.now == last_period_;
  if (steady) last_period_ = state.now - last_state_.now;
  steady_ = steady;
  if (again && Jump(state)) next_anchor_ = Lane::kDone;
  host_bound_ = std::max(host_bound_ - 1, 0);
  last_state_ = std::move(state);
}

bool Simulator::HostsKeepPace(const State& state) const {
  std::vector<bool> waits(in_.graph.programs.size());  // in every period
  for (size_t i = 0; i < state.syncs.size(); ++i) {
    if (state.syncs[i].task == last_state_.syncs[i].task) continue;
    waits[in_.ProgramOf(state.syncs[i].entity)] = true;
  }
  for (size_t p = 0; p < in_.graph.programs.size(); ++p) {
    const auto program = static_cast<int32_t>(p);
    if (!hosted_[p] || waits[p]) continue;
    const int32_t period = periods_.Of(program);
    const int32_t middle = static_cast<int32_t>(in_.graph.programs[p].instances.size()) / 2;
    const int32_t first = middle - period / 2;
    const int64_t launches = in_.index.LaunchesBefore(program, {first + period, 0, 0}) -
                             in_.index.LaunchesBefore(program, {first, 0, 0});
    const std::vector<int32_t>& graphs = in_.index.program(program).graphs;
    const int64_t own = graphs.empty() ? 0 : graphs[first + period] - graphs[first];
    const int64_t launching =
        launches * in_.hosts[p].launch_ps + own * in_.hosts[p].graph_launch_ps;
    // Further ahead each time, so it must not have mattered in the two that were alike.
    if (launching > last_period_ || (launching < last_period_ && host_bound_ > 0)) return false;
  }
  return true;
}

int32_t Simulator::PeriodsAhead(int32_t e, const State& state, Front& front) const {
  const int32_t program = in_.ProgramOf(e), period = periods_.Of(program);
  // Lanes that go on are those a period ago, shifted.
  front = {Lane::kDone, 0};
  for (size_t i = 0; i < state.places.size(); ++i) {
    const auto [entity, instance] = state.places[i];
    if (entity != e || instance == last_state_.places[i].second) continue;
    front.first = std::min(front.first, instance);
    front.last = std::max(front.last, instance);
  }
  if (front.first == Lane::kDone || front.last - front.first > period) return 0;
  // What has gone ahead of the others did not do the same in every period.
  const ProgramIndex& index = in_.index.program(program);
  for (int stream = 0; stream < kNumStreams; ++stream) {
    const int32_t at = lanes_[e * kNumStreams + stream].instance;
    const auto end = index.lane.begin() + index.lane_begin[stream + 1];
    const auto next =
        std::lower_bound(index.lane.begin() + index.lane_begin[stream], end, front.first);
    if (at > front.last && next != end && *next < std::min(at, front.first + period)) return 0;
  }
  int32_t end = front.first - period;
  while (periods_.Alike(program, end)) ++end;
  int32_t most = (end - front.last) / period;
  // What others wait for must not be over on the way.
  for (int32_t lane = e * kNumStreams; lane < (e + 1) * kNumStreams; ++lane) {
    if (lanes_[lane].state != Lane::kBlocked) continue;
    const int32_t blocker = lanes_[lane].blocker.instance;
    if (blocker > front.last) most = std::min(most, (blocker - front.last) / period - 1);
  }
  return most;
}

bool Simulator::Jump(const State& state) {
  if (!HostsKeepPace(state)) return false;
  std::vector<Front> fronts(entities_.size());
  int32_t times = Lane::kDone;
  for (int32_t e = 0; e < static_cast<int32_t>(entities_.size()); ++e) {
    times = std::min(times, PeriodsAhead(e, state, fronts[e]));
    if (times < 1) return true;  // nor later
  }
  if (last_period_ > 0) {  // what is left goes beyond the clock by itself
    times = static_cast<int32_t>(std::min<int64_t>(times, (kLatestPs - now_) / last_period_));
    if (times < 1) return true;
  }
  trace_.periods = times;
  trace_.period_ps = last_period_;
  const int64_t way = times * last_period_;
  for (int32_t e = 0; e < static_cast<int32_t>(entities_.size()); ++e) {
    RepeatPieces(e, fronts[e], times);
    trace_.repeats.push_back({fronts[e].first, periods_.Of(in_.ProgramOf(e))});
  }
  // Lanes first: what they meet is known by where they were.
  size_t place = 0;
  const auto later = [&](int32_t& instance, int32_t entity) {
    const bool goes_on = instance != last_state_.places[place++].second;
    if (goes_on) instance += times * periods_.Of(in_.ProgramOf(entity));
    return goes_on;
  };
  for (int32_t e = 0; e < static_cast<int32_t>(entities_.size()); ++e) {
    CopyRun& run = entities_[e].run;
    run.refused = -1;
    entities_[e].over_at += way;
    if (run.active) {
      later(run.instance, e);
      run.begin += way;
    }
    for (int32_t l = e * kNumStreams; l < (e + 1) * kNumStreams; ++l) {
      Lane& lane = lanes_[l];
      const int32_t before = lane.instance;
      if (later(lane.instance, e)) {
        lane.last_end += way;
        const ProgramIndex& index = in_.index.program(in_.ProgramOf(e));
        const auto begin = index.lane.begin() + index.lane_begin[l % kNumStreams];
        lane.cursor = static_cast<int32_t>(
            std::lower_bound(begin, index.lane.begin() + index.lane_begin[l % kNumStreams + 1],
                             lane.instance) -
            begin);
      }
      if (lane.state == Lane::kBlocked) {
        later(lane.blocker.instance, e);
        Wake(e, 1u << l % kNumStreams);
      }
      if (lane.state == Lane::kMeets) MoveMeeting(e, before, lane.instance);
      chains_[l].since += way;
      chains_[l].end += way;
      flights_[l].progress.since += way;
      flights_[l].transfer_at += way;
    }
    FindWaiting(e);
  }
  events_.Shift(way << 1);
  fluid_.Shift(way);
  now_ += way;
  Drain();
  SlowTransfers();
  return true;
}

void Simulator::MoveMeeting(int32_t entity, int32_t from, int32_t to) {
  const int32_t program = in_.ProgramOf(entity);
  const int32_t before = in_.index.InstanceOf(program, from).rendezvous;
  const int32_t after = in_.index.InstanceOf(program, to).rendezvous;
  if (before < 0 || before == after) return;
  const SimGraph::Use& use = sim_.uses[in_.uses.of_rendezvous[before]];
  for (int32_t g = 0; g < use.num_groups; ++g) {
    Meeting& meeting = meetings_[meeting_begin_[before] + g];
    if (meeting.arrived == 0) continue;
    meetings_[meeting_begin_[after] + g] = meeting;
    meeting = Meeting();
  }
}

void Simulator::FindWaiting(int32_t e) {
  const int32_t first = e * kNumStreams;
  std::fill_n(waiting_.begin() + first, kNumStreams, StreamMask{0});
  std::fill_n(earliest_wait_.begin() + first, kNumStreams, kNever);
  for (int s = 0; s < kNumStreams; ++s) {
    const Lane& lane = lanes_[first + s];
    if (lane.state != Lane::kBlocked) continue;
    const int32_t other = first + lane.blocking_stream;
    waiting_[other] |= MaskOf(s);
    earliest_wait_[other] =
        std::min(earliest_wait_[other], in_.index.PlaceOf(in_.ProgramOf(e), lane.blocker));
  }
}

void Simulator::RepeatPieces(int32_t e, const Front& front, int32_t times) {
  const int32_t program = in_.ProgramOf(e), period = periods_.Of(program);
  const auto add = [&](int32_t from, int32_t to, int64_t way, bool whole) {
    const Instance& instance = in_.index.InstanceOf(program, from);
    for (int32_t copy = 0; copy < instance.layer_count;) {
      const int32_t at = trace_.PieceOf(e, from, copy);
      ++copy;
      if (at < 0) continue;
      Piece piece = trace_.pieces[at];
      copy = piece.first_copy + piece.copies;
      if (whole || piece.outcome >= 0) {
        piece.origin += way;
      } else {
        // Its lanes go on with it.
        const plancast::Block& block = in_.graph.blocks[instance.block];
        const int64_t begin = piece.start - block.num_in_ports - 1;
        const int64_t count = piece.start + 2 * block.size() - begin;
        piece.start += static_cast<int64_t>(trace_.times.size()) - begin;
        for (int64_t i = begin; i < begin + count; ++i) {
          const int64_t time = trace_.times[i];
          trace_.times.push_back(time == kUnknown ? kUnknown : time + way);
        }
      }
      trace_.Add(e, to, piece);
    }
  };
  // From the last, for the first may come to where the last was.
  for (int32_t i = front.last; i >= front.first; --i) {
    add(i, i + times * period, times * last_period_, /*whole=*/false);
  }
  for (int32_t i = front.first; i < front.first + times * period; ++i) {
    const int32_t later = (i - front.first) / period + 1;
    add(i - later * period, i, later * last_period_, /*whole=*/true);
  }
}

}  // namespace plancast
