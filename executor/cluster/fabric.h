#ifndef PLANCAST_EXECUTOR_CLUSTER_FABRIC_H_
#define PLANCAST_EXECUTOR_CLUSTER_FABRIC_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cluster/machine.h"
#include "executor/sharing/fluid.h"

namespace plancast {

// One message stream of a job, from one interface to another.
struct FabricFlow {
  int32_t from_host = 0, from_nic = 0, to_host = 0, to_nic = 0;
};

// The network between hosts as a tree of switches, each way by itself: every interface
// leads to a node of the first tier, every node of a tier has `width` equal uplinks to its
// node of the next, and beyond the last tier all meet. A path takes one uplink of each
// bundle, the same number going up and coming down, as through one spine switch of a Clos.
//
//     core          ─── meet ───
//                  ╱╱          ╲╲        width = 2
//     tier 0    leaf 0        leaf 1
//               │    │        │    │     interfaces
//             host 0 host 1 host 2 host 3
class Fabric {
 public:
  struct Tier {
    std::string name;              // `leaf`, `pod`
    std::vector<int32_t> node_of;  // of each node of the tier below; first: of each host
    int32_t width = 1;
    int64_t bytes_per_s = 0;  // one uplink, one direction
    bool by_rail = false;     // a node is one switch per rail
  };
  struct Spec {
    int64_t hosts = 1, gpus_per_host = 8, nics_per_host = 1;
    int64_t nic_bytes_per_s = 0;
    int64_t hosts_per_domain = 1;    // whose GPUs reach each other without interfaces
    int64_t inside_bytes_per_s = 0;  // of a GPU to others of its domain
    std::vector<Tier> tiers;
  };

  static absl::StatusOr<Fabric> Create(Spec spec);
  // Of a machine, whose pods' uplinks are cut into `width` equal ones.
  static absl::StatusOr<Fabric> Of(const Machine& machine, int32_t width);

  const Spec& spec() const { return spec_; }
  int64_t num_gpus() const { return spec_.hosts * spec_.gpus_per_host; }
  absl::Span<const int64_t> capacities() const { return capacities_; }
  std::string LinkName(int32_t link) const;
  // The node of a tier above a host.
  int32_t NodeOf(int tier, int64_t host) const { return node_of_host_[tier][host]; }
  int32_t NumNodes(int tier) const { return num_nodes_[tier]; }

  // A ring over the hosts of these GPUs, ascending: as many flows from each host to the next
  // as the host with the fewest has interfaces beside GPUs of the list. Domains count as hosts.
  // `per_hop`: how many these are; 0 where the ring needs no network.
  std::vector<FabricFlow> RingOf(absl::Span<const int64_t> gpus, int64_t* per_hop) const;

  // Which uplink of a bundle a flow takes: asked with the first link up and the first down of
  // `width` alternatives, of which the second of each pair (up, down) follows two numbers later.
  using Choose = std::function<int32_t(const FabricFlow& flow, int tier, int32_t up, int32_t down,
                                       int32_t width)>;
  static constexpr int32_t kStride = 2;  // from one alternative to the next
  // Adds the links on the way.
  void Route(const FabricFlow& flow, const Choose& choose, std::vector<int32_t>* links) const;

 private:
  Fabric() = default;
  int32_t Nic(int64_t host, int64_t nic, bool down) const {
    return static_cast<int32_t>((host * spec_.nics_per_host + nic) * 2 + (down ? 1 : 0));
  }
  int32_t Uplink(int tier, int32_t node, int32_t rail, bool down) const;

  Spec spec_;
  std::vector<std::vector<int32_t>> node_of_host_;  // per tier
  std::vector<int32_t> num_nodes_, first_link_;     // per tier
  std::vector<int64_t> capacities_;
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_CLUSTER_FABRIC_H_
