#ifndef PLANCAST_EXECUTOR_SIMULATE_STEADY_STATE_H_
#define PLANCAST_EXECUTOR_SIMULATE_STEADY_STATE_H_

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "executor/simulate/events.h"
#include "executor/simulate/host_clock.h"
#include "executor/simulate/index/periods.h"
#include "executor/simulate/kernel_chains.h"
#include "executor/simulate/layer_runs.h"
#include "executor/simulate/overlap.h"
#include "executor/simulate/simulate.h"
#include "executor/simulate/snapshot.h"
#include "executor/simulate/streams.h"
#include "executor/simulate/transfers.h"

namespace plancast {

// Leaves out periods of a steady state: if all that goes on is what went on a period ago, but
// for the time and the micro-batch, then so it goes until the programs change. What is left out
// is filled with pieces of instances that have begun since, and so repeat as a whole.
class SteadyState {
 public:
  SteadyState(const SimInput& in, Streams& streams, HostClock& hosts, KernelChains& kernels,
              Transfers& transfers, LayerRuns& runs, Overlap& overlap, Events& events);

  // To be called after each point in time. True if periods were left out: it is later now,
  // and all goes on from there.
  bool Look() {
    return next_look_ != StreamCursor::kDone && FirstKernels().instance >= next_look_ && LookNow();
  }

 private:
  // Instances of an entity that streams are at, of those that go on; the last that has begun.
  struct Front {
    int32_t first = StreamCursor::kDone, last = 0, begun = 0;
    // But streams that are far ahead of these (FarAhead) and go on, and where each is.
    StreamMask ahead = 0, goes_ahead = 0;
    std::array<int32_t, kNumStreams> at = {};
  };
  // What it saw at one point.
  struct Sight {
    int32_t instance = 0;  // of the first entity's kernels
    Snapshot snapshot;
  };

  // The cursor of the first entity's kernels, by which looks are timed.
  const StreamCursor& FirstKernels() const { return streams_.cursor(CursorOf(0, kCompute)); }
  bool LookNow();
  // Takes a snapshot and sets when to look next.
  void TakeSight();
  // Looks for a period from what programs are at on.
  void FindPeriod();
  // Begins to look, from an instance of the first entity's kernels on.
  void StartLooking(int32_t instance);
  // There is no more to be seen in these periods; elsewhere there may be.
  void StopLooking();
  // From now on it is steady: all is as it was then.
  void BeginSteady(const Snapshot& now, const Snapshot& before);
  // Whether all is as it was several periods ago, which are one from now on.
  bool FindCycle(const Snapshot& now);
  // What to do in a steady state. True if periods were left out.
  bool GoOn(const Snapshot& now, const Snapshot& before);
  void Take(Snapshot& snapshot) const;
  void DescribeHost(int32_t entity, int32_t first, Snapshot& snapshot) const;
  bool DescribeSyncs(int32_t entity, int32_t instance, Snapshot& snapshot) const;
  bool IsLater(const Snapshot& now, const Snapshot& before) const;
  // Whether hosts are as far ahead after a period as before, or that matters not.
  bool HostsKeepPace(const Snapshot& now, const Snapshot& before,
                     const std::vector<Front>& fronts) const;
  std::vector<Front> FrontsOf(const Snapshot& now, const Snapshot& before) const;
  // Streams more than a period ahead of an entity's kernels, in instances that are theirs alone:
  // what they bring was there long before it is needed, and is so from period to period.
  StreamMask FarAhead(int32_t entity) const;
  // Whether all that streams are at has begun since it is steady.
  bool IsPast(const std::vector<Front>& fronts) const;
  // How many periods go on until the programs change; 0: not even one, nor later.
  int32_t PeriodsAhead(const std::vector<Front>& fronts);
  int32_t PeriodsAhead(int32_t entity, const Front& front);
  // Takes so many periods for one. False: they are too few.
  bool Widen(int32_t periods);
  // Within how many periods the streams of every entity are.
  int32_t Spread(const std::vector<Front>& fronts) const;
  // Goes to the last period that is as before.
  void Skip(int32_t periods, const Snapshot& now, const Snapshot& before,
            const std::vector<Front>& fronts);
  void MoveStreams(int32_t periods, const Snapshot& now, const Snapshot& before);
  // Pieces of the trace of the periods left out.
  void RepeatPieces(int32_t entity, const Front& front, int32_t periods);
  // Those of an instance under way go on so many periods later.
  void MovePieces(int32_t entity, int32_t instance, int32_t periods);
  // Those of instances of a period, ascending, as a period before; likewise in further ones.
  struct Stretch {
    int32_t first = 0, end = 0;
  };
  void RepeatPieces(int32_t entity, const std::vector<Stretch>& stretches, int32_t periods);

  const SimInput& in_;
  Streams& streams_;
  HostClock& hosts_;
  KernelChains& kernels_;
  Transfers& transfers_;
  LayerRuns& runs_;
  Overlap& overlap_;
  Events& events_;
  Periods periods_;
  bool in_middle_ = false;    // the period is that of the programs' middles
  std::deque<Sight> sights_;  // of these periods, the last at the end
  int32_t sights_per_period_ = 1;
  int32_t next_look_ = StreamCursor::kDone;  // at this instance, or to find a period from it
  int32_t looks_ = 0;                        // at these periods
  int32_t search_after_ = 0;                 // so many instances, for others
  // Of the steady state, if there is one: its period, since when it is, and where streams were a
  // period later.
  int64_t period_ps_ = 0;
  int64_t since_ps_ = 0;
  std::vector<Front> since_;
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_SIMULATE_STEADY_STATE_H_
