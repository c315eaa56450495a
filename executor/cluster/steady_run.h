#ifndef PLANCAST_EXECUTOR_CLUSTER_STEADY_RUN_H_
#define PLANCAST_EXECUTOR_CLUSTER_STEADY_RUN_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "executor/cluster/loop_set.h"

namespace plancast {

// Loops beside each other until the first of them comes to its end, without running every
// iteration: once all are where they were before, what lies between (a *period*) happens
// again and again and is left out.
//
//     origin ... seen before ═══ period ═══ seen again ┈┈ whole periods left out ┈┈ end
//
// Loops of unlike iterations may never stand alike to the last digit. After `most_events`
// the two moments nearest to each other, against the time between them, are taken, and off_by()
// says how far apart they were.
class SteadyRun {
 public:
  struct Options {
    int64_t most_events = 6000;
    int64_t whole_until = 0;  // nothing is left out before, ps
    bool shortcuts = true;    // else every event runs
  };
  struct Period {
    int64_t time_ps = 0;
    std::vector<int64_t> iterations;  // of each loop
    std::vector<double> waits;        // LoopSet::wait_seconds
    int64_t apart_ps = 0;
  };

  // How all stood when a loop began an iteration.
  struct Moment {
    int64_t time = 0;
    std::vector<int64_t> positions, iterations;
    std::vector<double> waits;
  };

  SteadyRun(LoopSet origin, const Options& options);

  // Later than this is not simulated: 92 days, so that no sum leaves the clock's 2^63 ps.
  static constexpr int64_t kLatest = int64_t{8'000'000} * 1'000'000'000'000;

  // When the first loop stops; LoopSet::kNever if none has an end, kLatest if that is later.
  int64_t end() const { return end_; }
  const LoopSet& at_end() const { return *at_end_; }
  // How all stand at a time from the origin's to end().
  LoopSet At(int64_t time_ps) const;
  // Null if a loop came to its end before one was found.
  const Period* period() const { return found_ ? &period_ : nullptr; }
  // What is lost in a period; nothing without one.
  std::vector<LoopWait> PeriodWaits() const {
    return found_ ? again_->WaitsOf(period_.waits) : std::vector<LoopWait>();
  }
  // Of the period, what its ends were apart over its length; 0 without one.
  double off_by() const;

 private:
  void Find();
  bool Compare(LoopSet& run, const std::vector<Moment>& moments);
  // Leaves out whole periods that begin at `set`, none of them beyond `limit` or an end.
  void LeaveOut(LoopSet& set, int64_t limit) const;

  const Options options_;
  std::unique_ptr<LoopSet> origin_, again_, at_end_;
  bool found_ = false;
  Period period_;
  int64_t end_ = LoopSet::kNever;
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_CLUSTER_STEADY_RUN_H_
