#ifndef PLANCAST_EXECUTOR_MEMORY_BLOCK_PROFILE_H_
#define PLANCAST_EXECUTOR_MEMORY_BLOCK_PROFILE_H_

#include <cstdint>
#include <vector>

#include "executor/memory/allocator.h"
#include "graph/execution/execution_graph.h"
#include "graph/execution/memory_overhead.h"

namespace plancast {

// Live bytes by kind.
struct KindBytes {
  int64_t of[kNumMemoryKinds] = {};

  int64_t total() const;
  void Add(const KindBytes& other, int64_t times = 1);
};

// A sum over events in issue order: what they leave behind, and the most that
// they add on the way there (at least 0).
struct Watermark {
  int64_t net = 0, high = 0;

  void Add(int64_t delta) {
    net += delta;
    if (net > high) high = net;
  }
  // The most that `layers` in a row add: layers that leave something behind are
  // highest in the last, others in the first.
  int64_t Highest(int64_t layers) const { return (net > 0 ? net * (layers - 1) : 0) + high; }
};

// The memory of one layer of a block. Wherever the block runs, it only adds to
// what is there, so this is all that a replay needs to know of it.
struct BlockProfile {
  KindBytes net, at_high;
  Watermark live, small_pool, large_pool;
  int64_t host = 0;            // Block::host_bytes
  int64_t largest = 0;         // allocation, bytes
  int32_t high_events = 0;     // how many of Block::memory lead to the highest point
  std::vector<int32_t> comms;  // distinct, into ExecutionGraph::comms
};

BlockProfile ProfileOf(const Block& block, const AllocatorParams& allocator);
// Of every block of the graph.
std::vector<BlockProfile> ProfileBlocks(const ExecutionGraph& graph,
                                        const AllocatorParams& allocator);
// Of the blocks that `profiles` has not yet: a graph that grows is profiled block
// by block.
void ProfileNewBlocks(const ExecutionGraph& graph, const AllocatorParams& allocator,
                      std::vector<BlockProfile>* profiles);

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_MEMORY_BLOCK_PROFILE_H_
