#ifndef PLANCAST_EXECUTOR_MEMORY_H_
#define PLANCAST_EXECUTOR_MEMORY_H_

#include <vector>

#include "executor/executor.h"
#include "graph/execution_graph.h"

namespace plancast {

// Live memory of a device over the issue order of its program. Frameworks
// allocate when the host issues a task and reuse at once what an earlier task of
// the order has freed, so times do not matter. Each block is replayed once: its
// copies only shift the net change.
ClassMemory ReplayProgram(const ExecutionGraph& graph, int32_t program,
                          const RuntimeParams& runtime);

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_MEMORY_H_
