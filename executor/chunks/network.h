#ifndef PLANCAST_EXECUTOR_CHUNKS_NETWORK_H_
#define PLANCAST_EXECUTOR_CHUNKS_NETWORK_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "cluster/machine.h"

namespace plancast {

// What a link is part of: protocols have an efficiency for each.
enum class LinkPart : uint8_t { kNode, kBridge, kNetwork };

// The links that a message crosses, each in its direction, and what it takes to
// cross them besides the transfer.
struct Route {
  struct Hop {
    int64_t link = 0;
    LinkPart part = LinkPart::kNode;
  };
  absl::InlinedVector<Hop, 6> hops;
  int64_t latency_ps = 0;
  bool network = false;    // leaves the node
  bool to_switch = false;  // half a way: to the switches of a node, or from them
};

// Places that send and receive, and the links between them. A link is one
// direction of a wire. Places of a machine are its devices, and after them the
// NVLink switches of every domain as one.
class ChunkNetwork {
 public:
  // Routes follow Machine::link_classes(): the ports of devices, uplinks of PCIe
  // switches and host bridges between those, network interfaces, and the spine
  // between pods. Where rails are joined by a spine of their own, hosts with NVLink
  // hand over to the device on the receiver's rail first (PXN). The machine has to
  // outlive the network.
  static ChunkNetwork OfMachine(const Machine& machine);

  // One direction of an explicit wire, between places or switches.
  struct Wire {
    int32_t from = 0, to = 0;
    int64_t bytes_per_s = 0;
    int64_t latency_ps = 0;
    LinkPart part = LinkPart::kNode;
  };
  // Nodes 0 to places - 1 send and receive, those up to `nodes` only switch. Routes
  // have the fewest hops, of those the least latency, of those the first wires.
  static absl::StatusOr<ChunkNetwork> OfWires(int32_t places, int32_t nodes,
                                              std::vector<Wire> wires);

  int64_t num_places() const;
  // The first places, those that are no switches.
  int64_t num_devices() const;
  int64_t num_links() const { return num_links_; }
  int64_t LinkBytesPerSecond(int64_t link) const;
  // "nvlink of device 3, outward", "nic 2, inward", "node 0 to node 1".
  std::string LinkName(int64_t link) const;
  // InvalidArgument where nothing leads there.
  absl::StatusOr<Route> RouteOf(int64_t from, int64_t to) const;
  // Whether turning the devices of every domain by one, each with its links, changes
  // nothing; and the link of a domain's first device that one of its links is turned
  // to.
  bool DomainsTurn() const;
  int64_t TurnedToFirst(int64_t link) const;
  // The devices of a domain; 0 of explicit wires.
  int64_t domain_size() const { return machine_ == nullptr ? 0 : machine_->gpus_per_domain(); }
  // The place of the switches of a device's domain; machines with NVLink only.
  absl::StatusOr<int64_t> SwitchesOf(int64_t device) const;

 private:
  ChunkNetwork() = default;
  Route MachineRoute(int64_t from, int64_t to) const;
  absl::StatusOr<Route> WireRoute(int64_t from, int64_t to) const;
  std::pair<int, int64_t> ClassAndInstance(int64_t link) const;
  void Cross(int link_class, int64_t device, bool in, LinkPart part, Route& route) const;

  const Machine* machine_ = nullptr;
  std::vector<int64_t> first_link_;  // per link class of the machine
  int64_t num_links_ = 0;

  int32_t places_ = 0;
  std::vector<Wire> wires_;
  std::vector<std::vector<int32_t>> wires_from_;  // per node
};

// Picoseconds of a protocol's hop beyond the latency of the machine's own link, which
// NCCL's tables have in one figure. `link_class` -1: a link without latency.
int64_t HopBeyondLink(const Machine& machine, int link_class, double hop_us);

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_CHUNKS_NETWORK_H_
