#ifndef PLANCAST_TESTS_EXECUTOR_BOTH_WAYS_CASES_H_
#define PLANCAST_TESTS_EXECUTOR_BOTH_WAYS_CASES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cluster/machine.h"
#include "executor/realise.h"
#include "executor/simulate/index/host.h"
#include "graph/execution/execution_graph.h"

namespace plancast {

// Kernels and communications that slow each other, with times worked out by hand:
// for the reference and for the simulator.
struct BothWaysCase {
  std::string name;
  ExecutionGraph graph;
  Machine::Spec machine;
  HostParams host;
  // What communications of more than one device are made of; `loads_nvlink` and
  // `loads_nic`: a byte on each per byte.
  int64_t rate_cap = 10'000'000'000, delay_ps = 0;
  bool loads_nvlink = false, loads_nic = false;
  double interference = 0, comm_interference = 0;
  std::vector<std::vector<int64_t>> ends;  // per rank, of its tasks in issue order; ps
};

std::vector<BothWaysCase> BothWaysCases();

// `of` outlives what it returns.
CommPricer::RealiseFn CommOf(const BothWaysCase& of, const Machine& machine);

}  // namespace plancast

#endif  // PLANCAST_TESTS_EXECUTOR_BOTH_WAYS_CASES_H_
