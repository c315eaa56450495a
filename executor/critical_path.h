#ifndef PLANCAST_EXECUTOR_CRITICAL_PATH_H_
#define PLANCAST_EXECUTOR_CRITICAL_PATH_H_

#include "executor/executor.h"
#include "executor/simulate.h"

namespace plancast {

// Walks back from the last task to end through what each task last waited for,
// across devices, and adds to `result`: the time by purpose, which sums to the
// makespan, the seconds that hang on each latent factor, and how the kernels'
// times are known.
void AttributeCriticalPath(const SimInput& input, const SimTrace& trace, SimResult& result);

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_CRITICAL_PATH_H_
