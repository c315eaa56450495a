#ifndef PLANCAST_TESTS_EXECUTOR_RANDOM_PLAN_H_
#define PLANCAST_TESTS_EXECUTOR_RANDOM_PLAN_H_

#include <cstdint>
#include <random>

#include "cluster/machine.h"
#include "executor/realise.h"
#include "executor/simulate/simulate.h"
#include "graph/execution/execution_graph.h"

namespace plancast {

// A small execution graph on a small machine, drawn from a seed: pipelines with
// uneven stages, tensor and gradient collectives that share NICs, meshes that
// divide unevenly onto hosts, stragglers, slow links, ties.
struct RandomPlan {
  ExecutionGraph graph;
  Machine::Spec machine;
  HostParams host;
  bool made_up_comms = false;  // prices of the test instead of collectives::Realise
  // Slow-down of kernels alongside communications and of these alongside kernels; 0.1 is
  // 10 % longer. Often none, sometimes tiny.
  double interference = 0, comm_interference = 0;
};

// Whether plans draw a slow-down of communications; without, it is 0.
inline constexpr bool kDrawsCommInterference = true;

RandomPlan DrawPlan(uint32_t seed);

// The same with up to so many micro-batches, of which small numbers are as likely
// as large ones, on at most eight devices; at times, the host waits at the end only.
RandomPlan DrawLongPlan(uint32_t seed, int micro_batches);

// Prices that depend on a group's shape on the machine alone, with loads that
// differ from link to link.
CommPricer::RealiseFn MadeUpComm(const Machine& machine, uint32_t seed);

}  // namespace plancast

#endif  // PLANCAST_TESTS_EXECUTOR_RANDOM_PLAN_H_
