#ifndef PLANCAST_PLANNER_FORECAST_FLOPS_H_
#define PLANCAST_PLANNER_FORECAST_FLOPS_H_

#include "graph/execution/execution_graph.h"
#include "graph/model/model_graph.h"

namespace plancast {

// Floating-point operations of the matrix products of one op forward, full attention squares.
double ForwardFlops(const ModelGraph& bound, const OpNode& op);

// Those of a module, for routed ones as many as the tokens that visit experts need.
double ForwardFlops(const ModelGraph& bound, const Body& body);

// Floating-point operations of the matrix products of one sample forward, full attention
// squares, times three for forward and backward (no recomputation). Of products with frozen
// weights times two, of those that no gradient comes to times one.
double ModelFlopsPerSample(const ModelGraph& unbound);

// Whether anything is as large as the batch; else a micro-batch is one run of a program.
bool HasSamples(const ModelGraph& graph);

// Those of an iteration that the plan really executes, on all devices.
double HardwareFlops(const ExecutionGraph& graph);

}  // namespace plancast

#endif  // PLANCAST_PLANNER_FORECAST_FLOPS_H_
