#ifndef PLANCAST_EXECUTOR_ATTRIBUTION_BREAKDOWN_H_
#define PLANCAST_EXECUTOR_ATTRIBUTION_BREAKDOWN_H_

#include <cstdint>
#include <vector>

#include "executor/attribution/causes.h"
#include "executor/executor.h"
#include "executor/simulate/simulate.h"

namespace plancast {

// Where the time of an entity's iteration goes: its compute stream, cut at every begin and
// end of a task. A gap counts for what the next task waited for: a
// communication while it runs; while the communication itself waits for a peer, a
// straggler if that runs the same program, or what other ranks of its stage have, else a bubble;
// the host's launch. After the last task:
// communications of the device that still run, then bubble. The sum is the makespan.
Breakdown BreakdownOf(const SimInput& input, const SimTrace& trace, int32_t entity);

// What layers of outcomes add to the breakdown of an entity, without the wait for their first
// task: the same wherever one has that outcome. So they are counted, and added up in the end.
class OutcomeSums {
 public:
  bool Knows(int32_t outcome) const {
    return outcome < static_cast<int32_t>(outcomes_.size()) && outcomes_[outcome].at >= 0;
  }
  void Know(int32_t outcome, const Breakdown& sum);
  // So many more layers of the entity at hand have an outcome that is known.
  void Count(int32_t outcome, int64_t layers) {
    Outcome& own = outcomes_[outcome];
    if (own.layers == 0) counted_.push_back(outcome);
    own.layers += layers;
  }
  // Adds all that was counted, and forgets it.
  void Take(Breakdown& sum);
  // It will be asked for soon.
  void Prefetch(int32_t outcome) const {
    if (outcome < static_cast<int32_t>(outcomes_.size())) __builtin_prefetch(&outcomes_[outcome]);
  }

 private:
  struct Outcome {
    int64_t layers = 0;  // that were counted
    int32_t at = -1;     // in sums_; -1: not known yet
  };
  std::vector<Outcome> outcomes_;
  std::vector<int32_t> counted_;
  std::vector<Breakdown> sums_;
};

// Breakdowns of several entities of a trace, which share what they find.
class Breakdowns {
 public:
  Breakdowns(const SimInput& input, const SimTrace& trace)
      : input_(input), trace_(trace), causes_(input, trace) {}

  Breakdown Of(int32_t entity);

 private:
  const SimInput& input_;
  const SimTrace& trace_;
  const Causes causes_;
  OutcomeSums sums_;
};

// The part of a breakdown that a task's own time belongs to.
inline int64_t& PartFor(Breakdown& breakdown, Purpose purpose, bool is_comm) {
  switch (purpose) {
    case Purpose::kForward:
    case Purpose::kBackward:
      return is_comm ? breakdown.other : breakdown.compute;
    case Purpose::kRecompute:
      return breakdown.recompute;
    case Purpose::kTp:
      return breakdown.exposed_tp;
    case Purpose::kDp:
      return breakdown.exposed_dp;
    case Purpose::kPp:
      return breakdown.exposed_pp;
    case Purpose::kCp:
      return breakdown.exposed_cp;
    case Purpose::kEp:
      return breakdown.exposed_ep;
    case Purpose::kOffload:
      return breakdown.exposed_offload;
    case Purpose::kOptimizer:
      return breakdown.optimizer;
    case Purpose::kOther:
      break;
  }
  return breakdown.other;
}

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_ATTRIBUTION_BREAKDOWN_H_
