#ifndef PLANCAST_EXECUTOR_SIMULATOR_H_
#define PLANCAST_EXECUTOR_SIMULATOR_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "executor/comm_times.h"
#include "executor/horizon.h"
#include "executor/profile.h"
#include "executor/sharing/contention.h"
#include "executor/sharing/levels.h"
#include "executor/simulate.h"

namespace plancast {

// Kernels and communications depend on what they wait for and on what runs beside
// them. As soon as that is known, however far ahead, their ends are written down:
// a stream runs on until it meets something unknown. Only communications that
// others may slow down before they end pass through the queue and the Levels, in
// order of time. The outcome depends on no order of work, only on times.
//
// What is not known yet cannot begin before a lower bound (Horizon): a
// communication that ends before anything on its links can begin takes as long as
// alone, and a kernel is slowed down by known communications only, if it ends
// before any other can begin. Otherwise its end is an event that moves as
// communications become known.
//
// At most one communication is under way in a lane, so lanes number flights too.
class Simulator {
 public:
  Simulator(const SimInput& in, SimTrace memory);

  absl::StatusOr<SimTrace> Run() &&;

 private:
  static constexpr int64_t kUnknown = SimTrace::kUnknown;
  static constexpr int kCompute = static_cast<int>(StreamKind::kCompute);
  static constexpr int64_t kNowhere = std::numeric_limits<int64_t>::max();

  enum EventKind : int32_t { kKernelEnd, kFlow };

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

  // Members of a communication that have come so far.
  struct Meeting {
    int32_t last = -1;  // lane that came last; others are chained behind
    int32_t arrived = 0;
  };
  // A kernel whose end is not known.
  struct Kernel {
    int64_t start = 0, duration = 0;
    int64_t launched = 0;  // it ends no earlier
    int64_t expected = 0;  // its end as far as communications are known
    int32_t version = 0;   // of its event
  };
  // A copy that lanes run task by task: its times. Before the starts of its tasks
  // lie the ends of its in-ports and of its gate, as far as asked for.
  struct Copy {
    const Block* block;
    const BlockIndex* index;
    int64_t* start;
    int64_t* end;
    int64_t* ports;
  };

  // Streams: simulate.cc.
  void PrepareLanes();
  void PrepareGroups();
  void EnterInstance(int32_t lane, int32_t cursor);
  void Wake(int32_t entity, uint32_t streams);
  void Drain();
  // Runs a stream until it is done or meets something unknown.
  void RunStream(int32_t entity, int stream);
  // Runs it to the end of a copy, task by task. False if it has to stop.
  bool RunCopy(int32_t entity, int stream, TaskRef* blocker);
  // The host's clock less all launches of the copy: finds it for a task. False,
  // and the task, if the host waits for one that is not over.
  struct Clock {
    bool known = false;
    int64_t zero = 0;
  };
  bool ClockOf(int32_t entity, const Lane& lane, int32_t task, const Copy& copy, Clock* clock,
               TaskRef* blocker);
  // The end of what a task waits for at an in-port or the gate; kUnknown, and the
  // task that is not over, otherwise.
  int64_t EndOfPort(int32_t entity, const Lane& lane, int32_t port, TaskRef* blocker);
  // When a task can start for all that its entity knows; kUnknown and the blocker.
  int64_t ReadyAt(int32_t entity, const Lane& lane, const Copy& copy, int32_t task,
                  TaskRef* blocker);
  void Block(int32_t entity, int stream, const TaskRef& blocker);
  // Whether the first task of a copy that nobody has begun waits for nothing, of
  // what needs no times of the copy; otherwise for what.
  bool CanOpen(int32_t entity, int stream, TaskRef* blocker);
  Copy OpenCopy(int32_t entity, const Lane& lane);
  int32_t TaskOf(int32_t lane) const;
  // The next task of a lane is over.
  void Advance(int32_t lane, int64_t end);
  void Finish(int32_t lane, int64_t end);
  // Wakes the streams that waited for what is over by now.
  void WakeWaiting(int32_t entity, int stream);
  void Push(const Event& event);
  Event Pop();
  void Handle(const Event& event);
  bool IsStale(const Event& event) const {
    return event.kind == kKernelEnd && event.version != kernels_[event.lane].version;
  }

