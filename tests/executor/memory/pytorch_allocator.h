#ifndef PLANCAST_TESTS_EXECUTOR_MEMORY_PYTORCH_ALLOCATOR_H_
#define PLANCAST_TESTS_EXECUTOR_MEMORY_PYTORCH_ALLOCATOR_H_

#include <cstdint>

#include "graph/execution/memory_overhead.h"

namespace plancast {

inline constexpr int64_t kMiB = 1 << 20;

// As the shipped profiles have it, without the reserve for fragmentation.
inline AllocatorParams PyTorch() {
  AllocatorParams params;
  params.block_bytes = 512;
  params.small_bytes = kMiB;
  params.small_segment_bytes = 2 * kMiB;
  params.large_bytes = 10 * kMiB;
  params.large_multiple_bytes = 2 * kMiB;
  params.middle_segment_bytes = 20 * kMiB;
  return params;
}

}  // namespace plancast

#endif  // PLANCAST_TESTS_EXECUTOR_MEMORY_PYTORCH_ALLOCATOR_H_
