#include "executor/simulate/simulate.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/int128.h"
#include "base/status_macros.h"
#include "executor/contention/comm_priority.h"
#include "executor/simulate/clock.h"
#include "executor/simulate/deadlock.h"
#include "executor/simulate/simulator.h"

namespace plancast {
namespace {

constexpr int64_t kOne = int64_t{1} << 20;

bool Interferes(const SimInput& in) {
  const std::vector<int64_t>& own = in.prices.slowdown_q20;
  return own.empty() ? in.slowdown_q20 > kOne
                     : std::any_of(own.begin(), own.end(), [](int64_t q) { return q > kOne; });
}

}  // namespace

Simulator::Simulator(const SimInput& in, SimTrace memory)
    : in_(in),
      sim_(in.sim),
      interferes_(Interferes(in)),
      yields_(in.comm_slowdown_q20 > kOne),
      trace_(std::move(memory)),
      fluid_(in.link_sharing),
      periods_(in.graph) {}

absl::StatusOr<SimTrace> Simulator::Run() && {
  PrepareLanes();
  PrepareGroups();
  RETURN_IF_ERROR(CheckClock(in_, alone_));
  for (size_t e = 0; e < sim_.entities.size(); ++e) {
    Wake(static_cast<int32_t>(e), (1u << kNumStreams) - 1);
  }
  Drain();
  SettleRuns();
  SlowTransfers();
  while (true) {
    const int64_t next =
        std::min(fluid_.NextCompletion(), events_.empty() ? kNever : events_.least_key() >> 1);
    if (next > kLatestPs) break;
    now_ = next;
    for (const int32_t activity : fluid_.AdvanceTo(next)) EndFlight(of_activity_[activity]);
    while (events_.least_key() == (next << 1 | kEnds)) HandleNext();
    while (events_.least_key() == (next << 1 | kBegins)) HandleNext();
    Drain();
    SettleRuns();
    SlowTransfers();
    if (next_anchor_ != Lane::kDone) LookForPeriod();
  }
  if (fluid_.num_active() > 0 || !events_.empty()) return ClockError();
  for (const Lane& lane : lanes_) {
    if (!lane.done()) return DeadlockError(in_, lanes_);
    trace_.lane_end.push_back(lane.last_end);
    trace_.makespan_ps = std::max(trace_.makespan_ps, lane.last_end);
  }
  for (const HostParams& host : in_.hosts) {
    trace_.makespan_ps = std::max(trace_.makespan_ps, host.start_ps);
  }
  return std::move(trace_);
}

void Simulator::PrepareLanes() {
  trace_.Clear();
  const size_t entities = sim_.entities.size(), lanes = entities * kNumStreams;
  int64_t copies = 0;
  lanes_.resize(lanes);
  for (size_t e = 0; e < entities; ++e) {
    trace_.instance_begin.push_back(static_cast<int64_t>(trace_.copy_begin.size()));
    for (const Instance& instance : in_.graph.programs[sim_.entities[e].program].instances) {
      trace_.copy_begin.push_back(copies);
      copies += instance.layer_count;
    }
    for (int s = 0; s < kNumStreams; ++s) {
      EnterInstance(static_cast<int32_t>(e) * kNumStreams + s, 0);
    }
  }
  trace_.piece_of.assign(copies, -1);
  entities_.resize(entities);
  waiting_.resize(lanes);
  earliest_wait_.resize(lanes, kNever);
  chains_.resize(lanes);
  next_member_.resize(lanes, -1);
  flight_of_.resize(lanes, -1);
  flights_.resize(lanes);
  work_.reserve(entities);
  at_once_ = in_.shortcuts && in_.jitter == nullptr;
  whole_.resize(at_once_ ? entities * in_.graph.blocks.size() : 0);
  variants_of_.resize(in_.graph.blocks.size());
  if (at_once_ && periods_.Of(in_.ProgramOf(0)) > 0) next_anchor_ = 0;
  for (size_t p = 0; p < in_.graph.programs.size(); ++p) {
    hosted_.push_back(in_.hosts[p].Costs() || in_.index.program(static_cast<int32_t>(p)).syncs);
  }
}

void Simulator::PrepareGroups() {
  contention_ = FindContention(in_.uses, sim_, in_.realised);
  for (int32_t r = 0; r < static_cast<int32_t>(sim_.resources.size()); ++r) {
    const SimGraph::Resource& resource = sim_.resources[r];
    fluid_.AddResource(resource.capacity_bytes_per_s, resource.level,
                       /*contended=*/!contention_.LanesOn(r).empty());
  }
  const auto add_kind = [&](const SimGraph::Group& group, int64_t slowdown_q20) {
    const int64_t cap =
        MulDivFloor(std::max<int64_t>(in_.realised[group.realised].rate_cap_bytes_per_s, 1), kOne,
                    slowdown_q20);
    return fluid_.AddKind(std::max<int64_t>(cap, 1), 1, sim_.LoadsOf(group),
                          PriorityOf(in_.uses.uses[group.use]));
  };
  for (const SimGraph::Group& group : sim_.groups) {
    const RealisedCollective& realised = in_.realised[group.realised];
    const int32_t kind = add_kind(group, kOne);
    const int64_t moves =
        realised.work_bytes == 0 ? 0 : fluid_.AloneTime(kind, realised.work_bytes);
    alone_.push_back(SaturateToInt64(int128{realised.delay_ps} + moves));
  }
  // Beside kernels.
  for (size_t g = 0; g < sim_.groups.size() && yields_; ++g) {
    add_kind(sim_.groups[g], in_.comm_slowdown_q20);
  }
  int32_t meetings = static_cast<int32_t>(sim_.groups.size()) * kNumStreams;
  for (int32_t use : in_.uses.of_rendezvous) {
    meeting_begin_.push_back(meetings);
    meetings += sim_.uses[use].num_groups;
  }
  meetings_.resize(meetings);
}

void Simulator::EnterInstance(int32_t lane_index, int32_t cursor) {
  const int stream = lane_index % kNumStreams;
  const ProgramIndex& program = in_.index.program(in_.ProgramOf(lane_index / kNumStreams));
  Lane& lane = lanes_[lane_index];
  lane.cursor = cursor;
  lane.copy = lane.rank = 0;
  const int32_t at = program.lane_begin[stream] + cursor;
  lane.instance = at < program.lane_begin[stream + 1] ? program.lane[at] : Lane::kDone;
}

void Simulator::Wake(int32_t entity_index, uint32_t streams) {
  Entity& entity = entities_[entity_index];
  entity.ready |= static_cast<StreamMask>(streams);
  if (entity.listed) return;
  entity.listed = true;
  work_.push_back(entity_index);
}

void Simulator::Drain() {
  while (!work_.empty()) {
    const int32_t entity = work_.back();
    work_.pop_back();
    while (entities_[entity].ready != 0) {
      const int stream = __builtin_ctz(entities_[entity].ready);
      entities_[entity].ready ^= MaskOf(stream);
      RunStream(entity, stream);
    }
    entities_[entity].listed = false;
  }
}

Simulator::Copy Simulator::OpenCopy(int32_t entity, const Lane& lane) {
  const int32_t program = in_.ProgramOf(entity);
  const Instance& instance = in_.index.InstanceOf(program, lane.instance);
  const plancast::Block& block = in_.graph.blocks[instance.block];
  const int32_t size = block.size();
  int32_t piece = trace_.PieceOf(entity, lane.instance, lane.copy);
  if (piece < 0) {
    const int64_t ports = block.num_in_ports + 1;
    Piece fresh;
    fresh.first_copy = lane.copy;
    fresh.start = static_cast<int64_t>(trace_.times.size()) + ports;
    trace_.times.resize(fresh.start + 2 * size, kUnknown);
    piece = trace_.Add(entity, lane.instance, fresh);
  }
  int64_t* const start = trace_.times.data() + trace_.pieces[piece].start;
  return {&block, &in_.index.block(instance.block), start, start + size,
          start - block.num_in_ports - 1};
}

bool Simulator::CanOpen(int32_t entity, int stream, TaskRef* blocker) {
  const Lane& lane = lanes_[entity * kNumStreams + stream];
  if (trace_.PieceOf(entity, lane.instance, lane.copy) >= 0) return true;
  const plancast::Block& block = in_.BlockAt(entity, lane.instance);
  const BlockIndex& index = in_.index.BlockAt(in_.ProgramOf(entity), lane.instance);
  const int32_t task = index.order[index.order_begin[stream]];
  const TaskRef copy{lane.instance, lane.copy, 0};
  if (index.dep_begin[task] < index.dep_begin[task + 1]) {
    *blocker = {lane.instance, lane.copy, index.deps[index.dep_begin[task]]};
    return false;
  }
  for (int32_t p = index.port_begin[task]; p < index.port_begin[task + 1]; ++p) {
    if (EndOfPort(entity, copy, index.ports[p], blocker) == kUnknown) return false;
  }
  return lane.copy > 0 || EndOfPort(entity, copy, block.num_in_ports, blocker) != kUnknown;
}

int32_t Simulator::TaskOf(int32_t lane_index) const {
  const Lane& lane = lanes_[lane_index];
  const BlockIndex& block =
      in_.index.BlockAt(in_.ProgramOf(lane_index / kNumStreams), lane.instance);
  return block.order[block.order_begin[lane_index % kNumStreams] + lane.rank];
}

int64_t Simulator::ExpectedEnd(int32_t entity, const TaskRef& ref) const {
  const int32_t size = in_.BlockAt(entity, ref.instance).size();
  const int32_t piece = trace_.PieceOf(entity, ref.instance, ref.copy);
  if (piece >= 0) {
    const int64_t end = trace_.TimeIn(trace_.pieces[piece], ref.copy, size, ref.task);
    if (end != kUnknown) return end;
  }
  const CopyRun& run = entities_[entity].run;
  const int32_t copy = ref.copy - run.first_copy;
  if (!run.active || ref.instance != run.instance || copy < 0 || copy >= run.copies) {
    return kUnknown;
  }
  return run.begin + run.period * copy + run.outcome->times[size + ref.task];
}

int64_t Simulator::EndOfPort(int32_t entity, const TaskRef& copy, int32_t port, TaskRef* blocker) {
  TaskIndex::Refs tasks;
  in_.index.TasksOfPort(in_.ProgramOf(entity), copy.instance, copy.copy, port, tasks);
  int64_t latest = 0;
  for (const TaskRef& ref : tasks) {
    const int64_t end = EndOf(entity, ref);
    if (end == kUnknown) {
      *blocker = ref;
      return kUnknown;
    }
    latest = std::max(latest, end);
  }
  return latest;
}

int64_t Simulator::ReadyAt(int32_t entity, const Lane& lane, const Copy& copy, int32_t task,
                           TaskRef* blocker) {
  const BlockIndex& index = *copy.index;
  int64_t ready = lane.last_end;
  for (int32_t d = index.dep_begin[task]; d < index.dep_begin[task + 1]; ++d) {
    const int32_t dep = index.deps[d];
    if (copy.end[dep] == kUnknown || copy.end[dep] > now_) {
      *blocker = {lane.instance, lane.copy, dep};
      return kUnknown;
    }
    ready = std::max(ready, copy.end[dep]);
  }
  const auto wait = [&](int32_t port) {
    int64_t& end = copy.ports[port];
    if (end == kUnknown) end = EndOfPort(entity, {lane.instance, lane.copy, 0}, port, blocker);
    ready = std::max(ready, end);
    return end != kUnknown;
  };
  for (int32_t p = index.port_begin[task]; p < index.port_begin[task + 1]; ++p) {
    if (!wait(index.ports[p])) return kUnknown;
  }
  if (lane.rank == 0 && lane.copy == 0 && !wait(copy.block->num_in_ports)) return kUnknown;
  return ready;
}

void Simulator::Block(int32_t entity, int stream, const TaskRef& blocker) {
  const int32_t program = in_.ProgramOf(entity);
  const int other = in_.index.StreamOf(program, blocker);
  const int32_t other_lane = entity * kNumStreams + other;
  waiting_[other_lane] |= MaskOf(stream);
  earliest_wait_[other_lane] =
      std::min(earliest_wait_[other_lane], in_.index.PlaceOf(program, blocker));
  Lane& lane = lanes_[entity * kNumStreams + stream];
  lane.state = Lane::kBlocked;
  lane.blocker = blocker;
  lane.blocking_stream = static_cast<uint8_t>(other);
  const int64_t expected = ExpectedEnd(entity, blocker);
  if (expected != kUnknown) Schedule(entity * kNumSlots + stream, expected, kBegins);
}

bool Simulator::ClockOf(int32_t entity, const Lane& lane, int32_t task, const Copy& copy,
                        Clock* clock, TaskRef* blocker) {
  const int32_t program = in_.ProgramOf(entity);
  const HostParams& host = in_.hosts[program];
  const BlockIndex& index = *copy.index;
  // Until the host waits again, its clock goes on by launches.
  const bool synced = index.syncs && (lane.copy > 0 || index.sync_before[task] >= 0);
  if (clock->known && !synced) return true;
  const int32_t from = synced ? task : 0;
  const Launch launch = LaunchOf(host, in_.index, program, {lane.instance, lane.copy, from},
                                 [&](const TaskRef& ref) { return EndOf(entity, ref); });
  if (!launch.known) {
    *blocker = launch.sync;
    return false;
  }
  clock->known = !synced;
  clock->zero = launch.last_ps - host.launch_ps * index.launches[from + 1];
  return true;
}

void Simulator::RunStream(int32_t entity, int stream) {
  const int32_t lane_index = entity * kNumStreams + stream;
  Lane& lane = lanes_[lane_index];
  if (lane.state > Lane::kWaits) return;
  if (lane.state != Lane::kIdle) Cancel(entity * kNumSlots + stream);
  lane.state = Lane::kIdle;
  const int64_t first = lane.place();
  TaskRef blocker;
  while (!lane.done()) {
    if (lane.rank == 0) {
      if (at_once_ && stream == kCompute && RunCopies(entity, lane)) break;
      if (!CanOpen(entity, stream, &blocker)) break;
    }
    if (!RunCopy(entity, stream, &blocker)) break;
  }
  if (blocker.instance >= 0) Block(entity, stream, blocker);
  if (lane.place() > first) WakeWaiting(entity, stream);
}

bool Simulator::RunCopy(int32_t entity, int stream, TaskRef* blocker) {
  const int32_t program = in_.ProgramOf(entity);
  const HostParams& host = in_.hosts[program];
  const int32_t lane_index = entity * kNumStreams + stream;
  Lane& lane = lanes_[lane_index];
  Copy copy = OpenCopy(entity, lane);
  const int64_t* columns = trace_.times.data();
  Clock clock;
  while (true) {
    const int32_t task = copy.index->order[copy.index->order_begin[stream] + lane.rank];
    int64_t ready = ReadyAt(entity, lane, copy, task, blocker);
    if (ready == kUnknown) return false;
    ready = std::max(ready, host.start_ps);
    if (hosted_[program]) {
      if (!ClockOf(entity, lane, task, copy, &clock, blocker)) return false;
      const int64_t launched = clock.zero + host.launch_ps * copy.index->FirstLaunch(task);
      if (launched >= ready) host_bound_ = 2;
      ready = std::max(ready, launched);
    }
    if (ready > now_) {
      lane.state = Lane::kWaits;
      Schedule(SlotOf(lane_index), ready, kBegins);
      return false;
    }
    PLANCAST_DCHECK(ready == now_);
    copy.start[task] = ready;
    if (copy.block->kind[task] == TaskKind::kKernel) {
      StartChain(entity, stream, copy, clock);
      if (lane.state == Lane::kKernel) return false;
    } else {
      if (!Arrive(entity, stream, copy, task)) return false;
      if (lane.rank > 0 && trace_.times.data() != columns) {
        copy = OpenCopy(entity, lane);
        columns = trace_.times.data();
      }
    }
    if (lane.rank == 0) return true;
  }
}

void Simulator::Advance(int32_t lane_index, int32_t tasks, int64_t end) {
  Lane& lane = lanes_[lane_index];
  const Instance& instance =
      in_.index.InstanceOf(in_.ProgramOf(lane_index / kNumStreams), lane.instance);
  lane.last_end = end;
  lane.rank += tasks;
  if (lane.rank < in_.index.block(instance.block).Count(lane_index % kNumStreams)) return;
  lane.rank = 0;
  if (++lane.copy == instance.layer_count) EnterInstance(lane_index, lane.cursor + 1);
}

void Simulator::WakeWaiting(int32_t entity, int stream) {
  const int32_t lane = entity * kNumStreams + stream;
  const int64_t place = lanes_[lane].place();
  if (place <= earliest_wait_[lane]) return;
  const int32_t program = in_.ProgramOf(entity);
  uint32_t woken = 0;
  earliest_wait_[lane] = kNever;
  for (uint32_t rest = waiting_[lane]; rest != 0; rest &= rest - 1) {
    const int other = __builtin_ctz(rest);
    const int64_t blocker =
        in_.index.PlaceOf(program, lanes_[entity * kNumStreams + other].blocker);
    if (blocker < place) {
      woken |= 1u << other;
    } else {
      earliest_wait_[lane] = std::min(earliest_wait_[lane], blocker);
    }
  }
  waiting_[lane] ^= static_cast<StreamMask>(woken);
  Wake(entity, woken);
}

void Simulator::WakeInTime(int32_t entity, int stream, int64_t until) {
  for (uint32_t rest = waiting_[entity * kNumStreams + stream]; rest != 0; rest &= rest - 1) {
    const int32_t other = entity * kNumStreams + __builtin_ctz(rest);
    const Lane& lane = lanes_[other];
    if (lane.state != Lane::kBlocked || lane.blocking_stream != stream) continue;
    const int64_t expected = ExpectedEnd(entity, lane.blocker);
    // What ends with all wakes by itself.
    if (expected == kUnknown || expected >= until) continue;
    Schedule(SlotOf(other), std::max(expected, now_), kBegins);
  }
}

void Simulator::HandleNext() {
  const int32_t slot = events_.least();
  const bool begins = (events_.least_key() & 1) == kBegins;
  const int32_t entity = slot / kNumSlots, stream = slot % kNumSlots;
  events_.Remove(slot);
  if (stream == kRunEnd) return EndRun(entity);
  if (stream == kBusy) return Doubt(entity);
  const int32_t lane = entity * kNumStreams + stream;
  switch (lanes_[lane].state) {
    case Lane::kIdle:
    case Lane::kBlocked:
    case Lane::kWaits:
      return Wake(entity, 1u << stream);
    case Lane::kKernel:
      return EndChain(lane);
    case Lane::kRuns:
      return LeaveRun(lane);
    case Lane::kMeets:
    case Lane::kFlies:
      break;
  }
  begins ? StartTransfer(lane) : EndFlight(lane);
}

absl::StatusOr<SimTrace> Simulate(const SimInput& input, SimTrace memory) {
  return Simulator(input, std::move(memory)).Run();
}

}  // namespace plancast
