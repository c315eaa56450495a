#include "executor/simulate.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <tuple>
#include <utility>

#include "base/int128.h"
#include "executor/contention.h"
#include "executor/deadlock.h"
#include "executor/fluid.h"

namespace plancast {
namespace {

constexpr int64_t kUnknown = -1;
constexpr int64_t kOne = int64_t{1} << 20;
constexpr int32_t kNobody = std::numeric_limits<int32_t>::max();

enum EventKind : int32_t { kKernelEnd, kCommEnd, kCommBegin, kWake, kFlow };

struct Event {
  int64_t time = 0;
  int32_t kind = 0;
  int32_t lane = 0;     // the flight, of a communication
  int32_t version = 0;  // of a kernel's end: only the latest counts
  friend bool operator>(const Event& a, const Event& b) {
    return std::tie(a.time, a.kind, a.lane, a.version) >
           std::tie(b.time, b.kind, b.lane, b.version);
  }
};

// Kernels and uncontended communications depend on nothing but what they wait
// for, so their ends are written down as soon as those are known, however far
// ahead: a stream runs on until it meets something unknown. Only communications
// that others may slow down pass through the queue and the fluid, in order of
// time. The outcome depends on no order of work, only on times.
//
// If communications slow kernels down, a kernel is known ahead only while its
// entity is quiet: no other stream runs anything or can before a task that is
// itself ahead of it. Otherwise its end is an event that moves as communications
// come and go.
//
// A lane is a stream of an entity: entity * kNumStreams + stream. At most one
// communication is under way in a lane, so lanes number flights too.
class Simulator {
 public:
  explicit Simulator(const SimInput& in)
      : in_(in), sim_(in.sim), interferes_(in.slowdown_q20 > kOne) {}

  absl::StatusOr<SimTrace> Run() && {
    PrepareTrace();
    PrepareGroups();
    for (size_t e = 0; e < sim_.entities.size(); ++e) {
      Wake(static_cast<int32_t>(e), (1u << kNumStreams) - 1);
    }
    Drain();
    while (true) {
      const int64_t next =
          std::min(fluid_.NextCompletion(), queue_.empty() ? Fluid::kNever : queue_.front().time);
      if (next == Fluid::kNever) break;
      now_ = next;
      for (int32_t activity : fluid_.AdvanceTo(next)) FinishFlight(flight_of_[activity], next);
      while (!queue_.empty() && queue_.front().time == next) {
        // What ends now goes before what begins now.
        if (queue_.front().kind > kCommEnd) Drain();
        Handle(Pop());
      }
      Drain();
    }
    for (size_t e = 0; e < sim_.entities.size(); ++e) {
      for (int s = 0; s < kNumStreams; ++s) {
        if (next_[e * kNumStreams + s] == TableOf(e).stream_begin[s + 1]) continue;
        return DeadlockError(in_, trace_, next_);
      }
    }
    for (int64_t end : trace_.end) trace_.makespan_ps = std::max(trace_.makespan_ps, end);
    trace_.makespan_ps = std::max(trace_.makespan_ps, in_.host.start_ps);
    return std::move(trace_);
  }

 private:
  // Members of a communication that have come so far.
  struct Meeting {
    int32_t last = -1;  // lane that came last; others are chained behind
    int32_t arrived = 0;
  };

  const TaskTable& TableOf(size_t entity) const {
    return in_.tables[sim_.entities[entity].program];
  }

  void PrepareTrace() {
    int64_t tasks = 0;
    const size_t entities = sim_.entities.size();
    next_.reserve(entities * kNumStreams);
    for (size_t e = 0; e < entities; ++e) {
      trace_.begin.push_back(tasks);
      const TaskTable& table = TableOf(e);
      tasks += table.size();
      for (int s = 0; s < kNumStreams; ++s) next_.push_back(table.stream_begin[s]);
    }
    trace_.start.assign(tasks, kUnknown);
    trace_.end.assign(tasks, kUnknown);
    trace_.cause.resize(tasks);
    waiting_.resize(entities * kNumStreams);
    chain_.resize(entities * kNumStreams, -1);
    group_of_flight_.resize(entities * kNumStreams);
    ready_.resize(entities);
    listed_.resize(entities);
    work_.reserve(entities);
    queue_.reserve(entities * kNumStreams);
    open_.resize(entities);
    communicating_.resize(entities);
    kernels_.resize(interferes_ ? entities * kNumStreams : 0);
    earliest_wait_.resize(entities * kNumStreams, kNobody);
    for (const KernelSpec& kernel : in_.graph.kernels) launches_.push_back(kernel.launches);
    for (const TaskTable& table : in_.tables) {
      hosted_.push_back(in_.host.launch_ps > 0 || !table.sync_tasks.empty());
    }
  }

