#ifndef PLANCAST_EXECUTOR_MEMORY_ALLOCATOR_H_
#define PLANCAST_EXECUTOR_MEMORY_ALLOCATOR_H_

#include <cstdint>

#include "graph/execution/memory_overhead.h"

namespace plancast {

// Bytes of blocks in the two pools of a caching allocator: blocks that share
// small segments, and all others.
struct PoolBytes {
  int64_t small = 0, large = 0;
};

// What one tensor takes of the pools. Odd in `bytes`, so a free gives back what
// its allocation took.
PoolBytes PooledBytes(const AllocatorParams& params, int64_t bytes);

// Segments that hold pools of at most this size: what the allocator has to take
// from the device if no block is ever in another's way.
int64_t SegmentBytes(const AllocatorParams& params, PoolBytes most);

// The segment that serves a block which finds no room in those that there are.
int64_t SegmentFor(const AllocatorParams& params, int64_t bytes);
// The largest for blocks of up to so many bytes.
int64_t LargestSegment(const AllocatorParams& params, int64_t bytes);

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_MEMORY_ALLOCATOR_H_
