#ifndef PLANCAST_BENCHMARKS_MADE_UP_H_
#define PLANCAST_BENCHMARKS_MADE_UP_H_

#include <cstdint>

#include "cluster/machine.h"
#include "cost_models/kernel_cost.h"
#include "graph/execution/execution_graph.h"

namespace plancast {

// Execution graphs that no compiler wrote, and their flat simulation.

// 1F1B over `stages`, 8 layers each of 12 kernels and 4 tensor-parallel
// collectives in forward and twice the kernels in backward, gradients reduced
// over dp at the end.
ExecutionGraph Pipeline(int64_t stages, int64_t replicas, int micro_batches);

// One program of `nodes` tasks on every rank: a kernel, an all-reduce of all
// ranks behind it, and so on.
ExecutionGraph Alternating(int64_t ranks, int nodes);

// Hosts of eight devices; one of them slow if there is to be a straggler.
Machine Cluster(int64_t gpus, bool straggler);

// Realises, unfolds and simulates every device by itself; the number of tasks.
int64_t SimulateFlat(const ExecutionGraph& graph, const Machine& machine,
                     const KernelCostModel& costs);

}  // namespace plancast

#endif  // PLANCAST_BENCHMARKS_MADE_UP_H_
