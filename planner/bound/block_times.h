#ifndef PLANCAST_PLANNER_BOUND_BLOCK_TIMES_H_
#define PLANCAST_PLANNER_BOUND_BLOCK_TIMES_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/node_hash_map.h"
#include "cluster/device_mesh.h"
#include "cluster/machine.h"
#include "compiler/lower/lower_block.h"
#include "cost_models/kernel_cost.h"
#include "executor/executor.h"
#include "executor/realise.h"
#include "graph/execution/execution_graph.h"

namespace plancast {

// What a block takes at least, picoseconds: kernels and communications take what they take
// alone, streams are in order, and tasks wait for what they depend on. In a simulation nothing is
// faster.
struct BlockTimes {
  bool computes = false;  // it has tasks on the compute stream
  // On the compute stream from the start of its first task to the end of its last one, and to
  // that of the first in the next repeat.
  int64_t once = 0, again = 0;
  // Of `once`, before the first task that waits for an in-port, of the port where that is latest.
  int64_t before_ports = 0;
  // How long before the end of `once` the first of its out-ports may be complete; below 0: after
  // it.
  int64_t before_end = 0;
  // Launches of the host, where no CUDA graph takes their place.
  int64_t launches = 0;
  // Of the communications of each stream, the sum.
  std::array<int64_t, kNumStreams> comms = {};

  // So many repeats, one after the other.
  int64_t Of(int64_t repeats) const { return once + (repeats - 1) * again; }
};

// Finds BlockTimes of blocks on one machine without sections of unlike devices; once for all
// plans that share a block, on meshes that are alike. Where pods cut an axis, communications take
// what they would with all hosts below one switch. For one thread.
class BlockTimer {
 public:
  // All must outlive this. Nothing is known (IsKnown) of machines with unlike devices or links.
  BlockTimer(const Machine& machine, const KernelCostModel& costs, const RuntimeParams& runtime);

  bool IsKnown() const { return known_; }
  // What follows is about plans on `mesh`. `skew`: of what is routed, nothing is known of it
  // where that is not empty.
  void Begin(const DeviceMesh& mesh, const Skew& skew);
  // Of a block that is there, as is what is returned, until something is forgotten.
  const BlockTimes& Of(const BlockTemplate& block);
  // Of a block that may go.
  BlockTimes OfOwn(const BlockTemplate& block) { return Find(block, KernelsOf(block)); }
  // Blocks may be gone.
  void Forget() { blocks_.clear(); }

 private:
  struct Mesh {
    ExecutionGraph graph;              // its mesh, and the communications that were priced
    const Machine* machine = nullptr;  // on which groups along equal axes lie alike; null: on none
    std::unique_ptr<CommPricer> pricer;
    absl::flat_hash_map<CommSpec, int64_t> comms;
  };
  struct Known {
    std::vector<int64_t> kernels;       // of BlockTemplate::kernels
    std::map<int, BlockTimes> of_mesh;  // by number and skew
  };

  std::vector<int64_t> KernelsOf(const BlockTemplate& block);
  BlockTimes Find(const BlockTemplate& block, const std::vector<int64_t>& kernels);
  int64_t CommTime(const CommSpec& comm);

  const Machine& machine_;
  const KernelCostModel& costs_;
  const RuntimeParams& runtime_;
  const bool known_;
  std::optional<Machine> flat_;  // of a machine with pods, without them
  std::map<std::string, int> numbers_;
  std::vector<std::unique_ptr<Mesh>> meshes_;
  int number_ = -1;  // of the mesh
  bool skewed_ = false;
  absl::node_hash_map<const BlockTemplate*, Known> blocks_;
  absl::flat_hash_map<KernelSpec, int64_t> kernels_;
};

}  // namespace plancast

#endif  // PLANCAST_PLANNER_BOUND_BLOCK_TIMES_H_
