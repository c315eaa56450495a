#ifndef PLANCAST_EXECUTOR_JOBS_PLACED_JOB_H_
#define PLANCAST_EXECUTOR_JOBS_PLACED_JOB_H_

#include <cstdint>
#include <string>
#include <vector>

#include "executor/executor.h"
#include "graph/execution/execution_graph.h"

namespace plancast {

// One of several jobs on a machine.
struct PlacedJob {
  std::string name;
  const ExecutionGraph* graph = nullptr;  // not owned
  // The device of the machine on which each device of the graph's mesh is, in the
  // order of the mesh; each once, in any order.
  std::vector<int64_t> devices = {};
  int64_t arrival_ps = 0;  // begins no earlier
  RuntimeParams runtime = {};
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_JOBS_PLACED_JOB_H_