  void PrepareGroups() {
    for (const SimGraph::Resource& resource : sim_.resources) {
      fluid_.AddResource(resource.capacity_bytes_per_s);
    }
    contended_ = ContendedGroups(in_.uses, sim_, in_.realised);
    for (const SimGraph::Group& group : sim_.groups) {
      const RealisedCollective& realised = in_.realised[group.realised];
      const int32_t kind = fluid_.AddKind(std::max<int64_t>(realised.rate_cap_bytes_per_s, 1), 1,
                                          sim_.LoadsOf(group));
      alone_.push_back(realised.delay_ps + (realised.work_bytes == 0
                                                ? 0
                                                : fluid_.AloneTime(kind, realised.work_bytes)));
    }
    int32_t meetings = static_cast<int32_t>(sim_.groups.size()) * kNumStreams;
    for (int32_t use : in_.uses.of_rendezvous) {
      meeting_begin_.push_back(meetings);
      meetings += sim_.uses[use].num_groups;
    }
    meetings_.resize(meetings);
  }

  void Wake(int32_t entity, uint32_t streams) {
    ready_[entity] |= static_cast<uint8_t>(streams);
    if (listed_[entity]) return;
    listed_[entity] = true;
    work_.push_back(entity);
  }

  void Drain() {
    while (!work_.empty()) {
      const int32_t entity = work_.back();
      work_.pop_back();
      while (ready_[entity] != 0) {
        // Communications before kernels: whether an entity is quiet depends on them.
        const int stream = 31 - __builtin_clz(ready_[entity]);
        ready_[entity] ^= static_cast<uint8_t>(1u << stream);
        RunStream(entity, stream);
      }
      listed_[entity] = false;
    }
  }

  // Runs a stream until it is done or meets something unknown.
  void RunStream(int32_t entity, int stream) {
    const TaskTable& table = TableOf(entity);
    const int64_t offset = trace_.begin[entity];
    int64_t* const start = &trace_.start[offset];
    int64_t* const end = &trace_.end[offset];
    int32_t* const cause = &trace_.cause[offset];
    const int64_t* const duration =
        in_.prices.duration_ps.data() +
        static_cast<size_t>(sim_.entities[entity].price_row) * in_.prices.costs.size();
    const bool hosted = hosted_[sim_.entities[entity].program];
    const int32_t lane = entity * kNumStreams + stream;
    const int32_t first = next_[lane], limit = table.stream_begin[stream + 1];

    int32_t task = first;
    int32_t blocker = -1;
    for (; task < limit; ++task) {
      int64_t ready = in_.host.start_ps;
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
            LaunchOf(in_.host, table, end, task, is_comm ? 1 : launches_[table.spec[task]]);
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
      if (!is_comm && interferes_ && (open_[entity] > 0 || ready_[entity] != 0)) {
        if (ready <= now_) {
          start[task] = ready;
          cause[task] = why;
          StartKernel(entity, stream, duration[table.spec[task]], launched);
        } else {
          ++open_[entity];
          Push({ready, kWake, lane, 0});
        }
        break;
      }
      start[task] = ready;
      cause[task] = why;
      if (!is_comm) {
        end[task] = std::max(ready + duration[table.spec[task]], launched);
        if (!interferes_ || task < earliest_wait_[lane]) continue;
        // Whoever waits for it goes first, lest it be overlooked.
        ++task;
        ready_[entity] |= uint8_t(1u << stream);
        break;
      }
      next_[lane] = task;
      if (!Arrive(entity, stream, table, task)) break;
    }
    next_[lane] = task;
    if (blocker >= 0) {
      const int32_t other = entity * kNumStreams + table.StreamOf(blocker);
      waiting_[other] |= uint8_t(1u << stream);
      earliest_wait_[other] = std::min(earliest_wait_[other], blocker);
    }
    if (task > first) WakeWaiting(entity, stream);
  }

