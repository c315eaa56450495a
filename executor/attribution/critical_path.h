#ifndef PLANCAST_EXECUTOR_ATTRIBUTION_CRITICAL_PATH_H_
#define PLANCAST_EXECUTOR_ATTRIBUTION_CRITICAL_PATH_H_

#include <cstdint>

#include "executor/executor.h"
#include "executor/simulate/simulate.h"

namespace plancast {

// Walks back from the last task to end through what each task last waited for,
// across devices, and adds to `result`: the time by purpose, which sums to the
// iteration's time, the seconds that depend on each latent factor, and how the kernels'
// times are known. Of the entities [begin, end) alone, if they are given: one of
// several jobs.
void AttributeCriticalPath(const SimInput& input, const SimTrace& trace, SimResult& result,
                           int32_t begin, int32_t end);
inline void AttributeCriticalPath(const SimInput& input, const SimTrace& trace, SimResult& result) {
  AttributeCriticalPath(input, trace, result, 0, static_cast<int32_t>(input.sim.entities.size()));
}

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_ATTRIBUTION_CRITICAL_PATH_H_
