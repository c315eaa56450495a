#ifndef PLANCAST_EXECUTOR_SIMULATE_SIMULATE_H_
#define PLANCAST_EXECUTOR_SIMULATE_SIMULATE_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/link_sharing.h"
#include "executor/comm_uses.h"
#include "executor/realise.h"
#include "executor/sim_graph.h"
#include "executor/simulate/index/host.h"
#include "executor/simulate/index/task_index.h"
#include "executor/simulate/kernel_jitter.h"
#include "executor/simulate/trace.h"
#include "graph/execution/execution_graph.h"

namespace plancast {

// Everything a simulation reads.
struct SimInput {
  const ExecutionGraph& graph;
  const CommUses& uses;
  const SimGraph& sim;
  const TaskIndex& index;
  const KernelPrices& prices;
  const std::vector<RealisedCollective>& realised;
  std::vector<HostParams> hosts;  // per program
  // The time that a kernel takes while its device communicates, against alone:
  // fixed point, 2^-20. KernelPrices::slowdown_q20 goes before it.
  int64_t slowdown_q20 = int64_t{1} << 20;
  // Run layers of blocks at once and jump over periods of a steady state; without,
  // every chain of kernels and every communication is an event.
  bool shortcuts = true;
  // If set, kernels take what it says instead of their price.
  const KernelJitter* jitter = nullptr;
  LinkSharing link_sharing = LinkSharing::kMaxMin;
  // The time that the transfer of a communication takes while a kernel runs on any
  // device of any of its members, against alone: fixed point, 2^-20, at least 1.
  int64_t comm_slowdown_q20 = int64_t{1} << 20;
  // Instead, per kind of device: that of the slowest member. Empty: the same for all.
  std::vector<int64_t> comm_slowdown_of_kind_q20 = {};

  int32_t ProgramOf(int32_t entity) const { return sim.entities[entity].program; }
  const Block& BlockAt(int32_t entity, int32_t instance) const {
    return graph.blocks[index.InstanceOf(ProgramOf(entity), instance).block];
  }
  int64_t SlowdownOf(int32_t entity, int32_t kernel) const {
    return prices.slowdown_q20.empty()
               ? slowdown_q20
               : prices.slowdown_q20[sim.entities[entity].kind * prices.num_kernels + kernel];
  }
  int64_t CommSlowdownOf(const SimGraph::Group& group) const {
    if (comm_slowdown_of_kind_q20.empty()) return comm_slowdown_q20;
    int64_t slowest = 0;
    for (const int32_t member : sim.MembersOf(group)) {
      slowest = std::max(slowest, comm_slowdown_of_kind_q20[sim.entities[member].kind]);
    }
    return slowest;
  }
  const HostParams& HostOf(int32_t entity) const { return hosts[ProgramOf(entity)]; }
  // The time that a kernel of an entity takes alone.
  int64_t DurationOf(int32_t entity, const TaskRef& ref) const {
    const int64_t nominal = prices.Duration(sim.entities[entity].price_row,
                                            BlockAt(entity, ref.instance).spec[ref.task]);
    if (jitter == nullptr) return nominal;
    return jitter->DurationPs(entity, index.IssueOf(ProgramOf(entity), ref), nominal);
  }
  // The group that an entity meets in a communication.
  int32_t GroupOf(int32_t entity, const TaskRef& ref) const {
    const Block& block = BlockAt(entity, ref.instance);
    const int32_t use =
        ref.task == block.rendezvous_task
            ? uses.of_rendezvous[index.InstanceOf(ProgramOf(entity), ref.instance).rendezvous]
            : uses.OfComm(ProgramOf(entity), block.spec[ref.task]);
    return sim.GroupOf(use, entity);
  }
};

// Runs the tasks: streams in order, dependencies, communications when all
// members have come to them. Errors: a deadlock, with its cycle; a graph too
// large for TaskIndex.
// `memory`: a trace that is done with, whose columns are used again.
absl::StatusOr<SimTrace> Simulate(const SimInput& input, SimTrace memory = {});

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_SIMULATE_SIMULATE_H_
