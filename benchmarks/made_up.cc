#include "benchmarks/made_up.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "executor/comm_uses.h"
#include "executor/fold/fold.h"
#include "executor/realise.h"
#include "executor/simulate/index/task_index.h"
#include "executor/simulate/simulate.h"
#include "tests/executor/graph_builder.h"

namespace plancast {

ExecutionGraph Pipeline(int64_t stages, int64_t replicas, int micro_batches) {
  GraphBuilder b({{"pp", stages}, {"dp", replicas}, {"tp", 8}});
  for (const bool backward : {false, true}) {
    b.Block(backward ? "B" : "F", 1);
    b.Kernel(1e-4, {~0});
    for (int i = 1; i < (backward ? 24 : 12); ++i) {
      b.Kernel(1e-4, {b.last_task()});
      if (i % 3 != 0) continue;
      b.Comm(CollectiveKind::kAllReduce, 50'000'000, {2}, {b.last_task()});
    }
    b.OutPort(b.last_task());
  }
  const auto transfer = [&](const std::string& name, StreamKind stream) {
    b.Block(name, 1).Comm(CollectiveKind::kSendRecv, 10'000'000, {0}, {~0}, Purpose::kPp, stream);
    b.Meets().OutPort(0);
  };
  transfer("send.F", StreamKind::kSendNext);
  transfer("recv.F", StreamKind::kRecvPrev);
  transfer("send.B", StreamKind::kSendPrev);
  transfer("recv.B", StreamKind::kRecvNext);
  b.Block("optimizer", 1)
      .Comm(CollectiveKind::kReduceScatter, 1'000'000'000, {1}, {~0}, Purpose::kDp,
            StreamKind::kGradComm)
      .Kernel(1e-3, {0}, Purpose::kOptimizer);
  std::vector<std::vector<int>> forward(stages), backward(stages);
  for (int64_t s = 0; s + 1 < stages; ++s) {
    for (int m = 0; m < micro_batches; ++m) {
      forward[s].push_back(b.Rendezvous());
      backward[s].push_back(b.Rendezvous());
    }
  }
  for (int64_t s = 0; s < stages; ++s) {
    b.Program("stage " + std::to_string(s), {{0, s}});
    std::vector<int> done(micro_batches);
    const auto run_forward = [&](int m) {
      std::vector<Join> joins;
      if (s > 0) {
        b.Run("recv.F", {}, 1, m, forward[s - 1][m]);
        joins.push_back({b.last_instance(), 0, 0});
      }
      b.Run("F", joins, 8, m);
      done[m] = b.last_instance();
      if (s + 1 < stages) b.Run("send.F", {{done[m], 0, 0}}, 1, m, forward[s][m]);
    };
    const auto run_backward = [&](int m) {
      std::vector<Join> joins = {{done[m], 0, 0}};
      if (s + 1 < stages) {
        b.Run("recv.B", {}, 1, m, backward[s][m]);
        joins.push_back({b.last_instance(), 0, 0});
      }
      b.Run("B", joins, 8, m);
      const int last = b.last_instance();
      if (s > 0) b.Run("send.B", {{last, 0, 0}}, 1, m, backward[s - 1][m]);
    };
    const int warm_up = std::min<int>(micro_batches, static_cast<int>(stages - s));
    for (int m = 0; m < warm_up; ++m) run_forward(m);
    for (int m = 0; m < micro_batches; ++m) {
      run_backward(m);
      if (m + warm_up < micro_batches) run_forward(m + warm_up);
    }
    b.Run("optimizer", {{b.last_instance(), -1, 0}});
  }
  return b.Build();
}

Machine Cluster(int64_t gpus, bool straggler) {
  Machine::Spec spec = UnitMachine((gpus + 7) / 8, 8);
  spec.nic_bytes_per_s = 5e10;
  if (straggler) spec.device_overrides.push_back({17, 0.8});
  absl::StatusOr<Machine> machine = Machine::Create(spec);
  PLANCAST_CHECK_OK(machine);
  return *machine;
}

ExecutionGraph Alternating(int64_t ranks, int nodes) {
  GraphBuilder b({{"dp", ranks}});
  b.Block("step", 1);
  b.Kernel(1e-4, {~0}).Comm(CollectiveKind::kAllReduce, 1'000'000, {0}, {0}).OutPort(1);
  b.Program("all").Run("step", {}, nodes / 2);
  return b.Build();
}

int64_t SimulateFlat(const ExecutionGraph& graph, const Machine& machine,
                     const KernelCostModel& costs) {
  const absl::StatusOr<CommUses> uses = FindCommUses(graph);
  PLANCAST_CHECK_OK(uses);
  absl::StatusOr<KernelPrices> prices = PriceKernels(graph, machine, costs);
  PLANCAST_CHECK_OK(prices);
  CommPricer comms(graph, machine, RuntimeParams());
  const absl::StatusOr<SimGraph> sim =
      FoldByRefinement({graph, *uses, machine, comms, *prices}, /*discrete=*/true);
  PLANCAST_CHECK_OK(sim);
  const absl::StatusOr<TaskIndex> index = TaskIndex::Create(graph);
  PLANCAST_CHECK_OK(index);
  const auto trace = Simulate({graph, *uses, *sim, *index, *prices, comms.realised(),
                               std::vector<HostParams>(graph.programs.size())});
  PLANCAST_CHECK_OK(trace);
  int64_t tasks = 0;
  for (const SimGraph::Entity& entity : sim->entities) {
    tasks += index->program(entity.program).tasks;
  }
  return tasks;
}

}  // namespace plancast
