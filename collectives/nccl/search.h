#ifndef PLANCAST_COLLECTIVES_NCCL_SEARCH_H_
#define PLANCAST_COLLECTIVES_NCCL_SEARCH_H_

#include <vector>

#include "absl/status/statusor.h"
#include "cluster/topology/path_type.h"
#include "cluster/topology/system_element.h"
#include "cluster/topology/topology.h"
#include "collectives/nccl/graphs.h"

namespace plancast {

struct SearchOptions {
  bool collnet = false;  // in-network reductions are wanted (NCCL_COLLNET_ENABLE)
};

// A path as NCCL reports it.
struct PathSummary {
  PathType type = PathType::kDis;
  double gb_per_s = 0;
  int hops = 0;
};

struct RankPaths {
  int rank = 0, dev = 0;  // of the host
  std::vector<PathSummary> to_gpus, to_nets;
};

// One node of a communicator: GPUs of a host that are joined without the network.
struct NcclNode {
  std::vector<int> ranks;  // of the host, rising
  NcclGraph ring, tree, collnet_chain, collnet_direct, nvls;
};

// What NCCL finds on identical hosts.
struct NcclSearchResult {
  NcclCommunicator communicator;
  int hosts = 1, ranks_per_host = 1;
  double best_path_gb_per_s = 0;  // of a GPU: to the network, or inside a single host
  double gpu_gb_per_s = 0;        // of all links of a GPU
  int search_channels = 0;        // of rings and trees, before they are doubled
  std::vector<NcclNode> nodes;    // of one host: one, where its GPUs are joined
  std::vector<RankPaths> paths;   // of one host
};

// Searches what `system` describes (one host, or the hosts of one NVLink domain) as
// NCCL `version` would for `hosts` such. A few milliseconds for eight GPUs.
absl::StatusOr<NcclSearchResult> SearchGraphs(const SystemElement& system, int hosts,
                                              NcclVersion version,
                                              const SearchOptions& options = {});

}  // namespace plancast

#endif  // PLANCAST_COLLECTIVES_NCCL_SEARCH_H_
