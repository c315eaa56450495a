#ifndef PLANCAST_EXECUTOR_MEMORY_CACHING_ALLOCATOR_H_
#define PLANCAST_EXECUTOR_MEMORY_CACHING_ALLOCATOR_H_

#include <cstdint>
#include <vector>

#include "base/int128.h"
#include "graph/memory_overhead.h"

namespace plancast {

// A caching allocator as PyTorch's is (c10/cuda/CUDACachingAllocator.cpp), block by block:
// the smallest free block that is large enough serves, its rest is split off where that is
// worth keeping (a block's alignment of a small segment, more than a small block of a
// large one), neighbours that are free grow together again, segments stay. Where the
// device has no room for another segment, those that are free as a whole are given back.
// One stream: what is freed can be used at once.
class CachingAllocator {
 public:
  static constexpr int32_t kNone = -1;

  // `capacity`: bytes that segments may take together; 0: any number.
  explicit CachingAllocator(const AllocatorParams& params, int64_t capacity = 0)
      : params_(params), capacity_(capacity) {}

  // A block, or kNone where there is no room for it; it is then not allocated.
  int32_t Allocate(int64_t bytes);
  void Free(int32_t block);

  int64_t live() const { return live_; }          // bytes of blocks in use, rounded
  int64_t reserved() const { return reserved_; }  // of segments
  int64_t most_reserved() const { return most_reserved_; }
  int64_t retries() const { return retries_; }  // how often segments were given back
  // What segments would have to take for the last block that found no room.
  int64_t wanted() const { return wanted_; }

 private:
  struct Node {
    int64_t bytes = 0;
    int32_t before = kNone, behind = kNone;  // neighbours in the segment
    bool free = false, small = false;
  };
  // Bytes and block as one number, ascending, few.
  using FreeBlocks = std::vector<int128>;
  static int128 FreeBlock(int64_t bytes, int32_t block) { return int128{bytes} << 32 | block; }
  static int32_t BlockOf(int128 free) { return static_cast<int32_t>(free & INT32_MAX); }
  static FreeBlocks::iterator LowerBound(FreeBlocks* pool, int128 free);

  FreeBlocks& Pool(bool small) { return free_[small ? 0 : 1]; }
  int32_t NewSegment(int64_t bytes, bool small);
  void GiveBackSegments();
  int32_t NewNode(const Node& node);
  void Insert(int32_t block);
  void Remove(int32_t block);
  void Absorb(int32_t block, int32_t neighbour, bool behind);

  const AllocatorParams params_;
  const int64_t capacity_;
  std::vector<Node> nodes_;
  std::vector<int32_t> spare_;  // nodes to be used again
  FreeBlocks free_[2];          // small, large
  int64_t live_ = 0, reserved_ = 0, most_reserved_ = 0, retries_ = 0, wanted_ = 0;
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_MEMORY_CACHING_ALLOCATOR_H_
