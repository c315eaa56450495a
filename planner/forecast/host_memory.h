#ifndef PLANCAST_PLANNER_FORECAST_HOST_MEMORY_H_
#define PLANCAST_PLANNER_FORECAST_HOST_MEMORY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cluster/machine.h"
#include "executor/executor.h"
#include "graph/execution/execution_graph.h"

namespace plancast {

// Whether the memory of every host holds what its devices keep there, each at its peak.
// `memory`: per program. Errors: the fullest host has too little (kFailedPrecondition);
// what is unknown of hosts is not checked.
absl::Status CheckHostMemory(const ExecutionGraph& graph, const Machine& machine,
                             const std::vector<ClassMemory>& memory);

// What a plan keeps on hosts of which nobody said how much memory they have: a line for each kind
// of host. Empty where all is known, and checked.
std::vector<std::string> UnknownHostMemory(const ExecutionGraph& graph, const Machine& machine,
                                           const std::vector<ClassMemory>& memory);

}  // namespace plancast

#endif  // PLANCAST_PLANNER_FORECAST_HOST_MEMORY_H_
