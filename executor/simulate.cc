#include "executor/simulate.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "executor/deadlock.h"
#include "executor/sharing/comm_priority.h"
#include "executor/simulator.h"

namespace plancast {
namespace {

constexpr int64_t kOne = int64_t{1} << 20;

// Bit mask of the streams that kernels run in.
uint8_t KernelStreams(const TaskTable& table) {
  uint8_t streams = 0;
  for (int s = 0; s < kNumStreams; ++s) {
    for (int32_t t = table.stream_begin[s]; t < table.stream_begin[s + 1]; ++t) {
      if ((table.flags[t] & TaskTable::kIsComm) != 0) continue;
      streams |= uint8_t(1u << s);
      break;
    }
  }
  return streams;
}

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
      trace_(std::move(memory)),
      fluid_(in.link_sharing) {}

absl::StatusOr<SimTrace> Simulator::Run() && {
  PrepareTrace();
  PrepareGroups();
  for (size_t e = 0; e < sim_.entities.size(); ++e) {
    Wake(static_cast<int32_t>(e), (1u << kNumStreams) - 1);
  }
  Drain();
  while (true) {
    while (!queue_.empty() && IsStale(queue_.front())) Pop();
    const int64_t next =
        std::min(fluid_.NextCompletion(), queue_.empty() ? Fluid::kNever : queue_.front().time);
    if (next == Fluid::kNever) break;
    now_ = next;
    for (int32_t activity : fluid_.AdvanceTo(next)) FinishFlight(flight_of_[activity], next);
    while (!queue_.empty() && queue_.front().time == next) {
      // What ends now goes before what begins now.
      if (queue_.front().kind == kFlow) Drain();
      Handle(Pop());
    }
    Drain();
  }
  for (size_t e = 0; e < sim_.entities.size(); ++e) {
    for (int s = 0; s < kNumStreams; ++s) {
      if (lanes_.next[e * kNumStreams + s] == TableOf(e).stream_begin[s + 1]) continue;
      return DeadlockError(in_, trace_, lanes_.next);
    }
  }
  for (int64_t end : trace_.end) trace_.makespan_ps = std::max(trace_.makespan_ps, end);
  for (const HostParams& host : in_.hosts) {
    trace_.makespan_ps = std::max(trace_.makespan_ps, host.start_ps);
  }
  return std::move(trace_);
}

void Simulator::PrepareTrace() {
  trace_.begin.clear();
  trace_.makespan_ps = 0;
  int64_t tasks = 0;
  const size_t entities = sim_.entities.size();
  lanes_.next.reserve(entities * kNumStreams);
  for (size_t e = 0; e < entities; ++e) {
    trace_.begin.push_back(tasks);
    const TaskTable& table = TableOf(e);
    tasks += table.size();
    for (int s = 0; s < kNumStreams; ++s) lanes_.next.push_back(table.stream_begin[s]);
  }
  trace_.start.assign(tasks, kUnknown);
  trace_.end.assign(tasks, kUnknown);
  trace_.cause.resize(tasks);
  waiting_.resize(entities * kNumStreams);
  chain_.resize(entities * kNumStreams, -1);
  group_of_flight_.resize(entities * kNumStreams);
  work_of_flight_.resize(entities * kNumStreams);
  ready_.resize(entities);
  listed_.resize(entities);
  work_.reserve(entities);
  queue_.reserve(entities * kNumStreams);
  lanes_.state.resize(entities * kNumStreams);
  lanes_.blocker.resize(entities * kNumStreams);
  lanes_.bound.resize(entities * kNumStreams);
  lanes_.flows.resize(entities * kNumStreams);
  comm_times_.resize(entities);
  known_until_.resize(entities);
  woken_.resize(entities);
  review_.resize(entities);
  kernels_.resize(interferes_ ? entities * kNumStreams : 0);
  earliest_wait_.resize(entities * kNumStreams, kNobody);
  for (const KernelSpec& kernel : in_.graph.kernels) launches_.push_back(kernel.launches);
  for (size_t p = 0; p < in_.tables.size(); ++p) {
    const TaskTable& table = in_.tables[p];
    hosted_.push_back(in_.hosts[p].launch_ps > 0 || !table.sync_tasks.empty());
    if (interferes_) kernel_streams_.push_back(KernelStreams(table));
  }
}

void Simulator::PrepareGroups() {
  contention_ = FindContention(in_.uses, sim_, in_.realised);
  for (int32_t r = 0; r < static_cast<int32_t>(sim_.resources.size()); ++r) {
    const SimGraph::Resource& resource = sim_.resources[r];
    fluid_.AddResource(resource.capacity_bytes_per_s, resource.level,
                       /*contended=*/!contention_.LanesOn(r).empty());
  }
  for (const SimGraph::Group& group : sim_.groups) {
    const RealisedCollective& realised = in_.realised[group.realised];
    const int32_t kind = fluid_.AddKind(std::max<int64_t>(realised.rate_cap_bytes_per_s, 1), 1,
                                        sim_.LoadsOf(group), PriorityOf(in_.uses.uses[group.use]));
    alone_.push_back(realised.delay_ps +
                     (realised.work_bytes == 0 ? 0 : fluid_.AloneTime(kind, realised.work_bytes)));
  }
  // Bounds are by prices.
  if (in_.shortcuts && in_.jitter == nullptr && (interferes_ || !contention_.lanes.empty())) {
    horizon_ = std::make_unique<Horizon>(in_, trace_, alone_, lanes_);
  }
  int32_t meetings = static_cast<int32_t>(sim_.groups.size()) * kNumStreams;
  for (int32_t use : in_.uses.of_rendezvous) {
    meeting_begin_.push_back(meetings);
    meetings += sim_.uses[use].num_groups;
  }
  meetings_.resize(meetings);
}

void Simulator::Wake(int32_t entity, uint32_t streams) {
  ready_[entity] |= static_cast<uint8_t>(streams);
  if (listed_[entity]) return;
  listed_[entity] = true;
  work_.push_back(entity);
}

void Simulator::Drain() {
  while (!work_.empty()) {
    const int32_t entity = work_.back();
    work_.pop_back();
    while (ready_[entity] != 0 || review_[entity]) {
      if (ready_[entity] == 0) {
        ReviewKernels(entity);
        continue;
      }
      // Communications before kernels: ends of kernels depend on them.
      const int stream = 31 - __builtin_clz(ready_[entity]);
      ready_[entity] ^= static_cast<uint8_t>(1u << stream);
      RunStream(entity, stream);
    }
    listed_[entity] = false;
  }
}

void Simulator::RunStream(int32_t entity, int stream) {
  const TaskTable& table = TableOf(entity);
  const int64_t offset = trace_.begin[entity];
  int64_t* const start = &trace_.start[offset];
  int64_t* const end = &trace_.end[offset];
  int32_t* const cause = &trace_.cause[offset];
  const HostParams& host = in_.HostOf(entity);
  const int64_t* const price =
      in_.prices.duration_ps.data() +
      static_cast<size_t>(sim_.entities[entity].price_row) * in_.prices.costs.size();
  const bool hosted = hosted_[sim_.entities[entity].program];
  const int32_t lane = entity * kNumStreams + stream;
  const int32_t first = lanes_.next[lane], limit = table.stream_begin[stream + 1];

  lanes_.state[lane] = Lanes::kIdle;
  int32_t task = first;
  int32_t blocker = -1;
  for (; task < limit; ++task) {
    int64_t ready = host.start_ps;
    int32_t why = SimTrace::kBeginning;
    if (task > table.stream_begin[stream]) {
      ready = end[task - 1];
      why = task - 1;
    }
    for (int32_t d = table.dep_begin[task]; d < table.dep_begin[task + 1]; ++d) {
      const int32_t dep = table.deps[d];
      if (end[dep] == kUnknown) {
        blocker = dep;
        break;
      }
      if (end[dep] > ready) {
        ready = end[dep];
        why = dep;
      }
    }
    if (blocker >= 0) break;
    const bool is_comm = (table.flags[task] & TaskTable::kIsComm) != 0;
    int64_t launched = 0;
    if (hosted) {
      const Launch launch =
          LaunchOf(host, table, end, task, is_comm ? 1 : launches_[table.spec[task]]);
      if (!launch.known) {
        blocker = launch.sync_task;
        break;
      }
      if (launch.first_ps > ready) {
        ready = launch.first_ps;
        why = SimTrace::kHost;
      }
      launched = launch.last_ps;
    }
    start[task] = ready;
    cause[task] = why;
    if (!is_comm) {
      const int64_t duration =
          in_.jitter == nullptr ? price[table.spec[task]] : in_.DurationOf(entity, table, task);
      int64_t over = ready + duration;
      if (interferes_ && !KnowEnd(entity, stream, task, ready, &over)) {
        lanes_.next[lane] = task;
        StartKernel(lane, over, {ready, duration, launched});
        break;
      }
      end[task] = std::max(over, launched);
    } else {
      lanes_.next[lane] = task;
      if (!Arrive(entity, stream, table, task)) break;
    }
    if (!interferes_ || task < earliest_wait_[lane]) continue;
    // Whoever waits for it goes first, lest it be overlooked.
    ++task;
    ready_[entity] |= uint8_t(1u << stream);
    break;
  }
  lanes_.next[lane] = task;
  if (blocker >= 0) {
    const int32_t other = entity * kNumStreams + table.StreamOf(blocker);
    waiting_[other] |= uint8_t(1u << stream);
    earliest_wait_[other] = std::min(earliest_wait_[other], blocker);
    lanes_.state[lane] = Lanes::kBlocked;
    lanes_.blocker[lane] = blocker;
    lanes_.bound[lane] = 0;
  }
  if (task > first) WakeWaiting(entity, stream);
}

void Simulator::Finish(int32_t lane, int64_t end) {
  const int32_t entity = lane / kNumStreams;
  const int stream = lane % kNumStreams;
  lanes_.state[lane] = Lanes::kIdle;
  trace_.end[trace_.begin[entity] + lanes_.next[lane]++] = end;
  Wake(entity, 1u << stream);
  WakeWaiting(entity, stream);
}

void Simulator::WakeWaiting(int32_t entity, int stream) {
  const int32_t lane = entity * kNumStreams + stream;
  if (lanes_.next[lane] <= earliest_wait_[lane]) return;
  uint32_t woken = 0;
  earliest_wait_[lane] = kNobody;
  for (uint32_t rest = waiting_[lane]; rest != 0; rest &= rest - 1) {
    const int other = __builtin_ctz(rest);
    const int32_t blocker = lanes_.blocker[entity * kNumStreams + other];
    if (blocker < lanes_.next[lane]) {
      woken |= 1u << other;
    } else {
      earliest_wait_[lane] = std::min(earliest_wait_[lane], blocker);
    }
  }
  waiting_[lane] ^= static_cast<uint8_t>(woken);
  Wake(entity, woken);
  woken_[entity] |= static_cast<uint8_t>(woken);
}

void Simulator::Push(const Event& event) {
  queue_.push_back(event);
  std::push_heap(queue_.begin(), queue_.end(), std::greater<>());
}

Simulator::Event Simulator::Pop() {
  std::pop_heap(queue_.begin(), queue_.end(), std::greater<>());
  const Event event = queue_.back();
  queue_.pop_back();
  return event;
}

void Simulator::Handle(const Event& event) {
  if (event.kind == kFlow) {
    StartFlow(event.lane);
  } else if (!IsStale(event)) {
    Finish(event.lane, now_);
  }
}

absl::StatusOr<SimTrace> Simulate(const SimInput& input, SimTrace memory) {
  return Simulator(input, std::move(memory)).Run();
}

}  // namespace plancast
