#ifndef PLANCAST_EXECUTOR_MEMORY_REPLAY_H_
#define PLANCAST_EXECUTOR_MEMORY_REPLAY_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "executor/executor.h"
#include "executor/memory/block_profile.h"
#include "graph/execution_graph.h"

namespace plancast {

// Live memory of a device over the issue order of its program. Frameworks
// allocate when the host issues a task and reuse at once what an earlier task of
// the order has freed, so times do not matter. Each block is replayed once: its
// copies only shift the net change.

// Where a program's live memory is highest: after `events` memory events of copy
// `copy` of an instance; instance -1: before the first. Of several equal places
// the first.
struct PeakPlace {
  int32_t instance = -1;
  int32_t copy = 0;
  int32_t events = 0;
};
struct Peak {
  PeakPlace place;
  int64_t allocated = 0;  // static memory included
  PoolBytes pools;        // the most of each pool, whenever that is; without static memory
  int64_t largest = 0;    // allocation of any block that runs
};
Peak FindPeak(const ExecutionGraph& graph, int32_t program,
              const std::vector<BlockProfile>& profiles);

// Static memory of a program by kind.
KindBytes StaticBytes(const Program& program);

// ClassMemory::device alone, for less.
int64_t DeviceBytes(const ExecutionGraph& graph, int32_t program,
                    const std::vector<BlockProfile>& profiles, const MemoryOverhead& overhead);

// The same for a program that is part of no graph: `profiles` by its numbers of blocks,
// `nccl` bytes of communicators. Nothing where the places of blocks decide
// (MemoryOverhead::capacity_bytes).
std::optional<int64_t> DeviceBytesOf(const Program& program,
                                     const std::vector<const BlockProfile*>& profiles, int64_t nccl,
                                     const MemoryOverhead& overhead);

ClassMemory ReplayProgram(const ExecutionGraph& graph, int32_t program,
                          const std::vector<BlockProfile>& profiles,
                          const MemoryOverhead& overhead);

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_MEMORY_REPLAY_H_
