#ifndef PLANCAST_CLUSTER_TOPOLOGY_PATHS_H_
#define PLANCAST_CLUSTER_TOPOLOGY_PATHS_H_

#include <vector>

#include "cluster/topology/path_type.h"
#include "cluster/topology/topology.h"

namespace plancast {

// How data gets from one device of a host to another.
struct TopologyPath {
  PathType type = PathType::kDis;
  float gb_per_s = 0;      // of its slowest link
  std::vector<int> links;  // indices into Topology::links(); none: no path, or the same device

  int hops() const { return static_cast<int>(links.size()); }
};

// The best paths to every GPU, network device, NUMA node and NVSwitch, and what NCCL
// makes of them: pairs of GPUs that must not talk directly go through the CPU; a
// network device is reached through a GPU beside it (PXN) where that is faster; and
// where GPUDirect does not work, through the CPU.
class TopologyPaths {
 public:
  explicit TopologyPaths(const Topology& topology);

  // `to` is a GPU, network device, NUMA node or NVSwitch.
  const TopologyPath& Between(int from, int to) const { return paths_[from][slot_[to]]; }

  // Of the devices of kind `kind` those that `node` reaches best (by bandwidth, then
  // type); `type` gets their type where there are any.
  std::vector<int> Nearest(int node, NodeKind kind, PathType* type = nullptr) const;
  // The network device that `gpu` uses for channel `channel`, or -1.
  int LocalNet(int gpu, int channel) const;
  // The GPU that is to feed network device `net`, or -1.
  int LocalGpu(int net) const { return local_gpu_[net]; }

  // Pairs of GPUs that talk faster over the network than inside the host, if at all
  // there, belong to different nodes of a communicator. The GPUs of each node.
  std::vector<std::vector<int>> Domains() const;

  // The least and the greatest type of path from a GPU to a device of that kind.
  PathType LeastType(NodeKind kind) const;
  PathType GreatestType(NodeKind kind) const;
  // Two groups of GPUs, each joined by NVLink, and none between them.
  bool SplitNvlink() const;

 private:
  int FindLocalGpu(int net) const;
  std::vector<int> LocalNets(int gpu) const;
  void FindPathsTo(int base);
  void Relax(int base, int node, std::vector<int>& next);
  void DivertPeers();
  void MarkNetworkPeers(int gpu);
  void UseChipToChip();
  void UseRelays();
  void DivertWithoutGpuDirect(int net, int gpu);
  void Concatenate(int from, int by, int to);
  bool PeerToPeer(int a, int b) const;
  bool NetworkIsFaster(int a, int b) const;
  bool GpuDirect(int gpu, int net, bool read) const;
  int Relay(const TopologyPath& path) const;
  int RelayOf217(int net, int gpu) const;
  int LocalNet217(int gpu) const;
  int NearestCpu(int gpu) const;
  TopologyPath& At(int from, int to) { return paths_[from][slot_[to]]; }

  const Topology& topology_;
  std::vector<int> slot_;     // of a node that paths lead to: its column
  std::vector<int> first_;    // of such a node: the first of its kind and number
  std::vector<int> reverse_;  // of a link: the one back, or -1
  std::vector<std::vector<TopologyPath>> paths_;
  std::vector<int> local_gpu_;  // of network devices
};

}  // namespace plancast

#endif  // PLANCAST_CLUSTER_TOPOLOGY_PATHS_H_
