#ifndef PLANCAST_EXECUTOR_SIMULATE_DEADLOCK_H_
#define PLANCAST_EXECUTOR_SIMULATE_DEADLOCK_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "executor/simulate/simulate.h"
#include "executor/simulate/stream_cursor.h"

namespace plancast {

// Names a cycle of tasks that wait for one another.
absl::Status DeadlockError(const SimInput& input, const std::vector<StreamCursor>& cursors);

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_SIMULATE_DEADLOCK_H_
