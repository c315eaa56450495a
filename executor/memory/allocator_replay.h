#ifndef PLANCAST_EXECUTOR_MEMORY_ALLOCATOR_REPLAY_H_
#define PLANCAST_EXECUTOR_MEMORY_ALLOCATOR_REPLAY_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "executor/memory/held_tensors.h"
#include "executor/memory/peak.h"
#include "graph/execution/execution_graph.h"
#include "graph/execution/memory_overhead.h"
#include "graph/execution/program_outline.h"

namespace plancast {

// What a caching allocator takes from the device for the blocks of a program, in the
// order in which they come and go.
struct AllocatorReplay {
  // The most that its segments take; where a block finds no room, what they would have
  // to take with it.
  int64_t reserved = 0;
  int64_t live = 0;     // the most that blocks in use take, as rounded
  int64_t retries = 0;  // how often cached segments were given back for another
  bool out_of_memory = false;
  PeakPlace place;  // where it ran out, or where segments grew last
};

// What segments may take and what they have to, whatever the capacity (Footprint::segments);
// bytes. Blocks fit where segments that all stay do. Where they do not, free ones are given back
// before segments take more than ever before and more than `least`: neither goes by the
// capacity, so what fits also fits in more.
struct SegmentRoom {
  int64_t capacity = 0;  // 0: any
  int64_t least = 0;
};

// Every allocation and free of the program, layer by layer, until the first micro-batches
// (as many as are in flight, and two more) have gone back: the allocator is in its steady
// state by then. State lives as one block each from the start.
AllocatorReplay ReplayAllocator(const ExecutionGraph& graph, int32_t program,
                                const AllocatorParams& params, const SegmentRoom& room);
// Likewise behind a whole iteration without the optimizer's state, which its end allocates
// (AllocatorParams::state_in_step).
AllocatorReplay ReplayFirstSteps(const ExecutionGraph& graph, int32_t program,
                                 const AllocatorParams& params, const SegmentRoom& room);

// A block whose tensors have numbers (TensorNames).
struct NamedBlock {
  const Block* block = nullptr;
  const std::vector<int32_t>* names = nullptr;  // per tensor
};
// The same of a program that is part of no graph; `names`: how many numbers there are.
AllocatorReplay ReplayAllocator(const ProgramOutline& outline, absl::Span<const NamedBlock> blocks,
                                int32_t names, const AllocatorParams& params,
                                const SegmentRoom& room);

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_MEMORY_ALLOCATOR_REPLAY_H_
