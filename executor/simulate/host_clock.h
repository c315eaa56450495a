#ifndef PLANCAST_EXECUTOR_SIMULATE_HOST_CLOCK_H_
#define PLANCAST_EXECUTOR_SIMULATE_HOST_CLOCK_H_

#include <cstdint>
#include <vector>

#include "executor/simulate/layer/layer_outcome.h"
#include "executor/simulate/simulate.h"
#include "executor/simulate/streams.h"

namespace plancast {

// When hosts launch what their devices run, and whether that has mattered of late.
class HostClock {
 public:
  // The clock of a host as if it had launched nothing of a layer yet.
  struct OfLayer {
    bool known = false;
    int64_t zero = 0;
  };

  HostClock(const SimInput& in, const Streams& streams, const Events& events);

  // Whether the launches of a program take time, or its host waits for tasks.
  bool Matters(int32_t program) const { return matters_[program]; }
  // Sets the clock for a task of a layer; false if its host still waits for `blocker`.
  // `clock`: that of a task before in the same layer.
  bool Find(int32_t entity, const StreamCursor& at, int32_t task, const BlockIndex& index,
            OfLayer* clock, TaskRef* blocker);
  // LayerConditions::host of a layer that begins now; false if that is not known yet.
  bool FindCondition(int32_t entity, const TaskRef& layer, const BlockIndex& index,
                     const LayerCosts& costs, int64_t* host);

  // A task of a program has waited for its launch.
  void NoteWait(int32_t program) { last_wait_ps_[program] = events_.now(); }
  // Whether the host of a program is as far ahead after each period as before, or that matters
  // not: the period begins with an instance, has so many and takes so long, and is that of a
  // steady state since `since_ps`.
  bool KeepsPace(int32_t program, int32_t first, int32_t period, int64_t period_ps,
                 int64_t since_ps) const;

 private:
  // Where the clock of an entity's host goes on from.
  struct Released {
    int32_t sync = -1;  // instance that it waited for last; -1: from the beginning
    int64_t zero = 0;   // as if launches before that had taken no time; kUnknown: not asked yet
  };

  // The clock before the launches of a layer that begins with no wait of its host. False if that
  // still waits for `blocker`.
  bool FindZero(int32_t entity, int32_t instance, int32_t layer, int64_t* zero, TaskRef* blocker);

  const SimInput& in_;
  const Streams& streams_;
  const Events& events_;
  std::vector<bool> matters_;       // per program
  std::vector<Released> released_;  // per entity
  // Per program, when it was last found that a task waits for its launch.
  std::vector<int64_t> last_wait_ps_;
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_SIMULATE_HOST_CLOCK_H_
