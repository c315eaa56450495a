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

BlockProfile ProfileOf(const Block& block, const AllocatorParams& allocator) {
  BlockProfile profile;
  int32_t events = 0;
  for (const MemoryEvent& event : block.memory) {
    ++events;
    profile.net.of[static_cast<int>(event.kind)] += event.delta;
    const int64_t high = profile.live.high;
    profile.live.Add(event.delta);
    if (profile.live.high > high) {
      profile.at_high = profile.net;
      profile.high_events = events;
    }
    const PoolBytes pooled = PooledBytes(allocator, event.delta);
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
