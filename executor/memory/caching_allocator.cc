#include "executor/memory/caching_allocator.h"

#include <algorithm>
#include <utility>

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
  for (Pool& pool : pools_) {
    for (auto block = pool.free.begin(); block != pool.free.end();) {
      const Node& node = nodes_[BlockOf(*block)];
      if (node.before != kNone || node.behind != kNone) {
        ++block;
        continue;
      }
      reserved_ -= node.bytes;
      spare_.push_back(BlockOf(*block));
      block = pool.free.erase(block);
    }
  }
}

void CachingAllocator::GiveBackPages() {
  for (Pool& pool : pools_) {
    for (const int128 free : pool.free) {
      Node& node = nodes_[BlockOf(free)];
      reserved_ -= node.bytes;
      node.mapped = false;
    }
    pool.free.clear();
  }
}

bool CachingAllocator::MakeRoom(int64_t bytes) {
  const bool early = when_ == GiveBack::kBeforeGrowth;
  const int64_t room = early ? std::max(most_reserved_, least_) : capacity_;
  if (reserved_ + bytes <= std::min(room, capacity_)) return true;
  if (when_ != GiveBack::kNever) {
    ++retries_;
    params_.expandable_segments ? GiveBackPages() : GiveBackSegments();
  }
  if (reserved_ + bytes <= capacity_) return true;
  wanted_ = reserved_ + bytes;
  return false;
}

int32_t CachingAllocator::NewSegment(int64_t bytes, bool small, int stream) {
  const int64_t segment = SegmentFor(params_, bytes);
  if (!MakeRoom(segment)) return kNone;
  reserved_ += segment;
  most_reserved_ = std::max(most_reserved_, reserved_);
  Node node;
  node.bytes = segment;
  node.small = small;
  node.stream = stream;
  return NewNode(node);
}

int32_t CachingAllocator::Expand(int64_t bytes, bool small, int stream) {
  Pool& pool = PoolOf(stream, small);
  const int64_t page = small ? params_.small_segment_bytes : params_.middle_segment_bytes;
  const auto is_free_end = [&] { return pool.last != kNone && nodes_[pool.last].free; };
  const auto missing = [&] {
    const bool has_pages = is_free_end() && nodes_[pool.last].mapped;
    return RoundUp(bytes - (has_pages ? nodes_[pool.last].bytes : 0), page);
  };
  // What is given back for it may be pages at the end.
  if (!MakeRoom(missing()) || !MakeRoom(missing())) return kNone;
  const int64_t more = missing();
  reserved_ += more;
  most_reserved_ = std::max(most_reserved_, reserved_);
  if (is_free_end()) {
    Node& end = nodes_[pool.last];
    if (end.mapped) Remove(pool.last);
    end.bytes = end.mapped ? end.bytes + more : more;
    end.mapped = true;
    return pool.last;
  }
  Node node;
  node.bytes = more;
  node.small = small;
  node.stream = stream;
  node.before = pool.last;
  const int32_t block = NewNode(node);
  if (node.before != kNone) nodes_[node.before].behind = block;
  return pool.last = block;
}

int32_t CachingAllocator::TakeFree(Pool& pool, int64_t bytes) {
  auto fit = LowerBound(&pool.free, FreeBlock(bytes, 0));
  if (fit == pool.free.end()) return kNone;
  if (BlockOf(*fit) == pool.last && std::next(fit) != pool.free.end()) ++fit;
  const int32_t block = BlockOf(*fit);
  pool.free.erase(fit);
  return block;
}

void CachingAllocator::Split(int32_t block, int64_t bytes) {
  const int64_t rest = nodes_[block].bytes - bytes;
  const bool any = nodes_[block].small || params_.expandable_segments;
  const bool split =
      any ? rest >= std::max<int64_t>(params_.block_bytes, 1) : rest > params_.small_bytes;
  if (!split) return;
  Node node;
  node.bytes = rest;
  node.before = block;
  node.behind = nodes_[block].behind;
  node.free = true;
  node.small = nodes_[block].small;
  node.stream = nodes_[block].stream;
  const int32_t other = NewNode(node);
  if (node.behind != kNone) nodes_[node.behind].before = other;
  nodes_[block].behind = other;
  nodes_[block].bytes = bytes;
  Pool& pool = PoolOf(node);
  if (pool.last == block) pool.last = other;
  Insert(other);
}

int32_t CachingAllocator::Allocate(int64_t bytes, int stream) {
  bytes = RoundUp(std::max<int64_t>(bytes, 1), params_.block_bytes);
  const bool small = bytes <= params_.small_bytes;
  int32_t block = TakeFree(PoolOf(stream, small), bytes);
  if (block == kNone) {
    block = params_.expandable_segments ? Expand(bytes, small, stream)
                                        : NewSegment(bytes, small, stream);
  }
  if (block == kNone) return kNone;
  nodes_[block].free = false;
  Split(block, bytes);
  live_ += nodes_[block].bytes;
  return block;
}

void CachingAllocator::Absorb(int32_t block, int32_t neighbour, bool behind) {
  if (neighbour == kNone || !nodes_[neighbour].free || !nodes_[neighbour].mapped) return;
  Node& node = nodes_[block];
  const Node& other = nodes_[neighbour];
  Remove(neighbour);
  Pool& pool = PoolOf(node);
  if (pool.last == neighbour) pool.last = block;
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
CachingAllocator::FreeBlocks::iterator CachingAllocator::LowerBound(FreeBlocks* blocks,
                                                                    int128 free) {
  const int128* first = blocks->data();
  for (size_t left = blocks->size(); left > 0;) {
    const size_t half = (left + 1) / 2;
    first += first[half - 1] < free ? half : 0;
    left -= half;
  }
  return blocks->begin() + (first - blocks->data());
}

void CachingAllocator::Insert(int32_t block) {
  FreeBlocks& blocks = PoolOf(nodes_[block]).free;
  const int128 free = FreeBlock(nodes_[block].bytes, block);
  blocks.insert(LowerBound(&blocks, free), free);
}

void CachingAllocator::Remove(int32_t block) {
  FreeBlocks& blocks = PoolOf(nodes_[block]).free;
  blocks.erase(LowerBound(&blocks, FreeBlock(nodes_[block].bytes, block)));
}

}  // namespace plancast
