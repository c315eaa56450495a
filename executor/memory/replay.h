#ifndef PLANCAST_EXECUTOR_MEMORY_REPLAY_H_
#define PLANCAST_EXECUTOR_MEMORY_REPLAY_H_

#include <cstdint>
#include <vector>

#include "executor/executor.h"
#include "executor/memory/block_profile.h"
#include "executor/memory/peak.h"
#include "graph/execution/execution_graph.h"

namespace plancast {

// Live memory of a device over the issue order of its program. Frameworks
// allocate when the host issues a task and reuse at once what an earlier task of
// the order has freed, so times do not matter. Each block is replayed once: its
// layers only shift the net change.

Peak FindPeak(const ExecutionGraph& graph, int32_t program,
              const std::vector<BlockProfile>& profiles);

// Static memory of a program by kind.
KindBytes StaticBytes(const Program& program);

// ClassMemory::device alone, for less.
int64_t DeviceBytes(const ExecutionGraph& graph, int32_t program,
                    const std::vector<BlockProfile>& profiles, const MemoryOverhead& overhead);

ClassMemory ReplayProgram(const ExecutionGraph& graph, int32_t program,
                          const std::vector<BlockProfile>& profiles,
                          const MemoryOverhead& overhead);

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_MEMORY_REPLAY_H_
