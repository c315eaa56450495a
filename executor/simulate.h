#ifndef PLANCAST_EXECUTOR_SIMULATE_H_
#define PLANCAST_EXECUTOR_SIMULATE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/link_sharing.h"
#include "executor/comm_uses.h"
#include "executor/host.h"
#include "executor/kernel_jitter.h"
#include "executor/realise.h"
#include "executor/sim_graph.h"
#include "executor/task_table.h"
#include "graph/execution_graph.h"

namespace plancast {

// Everything a simulation reads.
struct SimInput {
  const ExecutionGraph& graph;
  const CommUses& uses;
  const SimGraph& sim;
  const std::vector<TaskTable>& tables;  // per program
  const KernelPrices& prices;
  const std::vector<RealisedCollective>& realised;
  std::vector<HostParams> hosts;  // per program
  // The time that a kernel takes while its device communicates, against alone:
  // fixed point, 2^-20. KernelPrices::slowdown_q20 goes before it.
  int64_t slowdown_q20 = int64_t{1} << 20;
  // Find ends of kernels ahead of time where communications allow it; without,
  // every kernel that may be slowed down is an event.
  bool shortcuts = true;
  // If set, kernels take what it says instead of their price.
  const KernelJitter* jitter = nullptr;
  LinkSharing link_sharing = LinkSharing::kMaxMin;

  int64_t SlowdownOf(int32_t kernel) const {
    return prices.slowdown_q20.empty() ? slowdown_q20 : prices.slowdown_q20[kernel];
  }
  const HostParams& HostOf(int32_t entity) const { return hosts[sim.entities[entity].program]; }
  // The time that a kernel of an entity takes alone; `task` of its table.
  int64_t DurationOf(int32_t entity, const TaskTable& table, int32_t task) const {
    const int64_t nominal = prices.Duration(sim.entities[entity].price_row, table.spec[task]);
    return jitter == nullptr ? nominal : jitter->DurationPs(entity, table.issue[task], nominal);
  }
};

// When every task of every entity ran, and what it last waited for.
struct SimTrace {
  // What a task started on: a task of the same entity (>= 0), nothing but the
  // beginning of the iteration, its launch, or the entity of a peer that came
  // last to a communication.
  static constexpr int32_t kBeginning = -1;
  static constexpr int32_t kHost = -2;
  static constexpr int32_t PeerCause(int32_t entity) { return -3 - entity; }
  static constexpr int32_t PeerOf(int32_t cause) { return -3 - cause; }

  std::vector<int64_t> begin;  // per entity: where its tasks start in the columns
  std::vector<int64_t> start, end;
  std::vector<int32_t> cause;
  int64_t makespan_ps = 0;
};

// Runs the tasks: streams in order, dependencies, communications when all
// members have come to them. Errors: a deadlock, with its cycle.
// `memory`: a trace that is done with, whose columns are used again.
absl::StatusOr<SimTrace> Simulate(const SimInput& input, SimTrace memory = {});

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_SIMULATE_H_
