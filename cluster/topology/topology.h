#ifndef PLANCAST_CLUSTER_TOPOLOGY_TOPOLOGY_H_
#define PLANCAST_CLUSTER_TOPOLOGY_TOPOLOGY_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/topology/nccl_version.h"
#include "cluster/topology/system_element.h"

namespace plancast {

enum class NodeKind : uint8_t {
  kGpu,     // a rank
  kPci,     // a PCIe switch
  kNvs,     // all NVSwitches of a host or domain as one
  kCpu,     // a NUMA node
  kNic,     // a network card
  kNet,     // a network device: one port of a card
  kDevice,  // a physical GPU, from NCCL 2.30 on; its ranks hang off it
};
inline constexpr int kNodeKinds = 7;

enum class LinkType : uint8_t { kLoc, kNvl, kC2c, kPci, kSys, kNet };

struct TopologyLink {
  LinkType type = LinkType::kLoc;
  float gb_per_s = 0;  // this direction
  int from = 0, to = 0;
};

struct TopologyNode {
  NodeKind kind = NodeKind::kPci;
  int64_t id = 0;          // PCI address, NUMA node or number of the network device
  int host = 0;            // of a description of several hosts
  std::vector<int> links;  // outgoing, in the order in which NCCL walks them

  // GPUs, and devices but for the rank.
  int dev = -1;   // number of the GPU in its host
  int rank = -1;  // of the node's ranks, from 0
  int compute_capability = 0;
  bool gdr = false;  // GPUDirect RDMA; of network devices too
  int device = -1;   // the node of the physical GPU; itself where there is none

  // Network devices.
  uint64_t asic = 0;
  int port = 0;
  float gb_per_s = 0;
  float latency_us = 0;
  bool collectives = false;  // in-network reductions (SHARP)
  int max_connections = 0;
  int rail = -1, plane = -1;
  bool connectx8 = false;

  // NUMA nodes.
  std::string arch, vendor;
  int family = 0, model = 0;

  uint64_t pci_device = 0;  // vendor, device and both subsystem ids of a PCIe switch
};

// NCCL's system graph: what `system` describes, as release `version` sees it. One
// host, or the several hosts of an NVLink domain (told apart by `host_hash`).
class Topology {
 public:
  // Refuses what NCCL could not use: no CPU, no GPU with a rank, attributes that are
  // missing or no numbers, two GPUs of one rank. Ranks are counted from 0 in the
  // order of those in the description.
  static absl::StatusOr<Topology> Create(const SystemElement& system, NcclVersion version);

  NcclVersion version() const { return version_; }
  const std::vector<TopologyNode>& nodes() const { return nodes_; }
  const std::vector<TopologyLink>& links() const { return links_; }
  const TopologyNode& node(int index) const { return nodes_[index]; }
  // Indices of all nodes of that kind, in the order of the description.
  const std::vector<int>& Of(NodeKind kind) const { return of_[static_cast<int>(kind)]; }
  int Count(NodeKind kind) const { return static_cast<int>(Of(kind).size()); }
  int hosts() const { return hosts_; }

  int MinComputeCapability() const;
  int MaxComputeCapability() const;
  // Of the first CPU, as NCCL asks.
  const TopologyNode& FirstCpu() const { return nodes_[Of(NodeKind::kCpu)[0]]; }
  bool IsIntel() const;
  bool IsAmd() const;

  // The same with these GPUs alone (indices of nodes); the nodes keep their indices.
  Topology WithGpus(const std::vector<int>& gpus) const;
  // The same without network devices.
  Topology WithoutNets() const;

  // One line per node and link.
  std::string DebugString() const;

 private:
  friend class TopologyBuilder;
  NcclVersion version_ = kLatestNccl;
  std::vector<TopologyNode> nodes_;
  std::vector<TopologyLink> links_;
  std::array<std::vector<int>, kNodeKinds> of_;
  int hosts_ = 1;
};

}  // namespace plancast

#endif  // PLANCAST_CLUSTER_TOPOLOGY_TOPOLOGY_H_