  void WakeWaiting(int32_t entity, int stream) {
    uint8_t& waiting = waiting_[entity * kNumStreams + stream];
    if (waiting == 0) return;
    Wake(entity, waiting);
    waiting = 0;
    earliest_wait_[entity * kNumStreams + stream] = kNobody;
  }

  // An entity comes to a communication. True if its end is known by that.
  bool Arrive(int32_t entity, int stream, const TaskTable& table, int32_t task) {
    int32_t use = table.spec[task], meeting_index;
    int32_t group_index;
    if ((table.flags[task] & TaskTable::kMeets) != 0) {
      const int32_t rendezvous = table.spec[task];
      use = in_.uses.of_rendezvous[rendezvous];
      group_index = sim_.GroupOf(use, entity);
      meeting_index = meeting_begin_[rendezvous] + group_index - sim_.uses[use].first_group;
    } else {
      group_index = sim_.GroupOf(use, entity);
      meeting_index = group_index * kNumStreams + stream;
    }
    const SimGraph::Group& group = sim_.groups[group_index];
    const int32_t lane = entity * kNumStreams + stream;
    Meeting& meeting = meetings_[meeting_index];
    chain_[lane] = meeting.last;
    meeting.last = lane;
    ++open_[entity];
    if (++meeting.arrived < group.member_end - group.member_begin) return false;
    meeting = Meeting();

    const int64_t begin = BeginTogether(lane);
    const bool instant = !contended_[group_index] && alone_[group_index] == 0;
    group_of_flight_[lane] = instant ? ~group_index : group_index;
    if (interferes_ && !instant) {
      if (begin > now_) {
        Push({begin, kCommBegin, lane, 0});
      } else {
        BeginComm(lane);
      }
    }
    if (contended_[group_index]) {
      Push({begin + in_.realised[group.realised].delay_ps, kFlow, lane, 0});
      return false;
    }
    const int64_t end = begin + alone_[group_index];
    if (interferes_) {
      Push({end, kCommEnd, lane, 0});
      return false;
    }
    --open_[entity];
    trace_.end[trace_.begin[entity] + task] = end;
    for (int32_t member = chain_[lane]; member >= 0; member = chain_[member]) Finish(member, end);
    return true;
  }

  // All members start when the last has come.
  int64_t BeginTogether(int32_t flight) {
    int64_t begin = 0;
    int32_t last = 0;
    for (int32_t lane = flight; lane >= 0; lane = chain_[lane]) {
      const int32_t entity = lane / kNumStreams;
      const int64_t arrival = trace_.start[trace_.begin[entity] + next_[lane]];
      if (arrival > begin || (arrival == begin && entity < last)) last = entity;
      begin = std::max(begin, arrival);
    }
    for (int32_t lane = flight; lane >= 0; lane = chain_[lane]) {
      const int64_t at = trace_.begin[lane / kNumStreams] + next_[lane];
      if (trace_.start[at] == begin) continue;
      trace_.start[at] = begin;
      trace_.cause[at] = SimTrace::PeerCause(last);
    }
    return begin;
  }

  void Push(const Event& event) {
    queue_.push_back(event);
    std::push_heap(queue_.begin(), queue_.end(), std::greater<>());
  }

  Event Pop() {
    std::pop_heap(queue_.begin(), queue_.end(), std::greater<>());
    const Event event = queue_.back();
    queue_.pop_back();
    return event;
  }

  void Handle(const Event& event) {
    switch (event.kind) {
      case kKernelEnd:
        if (event.version == kernels_[event.lane].version) EndKernel(event.lane);
        break;
      case kCommEnd:
        FinishFlight(event.lane, now_);
        break;
      case kCommBegin:
        BeginComm(event.lane);
        break;
      case kWake:
        --open_[event.lane / kNumStreams];
        Wake(event.lane / kNumStreams, 1u << event.lane % kNumStreams);
        break;
      case kFlow:
        StartFlow(event.lane);
        break;
    }
  }

  // The delay of a communication is over.
  void StartFlow(int32_t flight) {
    const int32_t group = group_of_flight_[flight];
    const int32_t activity =
        fluid_.Start(group, in_.realised[sim_.groups[group].realised].work_bytes);
    if (activity >= static_cast<int32_t>(flight_of_.size())) flight_of_.resize(activity + 1);
    flight_of_[activity] = flight;
  }

