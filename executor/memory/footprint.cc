#include "executor/memory/footprint.h"

#include <algorithm>
#include <cmath>

#include "executor/memory/allocator.h"

namespace plancast {
namespace {

int64_t FlatFragmentation(const AllocatorParams& params, int64_t segments) {
  const double share = params.expandable_segments ? 0 : params.fragmentation;
  return static_cast<int64_t>(std::ceil(static_cast<double>(segments) * share));
}

// A free block that nothing fits into is smaller than the largest that is asked for, and
// there are few of that size.
bool NearCapacity(const MemoryOverhead& overhead, int64_t capacity_bytes, const Peak& peak,
                  int64_t segments, int64_t room) {
  constexpr int64_t kLargeBlocks = 4;
  const int64_t flat = FlatFragmentation(overhead.allocator, segments);
  return capacity_bytes > 0 && overhead.allocator.block_bytes > 0 && flat > 0 && segments <= room &&
         segments + std::max(flat, kLargeBlocks * peak.largest) > room;
}

void AddUp(ClassMemory* memory) {
  memory->reserved = memory->allocated + memory->rounding + memory->fragmentation;
  memory->device = memory->reserved + memory->nccl + memory->context;
}

}  // namespace

void Footprint::Place(const AllocatorReplay& placed) {
  memory.fragmentation = std::max<int64_t>(0, placed.reserved - segments());
  AddUp(&memory);
}

Footprint FootprintOf(const Program& program, const Peak& peak, int64_t nccl,
                      const MemoryOverhead& overhead) {
  return FootprintOf(program, peak, nccl, overhead, overhead.capacity_bytes);
}

Footprint FootprintOf(const Program& program, const Peak& peak, int64_t nccl,
                      const MemoryOverhead& overhead, int64_t capacity_bytes) {
  Footprint footprint;
  ClassMemory& memory = footprint.memory;
  memory.allocated = peak.allocated;
  memory.nccl = nccl;
  memory.context = overhead.context_bytes;
  memory.capacity = capacity_bytes;
  PoolBytes pools = peak.pools;
  int64_t state = 0, largest_state = 0;  // segments
  for (int64_t bytes : program.static_bytes) {
    const PoolBytes pooled = PooledBytes(overhead.allocator, bytes);
    pools.small += pooled.small;
    pools.large += pooled.large;
    const int64_t segment = SegmentFor(overhead.allocator, bytes);
    state += segment;
    largest_state = std::max(largest_state, segment);
  }
  const int64_t segments = std::max(memory.allocated, SegmentBytes(overhead.allocator, pools));
  memory.rounding = segments - memory.allocated;
  memory.fragmentation = FlatFragmentation(overhead.allocator, segments);
  footprint.room = capacity_bytes - nccl - overhead.context_bytes;
  footprint.near_capacity = NearCapacity(overhead, capacity_bytes, peak, segments, footprint.room);
  AddUp(&memory);
  // Segments take no more than the room, and one more where a block finds none. State comes
  // first.
  footprint.most_placed =
      capacity_bytes + std::max(LargestSegment(overhead.allocator, peak.largest),
                                state <= footprint.room ? 0 : largest_state);
  return footprint;
}

}  // namespace plancast
