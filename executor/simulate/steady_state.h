#ifndef PLANCAST_EXECUTOR_SIMULATE_STEADY_STATE_H_
#define PLANCAST_EXECUTOR_SIMULATE_STEADY_STATE_H_

#include <cstdint>
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

// Leaves out periods of a steady state: if all that goes on is what went on a period ago and
// two, but for the time and the micro-batch, then so it goes until the programs change.
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
  // Instances of an entity that streams are at, of those that go on.
  struct Front {
    int32_t first = 0, last = 0;
  };

  // The cursor of the first entity's kernels, by which looks are timed.
  const StreamCursor& FirstKernels() const { return streams_.cursor(CursorOf(0, kCompute)); }
  bool LookNow();
  Snapshot Take() const;
  void DescribeHost(int32_t entity, int32_t first, Snapshot& snapshot) const;
  bool DescribeSyncs(int32_t entity, int32_t instance, Snapshot& snapshot) const;
  bool IsLater(const Snapshot& now, const Snapshot& before) const;
  // Whether hosts are as far ahead after a period as before, or that matters not.
  bool HostsKeepPace(const Snapshot& now) const;
  // How many periods go on until the programs change; 0: not even one, nor later.
  int32_t PeriodsAhead(const Snapshot& now, std::vector<Front>& fronts) const;
  int32_t PeriodsAhead(int32_t entity, const Snapshot& now, Front& front) const;
  // Looks again, at so many periods as one.
  void Widen(int32_t periods);
  // After how many periods their times, this the last of them, come again; 1: after each, or never.
  int32_t CycleOf(int64_t period);
  // Within how many periods the streams of every entity are.
  int32_t Spread(const std::vector<Front>& fronts) const;
  // Goes to the last period that is as before.
  void Skip(int32_t periods, const Snapshot& now, const std::vector<Front>& fronts);
  void MoveStreams(int32_t periods, const Snapshot& now);
  // Pieces of the trace of the periods left out.
  void RepeatPieces(int32_t entity, const Front& front, int32_t periods);

  const SimInput& in_;
  Streams& streams_;
  HostClock& hosts_;
  KernelChains& kernels_;
  Transfers& transfers_;
  LayerRuns& runs_;
  Overlap& overlap_;
  Events& events_;
  Periods periods_;
  int32_t next_look_ = StreamCursor::kDone;  // at this instance of the first entity's kernels
  Snapshot last_;
  bool steady_ = false;         // that was that of a period before
  int64_t last_period_ = 0;     // then: the time in between
  std::vector<int64_t> times_;  // of periods that were not
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_SIMULATE_STEADY_STATE_H_
