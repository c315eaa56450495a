#ifndef PLANCAST_GRAPH_EXECUTION_PROGRAM_DEVICES_H_
#define PLANCAST_GRAPH_EXECUTION_PROGRAM_DEVICES_H_

#include <cstdint>

#include "cluster/device_mesh.h"
#include "graph/execution/execution_graph.h"
#include "graph/execution/memory_overhead.h"

namespace plancast {

// The lowest device of [begin, end) that runs the program, or -1. Takes time in the
// coordinates that tell programs apart, not in devices.
int64_t FirstDeviceIn(const DeviceMesh& mesh, const Program& program, int64_t begin, int64_t end);

// The same of a graph, whose stages may have meshes of their own.
int64_t FirstDeviceIn(const ExecutionGraph& graph, const Program& program, int64_t begin,
                      int64_t end);

// The least that any device that runs the program has (MemoryOverhead::capacities).
int64_t CapacityOf(const MemoryOverhead& overhead, const DeviceMesh& mesh, const Program& program);
int64_t CapacityOf(const MemoryOverhead& overhead, const ExecutionGraph& graph,
                   const Program& program);

}  // namespace plancast

#endif  // PLANCAST_GRAPH_EXECUTION_PROGRAM_DEVICES_H_
