#ifndef PLANCAST_COLLECTIVES_NCCL_COMPUTE_GRAPH_H_
#define PLANCAST_COLLECTIVES_NCCL_COMPUTE_GRAPH_H_

#include "cluster/topology/paths.h"
#include "cluster/topology/topology.h"
#include "collectives/nccl/graphs.h"

namespace plancast {

// What bounds the search on a host, GB/s.
struct SearchBounds {
  float best_path = 0;  // from any GPU to the network; among GPUs where `inter` is false
  float gpu_links = 0;  // all NVLinks of a GPU, or its PCIe link
};

SearchBounds BoundsOf(const Topology& topology, const TopologyPaths& paths, bool inter);

// One graph to search for; `min_channels` to `max_channels` channels.
struct GraphRequest {
  NcclPattern pattern = NcclPattern::kRing;
  bool collnet = false;
  int min_channels = 1, max_channels = 1;
};

// The graph that NCCL settles on: it starts at the highest bandwidth that the host
// could carry, loosens one rule after another, then lowers the bandwidth; and raises
// what can be raised at last. No channels: there is none.
NcclGraph ComputeGraph(const Topology& topology, const TopologyPaths& paths, bool inter,
                       const GraphRequest& request);

}  // namespace plancast

#endif  // PLANCAST_COLLECTIVES_NCCL_COMPUTE_GRAPH_H_
