#include "executor/memory.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace plancast {
namespace {

struct Live {
  int64_t bytes[kNumMemoryKinds] = {};

  int64_t total() const {
    int64_t sum = 0;
    for (int64_t b : bytes) sum += b;
    return sum;
  }
  void Add(const Live& other, int64_t times = 1) {
    for (int k = 0; k < kNumMemoryKinds; ++k) bytes[k] += other.bytes[k] * times;
  }
};

// One copy of a block: what it leaves behind, and the most that it adds on the
// way there.
struct BlockMemory {
  bool replayed = false;
  Live net, peak;
};

void Replay(const Block& block, BlockMemory& memory) {
  memory.replayed = true;
  for (const MemoryEvent& event : block.memory) {
    memory.net.bytes[static_cast<int>(event.kind)] += event.delta;
    if (memory.net.total() > memory.peak.total()) memory.peak = memory.net;
  }
}

}  // namespace

ClassMemory ReplayProgram(const ExecutionGraph& graph, int32_t program,
                          const RuntimeParams& runtime) {
  std::vector<BlockMemory> blocks(graph.blocks.size());
  Live now, peak;
  std::copy_n(graph.programs[program].static_bytes, kNumMemoryKinds, now.bytes);
  peak = now;
  for (const Instance& instance : graph.programs[program].instances) {
    BlockMemory& block = blocks[instance.block];
    if (!block.replayed) Replay(graph.blocks[instance.block], block);
    // Copies that leave something behind peak in the last, others in the first.
    Live highest = now;
    if (block.net.total() > 0) highest.Add(block.net, instance.layer_count - 1);
    highest.Add(block.peak);
    if (highest.total() > peak.total()) peak = highest;
    now.Add(block.net, instance.layer_count);
  }
  ClassMemory result;
  std::copy_n(peak.bytes, kNumMemoryKinds, result.bytes);
  result.allocated = peak.total();
  result.reserved = static_cast<int64_t>(
      std::ceil(static_cast<double>(result.allocated) * (1.0 + runtime.allocator_rounding)));
  result.device = result.reserved + static_cast<int64_t>(std::ceil(runtime.context_bytes));
  return result;
}

std::vector<ClassMemory> ReplayMemory(const ExecutionGraph& graph, const RuntimeParams& runtime) {
  std::vector<ClassMemory> result;
  for (size_t p = 0; p < graph.programs.size(); ++p) {
    result.push_back(ReplayProgram(graph, static_cast<int32_t>(p), runtime));
  }
  return result;
}

}  // namespace plancast
