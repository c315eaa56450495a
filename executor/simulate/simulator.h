#ifndef PLANCAST_EXECUTOR_SIMULATE_SIMULATOR_H_
#define PLANCAST_EXECUTOR_SIMULATE_SIMULATOR_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/status/statusor.h"
#include "executor/contention/contention.h"
#include "executor/sharing/indexed_heap.h"
#include "executor/sharing/levels.h"
#include "executor/simulate/copy_outcome.h"
#include "executor/simulate/outcome_cache.h"
#include "executor/simulate/periods.h"
#include "executor/simulate/simulate.h"
#include "executor/simulate/under_way.h"

namespace plancast {

// Goes from one event to the next in order of time. Between communications with
// others an entity runs ahead: a chain of kernels, or whole copies of a block, are
// one event, whose times are known from the beginning and found anew if something
// comes between. What is ahead of now is nobody else's business.
//
// What ends at one point in time goes before what begins at it.
class Simulator {
 public:
  Simulator(const SimInput& in, SimTrace memory);

  absl::StatusOr<SimTrace> Run() &&;

 private:
  static constexpr int64_t kUnknown = SimTrace::kUnknown;
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  static constexpr int kCompute = static_cast<int>(StreamKind::kCompute);

  // Each lane and each entity has at most one event of a kind to come.
  enum Slot : int32_t { kRunEnd = kNumStreams, kBusy, kNumSlots };
  enum Moment : int64_t { kEnds, kBegins };

  using Meeting = under_way::Meeting;
  using Chain = under_way::Chain;
  using Flight = under_way::Flight;
  using Whole = under_way::Whole;
  using Variant = under_way::Variant;
  using CopyRun = under_way::CopyRun;
  using Entity = under_way::Entity;
  using State = under_way::State;
  using Front = under_way::Front;
  using Clock = under_way::Clock;
  using Transfer = under_way::Transfer;
  // The task that a lane is at, among those of its copy: its times. Before the
  // starts lie the ends of the copy's in-ports and of its gate, as far as over.
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
  void RunStream(int32_t entity, int stream);
  // Begins what can begin now in the rest of a copy. False if the lane has to
  // wait; for what, unless it is under way.
  bool RunCopy(int32_t entity, int stream, TaskRef* blocker);
  bool ClockOf(int32_t entity, const Lane& lane, int32_t task, const Copy& copy, Clock* clock,
               TaskRef* blocker);
  // The end of what a task waits for at an in-port or the gate; kUnknown, and the
  // task that is not over, otherwise.
  int64_t EndOfPort(int32_t entity, const TaskRef& copy, int32_t port, TaskRef* blocker);
  int64_t ReadyAt(int32_t entity, const Lane& lane, const Copy& copy, int32_t task,
                  TaskRef* blocker);
  void Block(int32_t entity, int stream, const TaskRef& blocker);
  bool CanOpen(int32_t entity, int stream, TaskRef* blocker);
  Copy OpenCopy(int32_t entity, const Lane& lane);
  int32_t TaskOf(int32_t lane) const;
  // When a task ends as things stand, or kUnknown; may be after now.
  int64_t ExpectedEnd(int32_t entity, const TaskRef& ref) const;
  // The same of a task that is over by now.
  int64_t EndOf(int32_t entity, const TaskRef& ref) const {
    const int64_t end = ExpectedEnd(entity, ref);
    return end > now_ ? kUnknown : end;
  }
  // `tasks` more tasks of a lane are over, the last at `end`.
  void Advance(int32_t lane, int32_t tasks, int64_t end);
  // Wakes the streams that waited for what is over by now.
  void WakeWaiting(int32_t entity, int stream);
  // Wakes streams in time that wait for what is to end in a stream before `until`.
  void WakeInTime(int32_t entity, int stream, int64_t until);
  static int32_t SlotOf(int32_t lane) {
    return lane / kNumStreams * kNumSlots + lane % kNumStreams;
  }
  void Schedule(int32_t slot, int64_t time, Moment moment) {
    events_.Set(slot, time << 1 | moment);
  }
  void Cancel(int32_t slot) {
    if (events_.Contains(slot)) events_.Remove(slot);
  }
  void HandleNext();

