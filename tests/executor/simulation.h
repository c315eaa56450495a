#ifndef PLANCAST_TESTS_EXECUTOR_SIMULATION_H_
#define PLANCAST_TESTS_EXECUTOR_SIMULATION_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/machine.h"
#include "executor/attribution/causes.h"
#include "executor/comm_uses.h"
#include "executor/realise.h"
#include "executor/sim_graph.h"
#include "executor/simulate/index/task_index.h"
#include "executor/simulate/simulate.h"
#include "graph/execution/execution_graph.h"

namespace plancast {

// A simulation with prices of the test's own: UnitCost for kernels, and this
// for communications.
//
// UnitComm: no delay, the cap of the innermost link that holds the group, and a
// load of one byte per byte on NVLink, and on the NIC if the group leaves its
// host.
CommPricer::RealiseFn UnitComm(const Machine& machine);

enum class Form { kFolded, kRefined, kFlat };

// All steps of an execution, kept for inspection.
class Simulation {
 public:
  static absl::StatusOr<std::unique_ptr<Simulation>> Run(
      const ExecutionGraph& graph, const Machine& machine, CommPricer::RealiseFn realise,
      Form form = Form::kFolded, HostParams host = {}, double interference = 0,
      bool shortcuts = true, LinkSharing link_sharing = LinkSharing::kMaxMin,
      double comm_interference = 0);

  const SimInput& input() const { return *input_; }
  const SimGraph& sim() const { return sim_; }
  const SimTrace& trace() const { return trace_; }
  // Times and causes of an entity's tasks in issue order.
  const UnfoldedTrace& unfolded(int entity) const { return unfolded_[entity]; }
  // Seconds, of a task in issue order.
  double Start(int entity, int issue) const { return Seconds(unfolded_[entity].start[issue]); }
  double End(int entity, int issue) const { return Seconds(unfolded_[entity].end[issue]); }
  double makespan() const { return static_cast<double>(trace_.makespan_ps) * 1e-12; }

 private:
  Simulation(const ExecutionGraph& graph, const Machine& machine)
      : graph_(graph), machine_(machine) {}
  static double Seconds(int64_t ps) { return static_cast<double>(ps) * 1e-12; }

  ExecutionGraph graph_;
  Machine machine_;
  CommUses uses_;
  KernelPrices prices_;
  std::unique_ptr<CommPricer> comms_;
  SimGraph sim_;
  std::unique_ptr<TaskIndex> index_;
  std::unique_ptr<SimInput> input_;
  SimTrace trace_;
  std::vector<UnfoldedTrace> unfolded_;
};

}  // namespace plancast

#endif  // PLANCAST_TESTS_EXECUTOR_SIMULATION_H_
