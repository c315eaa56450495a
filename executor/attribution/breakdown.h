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
// task: the same wherever one has that outcome.
class OutcomeSums {
 public:
  // Null: not known yet.
  const Breakdown* Find(int32_t outcome) const {
    if (outcome >= static_cast<int32_t>(at_.size()) || at_[outcome] < 0) return nullptr;
    return &sums_[at_[outcome]];
  }
  void Add(int32_t outcome, const Breakdown& sum);
  // It will be asked for soon.
  void Prefetch(int32_t outcome) const {
    const Breakdown* const sum = Find(outcome);
    if (sum != nullptr) __builtin_prefetch(sum);
  }

 private:
  std::vector<int32_t> at_;  // per outcome: in sums_, or -1
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
int64_t& PartFor(Breakdown& breakdown, Purpose purpose, bool is_comm);

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_ATTRIBUTION_BREAKDOWN_H_