  // Kernels: kernels.cc.
  void StartChain(int32_t entity, int stream, const Copy& copy, const Clock& clock);
  // Finds the times of the tasks of a chain from the one under way.
  void TimeChain(int32_t lane, const Copy& copy, const Clock& clock);
  void ResumeChain(int32_t entity, int stream, const Copy& copy, int64_t since, int64_t left,
                   bool slow);
  void RetimeChain(int32_t lane, const Copy& copy);
  // The rank behind the kernels that follow a lane's next task.
  int32_t EndOfChain(int32_t entity, int stream, const Copy& copy) const;
  void EndChain(int32_t lane);
  // The kernels under way on an entity are slow from now on, or no longer.
  void SlowKernels(int32_t entity);
  // A communication is under way, until a time or kNever: not known yet. It ends.
  void BeginComm(int32_t entity, int64_t until);
  void EndComm(int32_t entity, bool known);
  // Whether an entity runs a kernel, and until when it goes on so at least.
  bool IsBusy(int32_t entity, int64_t* until) const;
  void Doubt(int32_t entity);
  // Slows the transfers of entities that run kernels.
  void SlowTransfers();
  void SlowTransfer(int32_t flight, int32_t more_busy);

  // Communications: flights.cc.
  // An entity comes to a communication. True if it is over by that.
  bool Arrive(int32_t entity, int stream, const Copy& copy, int32_t task);
  int32_t SortMembers(int32_t last);  // the first
  // Of a communication, with jitter. `lane`: of a member.
  Transfer TransferOf(int32_t group_index, int32_t lane) const;
  // Whether others may change its rate.
  bool Shares(const Flight& flight) const {
    return contention_.of_group[flight.group] ||
           (yields_ && flight.work_bytes > 0 && !IsQuiet(flight.group));
  }
  bool IsQuiet(int32_t group) const { return in_.realised[sim_.groups[group].realised].quiet; }
  void StartFlight(int32_t lane, int32_t group, int64_t work_bytes, int64_t transfer_at);
  void StartTransfer(int32_t flight);
  // A transfer is under way.
  void Flow(int32_t flight, const Fluid::Progress& progress);
  void FlowAlone(int32_t flight, const Fluid::Progress& before);
  void EndFlight(int32_t flight);
  int32_t KindOf(const Flight& flight) const {
    return flight.group + (flight.slow ? static_cast<int32_t>(sim_.groups.size()) : 0);
  }

