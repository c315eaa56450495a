#ifndef PLANCAST_INTEROP_ASTRA_SIMULATOR_ASTRA_SYSTEM_H_
#define PLANCAST_INTEROP_ASTRA_SIMULATOR_ASTRA_SYSTEM_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "interop/astra/simulator/astra_network.h"
#include "interop/astra/simulator/astra_workload.h"

namespace plancast {

// How collectives cross one dimension.
struct AstraAlgorithm {
  enum class Kind : uint8_t { kRing, kDirect, kHalvingDoubling, kDoubleBinaryTree, kCustom };
  Kind kind = Kind::kRing;
  bool one = false;  // `oneRing` etc.: a single ring of all NPUs takes the place of the dimensions
  int window = 0;    // of kDirect: messages in flight at once; 0: to all others
};

// ASTRA-sim's system layer, named as in its json.
struct AstraSystem {
  enum class Order : uint8_t { kLifo, kFifo, kExplicit };
  Order order = Order::kLifo;   // scheduling-policy
  bool local_bw_aware = false;  // collective-optimization: reduce-scatter, all-reduce, all-gather
  int splits = 1;               // preferred-dataset-splits
  int active_chunks = 1;        // active-chunks-per-dimension, over all queues of a dimension
  int64_t endpoint_delay_ns = 10;
  double local_mem_gb_per_s = 0;  // decimal
  bool roofline = false;          // compute by ops and bytes, not by duration
  double peak_tflops = 0;
  bool replay_only = false;  // every node takes its duration
  std::vector<AstraAlgorithm> all_reduce, all_gather, reduce_scatter, all_to_all;  // by dimension
  // What the members of a group run in place of kCustom, by place in the group.
  std::vector<AstraProgram> custom;

  const std::vector<AstraAlgorithm>& AlgorithmsOf(AstraCollective collective) const;
  absl::Status Verify(const AstraNetwork& network) const;
};

}  // namespace plancast

#endif  // PLANCAST_INTEROP_ASTRA_SIMULATOR_ASTRA_SYSTEM_H_