  void FinishFlight(int32_t flight, int64_t end) {
    const bool counts = interferes_ && group_of_flight_[flight] >= 0;
    for (int32_t lane = flight; lane >= 0; lane = chain_[lane]) {
      if (counts) ChangeCommunicating(lane / kNumStreams, -1);
      Finish(lane, end);
    }
  }

  void Finish(int32_t lane, int64_t end) {
    const int32_t entity = lane / kNumStreams;
    const int stream = lane % kNumStreams;
    --open_[entity];
    trace_.end[trace_.begin[entity] + next_[lane]++] = end;
    Wake(entity, 1u << stream);
    WakeWaiting(entity, stream);
  }

  // A kernel that communications of its device may slow down.
  struct Kernel {
    int64_t left_ps = 0;  // work left at `since`, as time alone
    int64_t since = 0;
    int64_t launched = 0;  // it ends no earlier
    int32_t version = 0;
    bool runs = false;
  };

  void StartKernel(int32_t entity, int stream, int64_t duration, int64_t launched) {
    Kernel& kernel = kernels_[entity * kNumStreams + stream];
    kernel.left_ps = duration;
    kernel.since = now_;
    kernel.launched = launched;
    kernel.runs = true;
    ++open_[entity];
    Expect(entity * kNumStreams + stream);
  }

  // Puts the end of a kernel into the queue as things are now.
  void Expect(int32_t lane) {
    Kernel& kernel = kernels_[lane];
    const bool slow = communicating_[lane / kNumStreams] > 0;
    const int64_t rest = slow ? MulDivCeil(kernel.left_ps, in_.slowdown_q20, kOne) : kernel.left_ps;
    Push({std::max(now_ + rest, kernel.launched), kKernelEnd, lane, ++kernel.version});
  }

  void EndKernel(int32_t lane) {
    kernels_[lane].runs = false;
    Finish(lane, now_);
  }

  void BeginComm(int32_t flight) {
    for (int32_t lane = flight; lane >= 0; lane = chain_[lane]) {
      ChangeCommunicating(lane / kNumStreams, 1);
    }
  }

  void ChangeCommunicating(int32_t entity, int32_t by) {
    const bool was_slow = communicating_[entity] > 0;
    communicating_[entity] += by;
    if (was_slow == (communicating_[entity] > 0)) return;
    for (int32_t lane = entity * kNumStreams; lane < (entity + 1) * kNumStreams; ++lane) {
      Kernel& kernel = kernels_[lane];
      if (!kernel.runs) continue;
      const int64_t past = now_ - kernel.since;
      kernel.left_ps -= was_slow ? MulDivFloor(past, kOne, in_.slowdown_q20) : past;
      kernel.left_ps = std::max<int64_t>(kernel.left_ps, 0);
      kernel.since = now_;
      Expect(lane);
    }
  }

  const SimInput& in_;
  const SimGraph& sim_;
  const bool interferes_;
  int64_t now_ = 0;
  SimTrace trace_;
  Fluid fluid_;
  std::vector<bool> contended_;           // per group
  std::vector<int64_t> alone_;            // per group
  std::vector<int32_t> launches_;         // per kernel
  std::vector<bool> hosted_;              // per program: its host matters
  std::vector<int32_t> next_;             // per lane: first task that is not over
  std::vector<uint8_t> waiting_;          // per lane: streams that wait for it
  std::vector<int32_t> chain_;            // per lane: next member of the same communication
  std::vector<int32_t> group_of_flight_;  // per lane; ~group of one that takes no time
  std::vector<uint8_t> ready_;            // per entity: streams to run
  std::vector<bool> listed_;              // per entity: in work_
  std::vector<int32_t> work_;
  std::vector<Meeting> meetings_;
  std::vector<int32_t> meeting_begin_;  // per rendezvous
  std::vector<Event> queue_;
  std::vector<int32_t> flight_of_;      // per fluid activity
  std::vector<int32_t> open_;           // per entity: lanes that something not over is in
  std::vector<int32_t> communicating_;  // per entity: communications under way
  std::vector<Kernel> kernels_;         // per lane
  std::vector<int32_t> earliest_wait_;  // per lane: first task that another lane waits for
};

}  // namespace

absl::StatusOr<SimTrace> Simulate(const SimInput& input) { return Simulator(input).Run(); }

}  // namespace plancast
