#ifndef PLANCAST_EXECUTOR_MEMORY_CACHING_ALLOCATOR_H_
#define PLANCAST_EXECUTOR_MEMORY_CACHING_ALLOCATOR_H_

#include <cstdint>
#include <vector>

#include "base/int128.h"
#include "graph/execution/execution_graph.h"
#include "graph/execution/memory_overhead.h"

namespace plancast {

// A caching allocator as PyTorch's is (c10/cuda/CUDACachingAllocator.cpp), block by block:
// the smallest free block that is large enough serves, its rest is split off where that is
// worth keeping (a block's alignment of a small segment, more than a small block of a
// large one), neighbours that are free grow together again, segments stay. Where the
// device has no room for another segment, those that are free as a whole are given back.
// What is freed can be used at once, by the stream that it was allocated on.
//
// Expandable segments: each stream has one for small and one for other blocks. It grows at
// its end, page by page (of a small or a middling segment); a free block at the end serves
// only where no other does, and its rest is split off whatever its size. Where the device
// has no room, free blocks give their pages back; they may be filled again.
class CachingAllocator {
 public:
  static constexpr int32_t kNone = -1;

  // When segments that are free are given back.
  enum class GiveBack {
    kAtCapacity,
    kNever,
    // Whenever segments would take more than ever before, and more than `least`: what they
    // take goes by no capacity.
    kBeforeGrowth,
  };

  // `capacity`: bytes that segments may take together; 0: any number.
  explicit CachingAllocator(const AllocatorParams& params, int64_t capacity = 0,
                            GiveBack when = GiveBack::kAtCapacity, int64_t least = 0)
      : params_(params),
        capacity_(capacity > 0 ? capacity : INT64_MAX),
        when_(when),
        least_(least) {}

  // A block, or kNone where there is no room for it; it is then not allocated.
  int32_t Allocate(int64_t bytes, int stream = 0);
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
    bool mapped = true;  // has pages
    int stream = 0;
  };
  // Bytes and block as one number, ascending, few.
  using FreeBlocks = std::vector<int128>;
  static int128 FreeBlock(int64_t bytes, int32_t block) { return int128{bytes} << 32 | block; }
  static int32_t BlockOf(int128 free) { return static_cast<int32_t>(free & INT32_MAX); }
  static FreeBlocks::iterator LowerBound(FreeBlocks* blocks, int128 free);
  struct Pool {
    FreeBlocks free;       // with pages
    int32_t last = kNone;  // block of the expandable segment
  };

  Pool& PoolOf(int stream, bool small) { return pools_[2 * stream + (small ? 0 : 1)]; }
  Pool& PoolOf(const Node& node) { return PoolOf(node.stream, node.small); }
  // The smallest free block that is large enough, out of its pool; kNone.
  int32_t TakeFree(Pool& pool, int64_t bytes);
  int32_t NewSegment(int64_t bytes, bool small, int stream);
  int32_t Expand(int64_t bytes, bool small, int stream);
  // Whether so much more fits, once what is free has been given back if that is to be.
  bool MakeRoom(int64_t bytes);
  void GiveBackSegments();
  void GiveBackPages();
  void Split(int32_t block, int64_t bytes);
  int32_t NewNode(const Node& node);
  void Insert(int32_t block);
  void Remove(int32_t block);
  void Absorb(int32_t block, int32_t neighbour, bool behind);

  const AllocatorParams params_;
  const int64_t capacity_;
  const GiveBack when_;
  const int64_t least_;
  std::vector<Node> nodes_;
  std::vector<int32_t> spare_;  // nodes to be used again
  Pool pools_[2 * kNumMemoryPools];
  int64_t live_ = 0, reserved_ = 0, most_reserved_ = 0, retries_ = 0, wanted_ = 0;
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_MEMORY_CACHING_ALLOCATOR_H_
