#ifndef PLANCAST_EXECUTOR_DEADLOCK_H_
#define PLANCAST_EXECUTOR_DEADLOCK_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "executor/simulate.h"

namespace plancast {

// Names a cycle of tasks that wait for one another. `next`: per entity and
// stream, the first task that is not over.
absl::Status DeadlockError(const SimInput& input, const SimTrace& trace,
                           const std::vector<int32_t>& next);

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_DEADLOCK_H_