  // Copies of blocks at once: copies.cc.
  Whole& WholeOf(int32_t entity, int32_t block) {
    return whole_[static_cast<size_t>(entity) * in_.graph.blocks.size() + block];
  }
  void AskWhole(int32_t entity, int32_t block, Whole& whole);
  // Runs what is left of an instance from a copy on. False if others are in the way.
  bool RunCopies(int32_t entity, const Lane& at);
  // Whether all lanes of a block are where a run of a copy can take them over.
  bool LanesAreThere(int32_t entity, const Lane& at, const BlockIndex& index) const;
  // The communication under way in a lane goes on in a run.
  CopyConditions::Ahead TakeOver(int32_t lane);
  // Whether nobody loads the links of a copy now; runs that do leave them to lanes.
  bool OutrunRivals(int32_t entity, const BlockIndex& index, const Whole& whole);
  bool FindClock(int32_t entity, const TaskRef& copy, const BlockIndex& index,
                 const CopyCosts& costs, int64_t* host) const;
  // `before`: of conditions that were the same until now, or null.
  CopyOutcome* OutcomeOf(int32_t entity, const CopyOutcome* before);
  // Whether no kernel comes after a run before all of it is over.
  bool EndsWhole(int32_t entity, const CopyRun& run) const;
  // Whether a stream may go on before the kernels of a run are over.
  bool MayLeave(int32_t entity, const CopyRun& run, int stream) const;
  TaskRef NextAfter(int32_t entity, const CopyRun& run, int stream) const;
  // Runs of copies: runs.cc.
  void StartRun(int32_t entity);
  void LeaveRun(int32_t lane);
  void EndRun(int32_t entity);
  // Times of a copy of a run that lanes have or get, until it stops.
  void WriteCopy(int32_t entity, const CopyStop* stop);
  // Sets when those with a known end are over.
  void FindOver(int32_t entity);
  // Sets from when to when others communicate, as known now. Whether that is new.
  bool FindToggles(int32_t entity);
  // Others begin or end to communicate, or that becomes known.
  void DisturbRun(int32_t entity);
  // Finds anew what was disturbed, once all is done that is to be done now.
  void SettleRuns();
  // Leaves what is not over of a run to its lanes.
  void DissolveRun(int32_t entity);
  void Resume(int32_t entity, int stream, const CopyStop::Stream& at, int64_t origin);
  // Copies of a run that are over.
  void KeepCopies(int32_t entity, int32_t copies);
  void DissolveRivals(int32_t flight);

  // Periods of a steady state: jump.cc.
  class Snapshot;
  bool IsLater(const State& state, const State& before) const;
  void LookForPeriod();
  // Whether hosts are as far ahead after a period as before, or that matters not.
  bool HostsKeepPace(const State& state) const;
  int32_t PeriodsAhead(int32_t entity, const State& state, Front& front) const;
  bool Jump(const State& state);  // to the last period that is as before; false: perhaps later
  void MoveMeeting(int32_t entity, int32_t from, int32_t to);
  void FindWaiting(int32_t entity);
  void RepeatPieces(int32_t entity, const Front& front, int32_t times);  // on the way

  const SimInput& in_;
  const SimGraph& sim_;
  const bool interferes_;  // kernels are slower beside communications
  const bool yields_;      // transfers are slower beside kernels
  int64_t now_ = 0;
  SimTrace trace_;
  std::vector<Lane> lanes_;
  std::vector<Entity> entities_;
  IndexedHeap events_;
  std::vector<int32_t> work_;                 // entities with streams to run
  std::vector<bool> hosted_;                  // per program: its host matters
  std::vector<StreamMask> waiting_;           // per lane: streams that wait for it
  std::vector<int64_t> earliest_wait_;        // per lane: first place that another waits for
  std::vector<Chain> chains_;                 // per lane
  std::vector<int32_t> doubted_, disturbed_;  // entities

  Levels fluid_;
  Contention contention_;
  std::vector<int64_t> alone_;                    // per group
  std::vector<int32_t> next_member_, flight_of_;  // per lane: of the same communication
  std::vector<Flight> flights_;                   // per lane
  std::vector<int32_t> of_activity_, arrived_;    // flights; lanes
  std::vector<Meeting> meetings_;
  std::vector<int32_t> meeting_begin_;  // per rendezvous

  bool at_once_ = false;      // copies may run at once
  std::vector<Whole> whole_;  // per entity and block
  std::vector<Variant> variants_;
  std::vector<std::vector<int32_t>> variants_of_;  // per block
  std::vector<int32_t> rivals_;                    // lanes
  OutcomeCache outcomes_;
  CopyRunner runner_;
  int32_t numbered_ = 0;  // outcomes in the trace

  const Periods periods_;
  int32_t next_anchor_ = Lane::kDone;  // of the first entity's kernels
  State last_state_;
  bool steady_ = false;      // it was that of the state before
  int64_t last_period_ = 0;  // then: the time in between
  int host_bound_ = 2;       // periods more until in two no task has waited for its launch
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_SIMULATE_SIMULATOR_H_
