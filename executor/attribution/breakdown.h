#ifndef PLANCAST_EXECUTOR_ATTRIBUTION_BREAKDOWN_H_
#define PLANCAST_EXECUTOR_ATTRIBUTION_BREAKDOWN_H_

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

// The part of a breakdown that a task's own time belongs to.
int64_t& PartFor(Breakdown& breakdown, Purpose purpose, bool is_comm);

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_ATTRIBUTION_BREAKDOWN_H_
