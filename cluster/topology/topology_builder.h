#ifndef PLANCAST_CLUSTER_TOPOLOGY_TOPOLOGY_BUILDER_H_
#define PLANCAST_CLUSTER_TOPOLOGY_TOPOLOGY_BUILDER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cluster/topology/topology.h"

namespace plancast {

// Turns a description into nodes and links, in the order in which NCCL does: ties
// between equally good paths fall by it.
class TopologyBuilder {
 public:
  explicit TopologyBuilder(NcclVersion version);

  absl::StatusOr<Topology> Build(const SystemElement& system);

 private:
  struct Link {
    LinkType type;
    float gb_per_s;
    int to;
  };
  struct PendingGpu {  // links of GPUs are added once all nodes are there
    const SystemElement* gpu;
    int node;
    int host;
  };

  absl::Status AddCpu(const SystemElement& cpu);
  absl::Status AddPci(const SystemElement& pci, int parent, int host);
  absl::Status AddGpus(const SystemElement& pci, int parent, int host, int64_t bus, float rate,
                       bool* skipped);
  absl::Status AddNic(const SystemElement& nic, const SystemElement* pci, int node, int host);
  absl::Status AddNvlinks(const PendingGpu& gpu);
  absl::Status AddC2c(const PendingGpu& gpu);
  absl::Status AddPciLinks(const SystemElement& pci, int node, int host);
  absl::Status NumberRanks();
  absl::Status CheckNvlinkPairs();
  void FlattenSwitches();
  void ConnectCpus();
  void PutUplinkLast(int node, int up);

  int AddNode(NodeKind kind, int64_t id, int host);
  int Find(NodeKind kind, int64_t id, int host) const;
  void Connect(int from, int to, LinkType type, float gb_per_s);
  int LocalCpu(int node, int from) const;
  int HostOf(const SystemElement& cpu);

  NcclVersion version_;
  std::vector<TopologyNode> nodes_;
  std::vector<std::vector<Link>> links_;  // by node
  std::vector<bool> removed_;
  std::vector<std::string> host_hashes_;
  std::vector<PendingGpu> gpus_;
  std::vector<std::pair<const SystemElement*, int>> switches_;  // with `pcilink`s, their nodes
};

// `0000:1a:00.0` as one number.
bool ParseBusId(absl::string_view text, int64_t* id);

}  // namespace plancast

#endif  // PLANCAST_CLUSTER_TOPOLOGY_TOPOLOGY_BUILDER_H_
