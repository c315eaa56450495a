#ifndef PLANCAST_EXECUTOR_FOLD_BLOCKS_H_
#define PLANCAST_EXECUTOR_FOLD_BLOCKS_H_

#include <cstdint>
#include <vector>

#include "cluster/machine.h"
#include "graph/execution/execution_graph.h"

namespace plancast {

// Whether any task is between a device and its host's memory. If not, what lies there
// tells no devices apart, for nothing else loads such links.
bool UsesHostMemory(const ExecutionGraph& graph);
// Whether devices share links of this class for their host's memory alone.
bool IsForHostMemory(const LinkClass& link);

// In all below, `host_memory`: whether links for the host's memory count.

// The numbers of consecutive devices that the machine's levels and links hold:
// hosts, domains, pods, shared links.
std::vector<int64_t> BlocksOf(const Machine& machine, bool host_memory = true);

// Groups shifted by this many devices lie alike on the machine.
int64_t PeriodOf(const Machine& machine, bool host_memory = true);

// Whether every link serves a whole number of devices of a host.
bool LinksServeWholeDevices(const Machine& machine, bool host_memory = true);

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_FOLD_BLOCKS_H_