  // Copies of blocks at once: copies.cc.
  // Whether copies of a block can run at once on an entity at all, and what as.
  struct Whole {
    static constexpr int32_t kUnasked = -2, kNever = -1;
    int32_t variant = kUnasked;
    int32_t watch_begin = 0, watch_end = 0;  // into watched_
  };
  // A block at certain costs, and its profiles so far.
  struct Variant {
    std::vector<int64_t> key;
    CopyCosts costs;
    std::vector<int32_t> profiles;
    int32_t tries = 0;
  };
  Whole& WholeOf(int32_t entity, int32_t block) {
    return whole_[static_cast<size_t>(entity) * in_.graph.blocks.size() + block];
  }
  void AskWhole(int32_t entity, int32_t block, Whole& whole);
  // What a copy finds; false if that is not known yet.
  bool FindEntry(int32_t entity, int32_t instance, int32_t copy, Entry& entry);
  // Runs as many copies as can be from where `at` is. False if none can.
  bool RunCopies(int32_t entity, const Lane& at);
  bool UseProfile(const Whole& whole, const Entry& entry, Plan plan);
  bool StepThrough(const Whole& whole, const Entry& entry, Plan plan);
  // Nothing unknown comes between before this. Looks closely only at what may be
  // before `need`.
  int64_t UnknownFrom(const Whole& whole, Plan& plan, int64_t need);
  // Whether what comes next in the streams of a plan leaves it alone.
  bool FollowersWait(const Plan& plan, const std::vector<Follower>& followers);
  // The task after the copies of a plan in one of its streams; instance -1: none.
  TaskRef NextAfter(const Plan& plan, int stream) const;
  // Whether communications of a copy meet that share links.
  static bool Overlap(const BlockIndex& index, const CopyCosts& costs, const int64_t* start,
                      const int64_t* end);
  void KeepProfile(Variant& variant, const plancast::Block& block, const BlockIndex& index,
                   const Entry& entry, int64_t columns);
  // The streams of a plan are past it. `times`: of a copy.
  void LeavePlan(const Plan& plan, const int64_t* times, int64_t last_kernel, int64_t last_comm);

  // Communications: flights.cc.
  // An entity comes to a communication. True if its end is known by that.
  bool Arrive(int32_t entity, int stream, const Copy& copy, int32_t task);
  // Whether nothing else can load the links of a communication before it ends.
  bool UndisturbedUntil(int64_t end, int32_t flight);
  bool InFlight(int32_t lane, int32_t flight) const;
  // What a communication of a group is made of, with jitter.
  struct Transfer {
    int64_t delay = 0, work_bytes = 0, alone = 0;
  };
  // `lane`: of a member.
  Transfer TransferOf(int32_t group_index, int32_t lane) const;
  // All members start when the last has come.
  int64_t BeginTogether(int32_t flight);
  // The delay of a communication is over.
  void StartFlow(int32_t flight);
  void FinishFlight(int32_t flight, int64_t end);
  // A communication of all members is known to take place in [begin, end).
  void Occupy(int32_t flight, int64_t begin, int64_t end);

  // Kernels that communications slow down: slowed_kernels.cc.
  // Sets the end of a kernel, as far as communications are known, and says
  // whether that is all.
  bool KnowEnd(int32_t entity, int stream, int32_t kernel, int64_t start, int64_t* end);
  // No kernel of the entity whose end is yet to be found starts before this.
  int64_t EarliestKernel(int32_t entity, int stream, int64_t start) const;
  void StartKernel(int32_t lane, int64_t expected, const Kernel& kernel);
  void ExpectEnd(int32_t lane, int64_t end);
  // More is known of the communications beside kernels.
  void ReviewKernels(int32_t entity);

  const SimInput& in_;
  const SimGraph& sim_;
  const bool interferes_;
  int64_t now_ = 0;
  SimTrace trace_;
  std::vector<Lane> lanes_;
  Levels fluid_;
  Contention contention_;
  std::vector<int64_t> alone_;            // per group
  std::vector<bool> hosted_;              // per program: its host matters
  std::vector<uint8_t> waiting_;          // per lane: streams that wait for it
  std::vector<int32_t> chain_;            // per lane: next member of the same communication
  std::vector<int32_t> group_of_flight_;  // per lane
  std::vector<int64_t> work_of_flight_;   // per lane, bytes
  std::vector<uint8_t> ready_;            // per entity: streams to run
  std::vector<bool> listed_;              // per entity: in work_
  std::vector<int32_t> work_;
  std::vector<Meeting> meetings_;
  std::vector<int32_t> meeting_begin_;  // per rendezvous
  std::vector<Event> queue_;
  std::vector<int32_t> flight_of_;     // per fluid activity
  std::vector<Kernel> kernels_;        // per lane
  std::vector<CommTimes> comm_times_;  // per entity
  std::vector<bool> review_;           // per entity: kernels are to be looked at again
  std::vector<uint8_t> woken_;         // per entity: streams that stopped waiting since
  std::vector<int64_t> known_until_;   // per entity: horizon of its compute stream
  std::unique_ptr<Horizon> horizon_;
  std::vector<int64_t> earliest_wait_;  // per lane: first place that another lane waits for
  bool at_once_ = false;                // copies may run at once
  std::vector<Whole> whole_;            // per entity and block
  std::vector<Variant> variants_;
  std::vector<std::vector<int32_t>> variants_of_;  // per block
  std::vector<int32_t> watched_;                   // lanes
  std::vector<Profile> profiles_;
  CommTimes beside_;
  CopySpan span_;
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_SIMULATOR_H_
