#include "executor/memory/caching_allocator.h"

#include <algorithm>

#include "base/check.h"
#include "executor/memory/allocator.h"

namespace plancast {
namespace {

int64_t RoundUp(int64_t bytes, int64_t multiple) {
  return multiple > 1 ? (bytes + multiple - 1) / multiple * multiple : bytes;
}

}  // namespace

int32_t CachingAllocator::NewNode(const Node& node) {
  if (spare_.empty()) {
    nodes_.push_back(node);
    return static_cast<int32_t>(nodes_.size()) - 1;
  }
  const int32_t index = spare_.back();
  spare_.pop_back();
  nodes_[index] = node;
  return index;
}

void CachingAllocator::GiveBackSegments() {
  ++retries_;
  for (FreeBlocks& pool : free_) {
    for (auto block = pool.begin(); block != pool.end();) {
      const Node& node = nodes_[BlockOf(*block)];
      if (node.before != kNone || node.behind != kNone) {
        ++block;
        continue;
      }
      reserved_ -= node.bytes;
      spare_.push_back(BlockOf(*block));
      block = pool.erase(block);
    }
  }
}

int32_t CachingAllocator::NewSegment(int64_t bytes, bool small) {
  const int64_t segment = SegmentFor(params_, bytes);
  if (capacity_ > 0 && reserved_ + segment > capacity_) {
    GiveBackSegments();
    if (reserved_ + segment > capacity_) {
      wanted_ = reserved_ + segment;
      return kNone;
    }
  }
  reserved_ += segment;
  most_reserved_ = std::max(most_reserved_, reserved_);
  Node node;
  node.bytes = segment;
  node.small = small;
  return NewNode(node);
}

int32_t CachingAllocator::Allocate(int64_t bytes) {
  bytes = RoundUp(std::max<int64_t>(bytes, 1), params_.block_bytes);
  const bool small = bytes <= params_.small_bytes;
  FreeBlocks& pool = Pool(small);
  const auto fit = LowerBound(&pool, FreeBlock(bytes, 0));
  int32_t block;
  if (fit != pool.end()) {
    block = BlockOf(*fit);
    pool.erase(fit);
  } else {
    block = NewSegment(bytes, small);
    if (block == kNone) return kNone;
  }
  nodes_[block].free = false;
  const int64_t rest = nodes_[block].bytes - bytes;
  const bool split =
      small ? rest >= std::max<int64_t>(params_.block_bytes, 1) : rest > params_.small_bytes;
  if (split) {
    Node node;
    node.bytes = rest;
    node.before = block;
    node.behind = nodes_[block].behind;
    node.free = true;
    node.small = small;
    const int32_t other = NewNode(node);
    if (node.behind != kNone) nodes_[node.behind].before = other;
    nodes_[block].behind = other;
    nodes_[block].bytes = bytes;
    Insert(other);
  }
  live_ += nodes_[block].bytes;
  return block;
}

void CachingAllocator::Absorb(int32_t block, int32_t neighbour, bool behind) {
  if (neighbour == kNone || !nodes_[neighbour].free) return;
  Node& node = nodes_[block];
  const Node& other = nodes_[neighbour];
  Remove(neighbour);
  node.bytes += other.bytes;
  if (behind) {
    node.behind = other.behind;
    if (node.behind != kNone) nodes_[node.behind].before = block;
  } else {
    node.before = other.before;
    if (node.before != kNone) nodes_[node.before].behind = block;
  }
  spare_.push_back(neighbour);
}

void CachingAllocator::Free(int32_t block) {
  PLANCAST_CHECK(!nodes_[block].free) << "freed twice";
  live_ -= nodes_[block].bytes;
  nodes_[block].free = true;
  Absorb(block, nodes_[block].before, /*behind=*/false);
  Absorb(block, nodes_[block].behind, /*behind=*/true);
  Insert(block);
}

// Halves without a branch: which way it goes cannot be foretold.
CachingAllocator::FreeBlocks::iterator CachingAllocator::LowerBound(FreeBlocks* pool, int128 free) {
  const int128* first = pool->data();
  for (size_t left = pool->size(); left > 0;) {
    const size_t half = (left + 1) / 2;
    first += first[half - 1] < free ? half : 0;
    left -= half;
  }
  return pool->begin() + (first - pool->data());
}

void CachingAllocator::Insert(int32_t block) {
  FreeBlocks& pool = Pool(nodes_[block].small);
  const int128 free = FreeBlock(nodes_[block].bytes, block);
  pool.insert(LowerBound(&pool, free), free);
}

void CachingAllocator::Remove(int32_t block) {
  FreeBlocks& pool = Pool(nodes_[block].small);
  pool.erase(LowerBound(&pool, FreeBlock(nodes_[block].bytes, block)));
}

}  // namespace plancast
