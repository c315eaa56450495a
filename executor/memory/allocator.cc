#include "executor/memory/allocator.h"

#include <algorithm>

namespace plancast {
namespace {

int64_t RoundUp(int64_t bytes, int64_t multiple) {
  return multiple > 1 ? (bytes + multiple - 1) / multiple * multiple : bytes;
}

}  // namespace

PoolBytes PooledBytes(const AllocatorParams& params, int64_t bytes) {
  if (bytes < 0) {
    const PoolBytes freed = PooledBytes(params, -bytes);
    return {-freed.small, -freed.large};
  }
  const int64_t block = RoundUp(bytes, params.block_bytes);
  if (block <= params.small_bytes) return {block, 0};
  return {0, block < params.large_bytes ? block : RoundUp(block, params.large_multiple_bytes)};
}

int64_t SegmentBytes(const AllocatorParams& params, PoolBytes most) {
  return RoundUp(most.small, params.small_segment_bytes) +
         RoundUp(most.large, params.middle_segment_bytes);
}

int64_t SegmentFor(const AllocatorParams& params, int64_t bytes) {
  bytes = RoundUp(bytes, params.block_bytes);
  if (bytes <= params.small_bytes) return std::max(bytes, params.small_segment_bytes);
  if (bytes < params.large_bytes) return std::max(bytes, params.middle_segment_bytes);
  return RoundUp(bytes, params.large_multiple_bytes);
}

int64_t LargestSegment(const AllocatorParams& params, int64_t bytes) {
  return std::max({SegmentFor(params, bytes), params.large_bytes, params.middle_segment_bytes,
                   params.small_segment_bytes});
}

}  // namespace plancast
