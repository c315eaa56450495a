#include "executor/memory/block_profile.h"

#include <algorithm>

namespace plancast {

int64_t KindBytes::total() const {
  int64_t sum = 0;
  for (int64_t bytes : of) sum += bytes;
  return sum;
}

void KindBytes::Add(const KindBytes& other, int64_t times) {
  for (int kind = 0; kind < kNumMemoryKinds; ++kind) of[kind] += other.of[kind] * times;
}

namespace {

// What the events of a block take of the pools: a free gives back what its allocations
// took, even where several tensors of one name go as one.
class PooledEvents {
 public:
  PooledEvents(const Block& block, const AllocatorParams& allocator)
      : allocator_(allocator), sizes_(block.tensors.size()) {}

  PoolBytes Of(const MemoryEvent& event) {
    std::vector<int64_t>& sizes = sizes_[event.tensor];
    if (event.delta >= 0) {
      sizes.push_back(event.delta);
      return PooledBytes(allocator_, event.delta);
    }
    const auto whole = std::find(sizes.begin(), sizes.end(), -event.delta);
    if (whole != sizes.end()) {
      sizes.erase(whole);
      return PooledBytes(allocator_, event.delta);
    }
    PoolBytes pooled;
    int64_t left = -event.delta;
    while (!sizes.empty() && sizes.back() <= left) {
      const PoolBytes part = PooledBytes(allocator_, -sizes.back());
      pooled.small += part.small;
      pooled.large += part.large;
      left -= sizes.back();
      sizes.pop_back();
    }
    if (left == 0) return pooled;
    if (!sizes.empty()) {  // the rest is part of a larger one
      const PoolBytes was = PooledBytes(allocator_, sizes.back());
      sizes.back() -= left;
      const PoolBytes is = PooledBytes(allocator_, sizes.back());
      return {pooled.small + is.small - was.small, pooled.large + is.large - was.large};
    }
    const PoolBytes rest = PooledBytes(allocator_, -left);
    return {pooled.small + rest.small, pooled.large + rest.large};
  }

 private:
  const AllocatorParams& allocator_;
  std::vector<std::vector<int64_t>> sizes_;  // per tensor: alive, made here
};

}  // namespace

BlockProfile ProfileOf(const Block& block, const AllocatorParams& allocator) {
  BlockProfile profile;
  profile.host = block.host_bytes;
  PooledEvents pooled_events(block, allocator);
  int32_t events = 0;
  for (const MemoryEvent& event : block.memory) {
    ++events;
    profile.net.of[static_cast<int>(event.kind)] += event.delta;
    const int64_t high = profile.live.high;
    profile.live.Add(event.delta);
    profile.largest = std::max(profile.largest, event.delta);
    if (profile.live.high > high) {
      profile.at_high = profile.net;
      profile.high_events = events;
    }
    const PoolBytes pooled = pooled_events.Of(event);
    profile.small_pool.Add(pooled.small);
    profile.large_pool.Add(pooled.large);
  }
  for (int32_t t = 0; t < block.size(); ++t) {
    if (block.kind[t] != TaskKind::kComm) continue;
    const auto known = std::find(profile.comms.begin(), profile.comms.end(), block.spec[t]);
    if (known == profile.comms.end()) profile.comms.push_back(block.spec[t]);
  }
  return profile;
}

std::vector<BlockProfile> ProfileBlocks(const ExecutionGraph& graph,
                                        const AllocatorParams& allocator) {
  std::vector<BlockProfile> profiles;
  ProfileNewBlocks(graph, allocator, &profiles);
  return profiles;
}

void ProfileNewBlocks(const ExecutionGraph& graph, const AllocatorParams& allocator,
                      std::vector<BlockProfile>* profiles) {
  profiles->reserve(graph.blocks.size());
  for (size_t b = profiles->size(); b < graph.blocks.size(); ++b) {
    profiles->push_back(ProfileOf(graph.blocks[b], allocator));
  }
}

}  // namespace plancast
