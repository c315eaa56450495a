#ifndef PLANCAST_TESTS_EXECUTOR_GRAPH_BUILDER_H_
#define PLANCAST_TESTS_EXECUTOR_GRAPH_BUILDER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cluster/machine.h"
#include "cost_models/kernel_cost.h"
#include "graph/execution/execution_graph.h"

namespace plancast {

// A device called `unit` and a machine of it: full-duplex NVLink at 100 GB/s a
// device, one NIC for `gpus_per_nic` devices at 10 GB/s.
Machine::Spec UnitMachine(int64_t hosts, int64_t gpus_per_host, int64_t gpus_per_nic = 1);

// A kernel that takes `flops` seconds: what its FLOPs say.
class UnitCost : public KernelCostModel {
 public:
  std::optional<KernelCost> Estimate(const KernelSpec& kernel,
                                     const DeviceType& device) const override;
};

// Writes execution graphs by hand.
//
//   GraphBuilder b({{"pp", 2}, {"dp", 2}});
//   b.Block("F").Kernel(3.0).Comm(CollectiveKind::kAllReduce, 1000, {1});
//   b.Program("stage 0", {{0, 0}}).Run("F");
class GraphBuilder {
 public:
  explicit GraphBuilder(std::vector<MeshAxis> axes);

  // Begins a block; tasks go into the block begun last.
  GraphBuilder& Block(const std::string& name, int in_ports = 0);
  // `deps`: tasks (>= 0) or in-ports (~port). Each returns the builder; the task
  // just added is last_task().
  GraphBuilder& Kernel(double seconds, std::vector<int> deps = {},
                       Purpose purpose = Purpose::kForward,
                       StreamKind stream = StreamKind::kCompute);
  GraphBuilder& Comm(CollectiveKind kind, int64_t bytes, std::vector<int> axes,
                     std::vector<int> deps = {}, Purpose purpose = Purpose::kTp,
                     StreamKind stream = StreamKind::kModelComm);
  // The task added last meets other programs.
  GraphBuilder& Meets();
  GraphBuilder& HostSync();
  GraphBuilder& Memory(bool after, int64_t delta, MemoryKind kind = MemoryKind::kActivations,
                       const std::string& tensor = "x");
  GraphBuilder& OutPort(int task);
  int last_task() const { return graph_.blocks.back().size() - 1; }

  GraphBuilder& Program(const std::string& name, std::vector<std::pair<int, int64_t>> where = {});
  // Runs a block in the program begun last. Joins: (from, from_port, to_port).
  GraphBuilder& Run(const std::string& block, std::vector<Join> joins = {}, int layers = 1,
                    int micro_batch = 0, int rendezvous = -1);
  // A rendezvous number to give to Run() of each party.
  int Rendezvous();
  int last_instance() const {
    return static_cast<int>(graph_.programs.back().instances.size()) - 1;
  }

  ExecutionGraph Build() const { return graph_; }

 private:
  ExecutionGraph graph_;
};

}  // namespace plancast

#endif  // PLANCAST_TESTS_EXECUTOR_GRAPH_BUILDER_H_
