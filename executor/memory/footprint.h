#ifndef PLANCAST_EXECUTOR_MEMORY_FOOTPRINT_H_
#define PLANCAST_EXECUTOR_MEMORY_FOOTPRINT_H_

#include <cstdint>

#include "executor/executor.h"
#include "executor/memory/allocator_replay.h"
#include "executor/memory/peak.h"
#include "graph/execution/execution_graph.h"
#include "graph/execution/memory_overhead.h"

namespace plancast {

// What the framework takes from the device to hold a program's peak.
struct Footprint {
  ClassMemory memory;  // all but its bytes by kind and host
  int64_t room = 0;    // that the device has for segments
  // Where blocks lie decides if there is room for them (MemoryOverhead::capacity_bytes):
  // `memory` has the flat share of fragmentation until they are placed.
  bool near_capacity = false;
  int64_t most_placed = 0;  // that ClassMemory::device can be then

  int64_t segments() const { return memory.allocated + memory.rounding; }
  SegmentRoom segment_room() const { return {room, segments()}; }
  // Blocks have been placed with room for `room`.
  void Place(const AllocatorReplay& placed);
};

// `nccl`: bytes of communicators. On devices with MemoryOverhead::capacity_bytes, or that
// many.
Footprint FootprintOf(const Program& program, const Peak& peak, int64_t nccl,
                      const MemoryOverhead& overhead);
Footprint FootprintOf(const Program& program, const Peak& peak, int64_t nccl,
                      const MemoryOverhead& overhead, int64_t capacity_bytes);

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_MEMORY_FOOTPRINT_H_
