#ifndef PLANCAST_EXECUTOR_MEMORY_REASONS_H_
#define PLANCAST_EXECUTOR_MEMORY_REASONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "executor/memory/replay.h"
#include "graph/execution/execution_graph.h"

namespace plancast {

// Equal tensors that are alive at the peak: one of a module, in all its layers
// and micro-batches.
struct LiveTensor {
  std::string name;  // `layers.*.mlp.fc1.y`, `parameters`
  MemoryKind kind = MemoryKind::kActivations;
  int64_t bytes_each = 0;
  int64_t copies = 0;
  std::vector<int32_t> micro_batches;  // whose, ascending; empty: of no one (static memory)

  int64_t bytes() const { return bytes_each * copies; }
};

// Why a program's memory peaks where it does.
struct PeakReasons {
  int64_t allocated = 0;
  // Where: the task that was issued last, of which block, layer and micro-batch;
  // empty and -1 if the program never allocates.
  std::string block, task;
  int32_t layer = -1, micro_batch = -1;
  std::vector<LiveTensor> tensors;  // largest first; their bytes sum to `allocated`
};

// Replays the program with names up to its peak: one step an instance, not a
// layer. Tensors that a module hands to the next go by the name of the one that
// holds them; `(between modules)` while none does.
PeakReasons ExplainPeak(const ExecutionGraph& graph, int32_t program);

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_MEMORY_REASONS_H_
