#ifndef PLANCAST_COLLECTIVES_NCCL_TUNER_TABLES_H_
#define PLANCAST_COLLECTIVES_NCCL_TUNER_TABLES_H_

#include <array>
#include <vector>

#include "cluster/topology/nccl_version.h"

namespace plancast {

// The figures of collectives/data/nccl_tuner.textproto of one release. Triples
// are LL, LL128, Simple; algorithms are in NcclAlgorithm's order.
struct NcclTunerTables {
  enum Hardware { kNvlink, kPci, kNet };

  using Triple = std::array<double, 3>;
  struct Latency {
    Triple base = {};                     // µs
    std::array<Triple, 3> hardware = {};  // by Hardware, µs a step
  };
  // GB/s on one node, on two, on more.
  struct Generation {
    int compute_capability = 0;
    Triple ll_max = {};
    Triple ring_ll128 = {}, tree_ll128 = {}, tree = {}, nvls_tree = {};  // of a channel
    double nvls_efficiency = 0;
    double bus_max = 0;
  };

  std::array<Latency, 7> latency = {};
  std::vector<Generation> generations;                 // ascending compute capability
  std::array<std::vector<double>, 3> tree_correction;  // by protocol and log2(bytes / 64)

  // The latest generation that is not newer; the first for older ones.
  const Generation& Of(int compute_capability) const;

  static const NcclTunerTables& Shipped(NcclVersion version);
};

}  // namespace plancast

#endif  // PLANCAST_COLLECTIVES_NCCL_TUNER_TABLES_H_
