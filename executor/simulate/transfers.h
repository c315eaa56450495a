#ifndef PLANCAST_EXECUTOR_SIMULATE_TRANSFERS_H_
#define PLANCAST_EXECUTOR_SIMULATE_TRANSFERS_H_

#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "executor/contention/contention.h"
#include "executor/sharing/fluid.h"
#include "executor/sharing/levels.h"
#include "executor/simulate/events.h"
#include "executor/simulate/kernel_chains.h"
#include "executor/simulate/layer/layer_outcome.h"
#include "executor/simulate/overlap.h"
#include "executor/simulate/simulate.h"
#include "executor/simulate/snapshot.h"
#include "executor/simulate/streams.h"

namespace plancast {

// Is told what transfers change for layers that run at once.
class TransferListener {
 public:
  virtual ~TransferListener() = default;
  // Others begin or end to communicate alongside an entity's layer run, or when is known.
  virtual void OnCommsChange(int32_t entity) = 0;
  // From now on a group loads links that others load too.
  virtual void OnLoad(int32_t group) = 0;
};

// Communications: their members meet, wait for the latency, and transfer, alone or on links
// shared with others. The cursor of the first member names a communication in flight.
class Transfers {
 public:
  Transfers(const SimInput& in, Streams& streams, KernelChains& kernels, Overlap& overlap,
            Events& events, TransferListener& listener);

  const Contention& contention() const { return contention_; }
  // What the communications of each group take alone.
  const std::vector<int64_t>& alone_ps() const { return alone_ps_; }
  int64_t AloneRateQ16(int32_t group, bool slow) const {
    return sharing_.AloneRateQ16(KindOf(group, slow));
  }
  // Of the first of these groups, at once with the others and with nothing else on their links;
  // `busy`: beside kernels.
  int64_t RateAmongQ16(absl::Span<const int32_t> groups, bool busy) const {
    absl::InlinedVector<int32_t, 4> kinds;
    for (const int32_t group : groups) kinds.push_back(KindOf(group, busy && Yields(group)));
    return sharing_.RateAmongQ16(kinds);
  }
  // Of a stream in flight.
  int32_t GroupAt(int32_t cursor) const { return transfers_[transfer_of_[cursor]].group; }
  // Whether kernels slow a transfer of a group.
  bool Yields(int32_t group) const { return overlap_.slows_transfers() && UsesSms(group); }
  // Whether what a stream does now loads links.
  bool Loads(int32_t cursor) const {
    return streams_.cursor(cursor).state == StreamCursor::kInFlight &&
           transfers_[transfer_of_[cursor]].flows;
  }

  // An entity joins a communication. True if it is over by that.
  bool Join(int32_t entity, int stream, const Streams::OpenLayer& layer, int32_t task);
  // The latency of a communication is over.
  void Start(int32_t transfer);
  void End(int32_t transfer);
  // Ends those that share links, when one is over next; kNever: none is.
  int64_t NextEnd() { return sharing_.NextCompletion(); }
  void EndUntil(int64_t time) {
    for (const int32_t activity : sharing_.AdvanceTo(time)) End(of_activity_[activity]);
  }
  bool AnyShares() const { return sharing_.num_active() > 0; }
  // Slows those of entities that run kernels, once all is done that is to be done now.
  void SettleSpeeds();

  // A layer run takes over the communication in flight of a stream.
  void Take(int32_t cursor, LayerConditions::Ahead* ahead);
  // A stream goes on with one of its own that a layer run, which began at `origin`, had.
  void Resume(int32_t cursor, int32_t group, const LayerStop::Stream& at, int64_t origin);

  // Of a stream in flight.
  void Describe(int32_t cursor, Snapshot& snapshot) const;
  // Members that have come to the rendezvous of an instance have come to that of another.
  void MoveMeeting(int32_t entity, int32_t from, int32_t to);
  void Shift(int32_t cursor, int64_t way) {
    transfers_[cursor].progress.since += way;
    transfers_[cursor].starts_at += way;
  }
  void ShiftSharing(int64_t way) { sharing_.Shift(way); }

 private:
  // Members of a communication that have come so far.
  struct Meeting {
    int32_t last = -1;  // the cursor that came last; others are chained behind
    int32_t arrived = 0;
  };
  struct Transfer {
    int32_t group = 0;
    int64_t work_bytes = 0;
    int64_t starts_at = 0;     // when it starts, or goes on after a layer run,
    int128 work_left = 0;      // and what is left of it then
    bool flows = false;        // it has started, and others change its rate:
    int32_t activity = -1;     // on links that others load too; or, if
    Fluid::Progress progress;  // kernels alone do, what is left of it
    bool slow = false;         // by kernels
    int32_t busy = 0;          // members that run kernels
  };
  // Of one communication, picoseconds and bytes.
  struct Cost {
    int64_t delay = 0, work_bytes = 0, alone = 0;
  };

  bool UsesSms(int32_t group) const {
    return !in_.realised[in_.sim.groups[group].realised].uses_no_sms;
  }
  // Whether others may change its rate.
  bool Shares(const Transfer& transfer) const {
    return contention_.of_group[transfer.group] ||
           (transfer.work_bytes > 0 && Yields(transfer.group));
  }
  int32_t KindOf(int32_t group, bool slow) const {
    return group + (slow ? static_cast<int32_t>(in_.sim.groups.size()) : 0);
  }

  int32_t SortMembers(int32_t last);  // the first
  // With jitter. `cursor`: of a member.
  Cost CostOf(int32_t group, int32_t cursor) const;
  void Prepare(int32_t transfer, int32_t group, int64_t work_bytes, int64_t starts_at);
  // What is left of a transfer flows from now on.
  void Flow(int32_t transfer, const Fluid::Progress& progress);
  void FlowAlone(int32_t transfer, const Fluid::Progress& before);
  void FindBusy(int32_t transfer);
  // So many more of its members, or fewer, run kernels.
  void AddBusy(int32_t transfer, int32_t more);
  // A communication is in flight on an entity, until a time or kNever: not known yet. It ends.
  void BeginOn(int32_t entity, int64_t until);
  void EndOn(int32_t entity, bool known);
  // Sets when those of an entity with a known end are over.
  void FindOver(int32_t entity);

  const SimInput& in_;
  Streams& streams_;
  KernelChains& kernels_;
  Overlap& overlap_;
  Events& events_;
  TransferListener& listener_;
  Levels sharing_;
  Contention contention_;
  std::vector<int64_t> alone_ps_;                   // per group
  std::vector<int32_t> next_member_, transfer_of_;  // per cursor: of the same communication
  std::vector<Transfer> transfers_;                 // per cursor
  std::vector<int32_t> of_activity_, arrived_;      // transfers; cursors
  std::vector<Meeting> meetings_;
  std::vector<int32_t> meeting_begin_;  // per rendezvous
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_SIMULATE_TRANSFERS_H_
