#include "collectives/price.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace plancast {
namespace {

const LinkClass* ClassOf(const Machine& machine, int index) {
  return index < 0 ? nullptr : &machine.link_classes()[index];
}

// Where the rings of all groups leave a host by the same few interfaces, each
// group's share of its interfaces counts as that of all the host's.
double Crowding(const LinkCosts& links, const GroupShape& shape, Algorithm algorithm) {
  const int64_t used = links.machine.spec().ring_nics;
  const bool chooses = algorithm != Algorithm::kPairwise && algorithm != Algorithm::kDirect;
  const int64_t all = links.nic->instances_per_block;
  const bool part_of_host =
      shape.per_node != 1 && shape.per_node != links.machine.spec().gpus_per_host;
  if (used == 0 || used >= all || !part_of_host || !chooses) return 1;
  return static_cast<double>(all) / static_cast<double>(used);
}

}  // namespace

LinkCosts::LinkCosts(const Machine& machine, const ProtocolCosts& costs)
    : machine(machine),
      node(costs.Of(machine.spec().intra_link)),
      network(costs.Of(machine.spec().fabric)),
      port(ClassOf(machine, machine.intra_class())),
      uplink(ClassOf(machine, machine.FindLinkClass(LinkKind::kPcieSwitch))),
      bridge(ClassOf(machine, machine.FindLinkClass(LinkKind::kHostBridge))),
      nic(ClassOf(machine, machine.FindLinkClass(LinkKind::kNic))),
      spine(ClassOf(machine, machine.FindLinkClass(LinkKind::kSpine))) {}

std::optional<PricedTraffic> Price(const LinkCosts& links, const GroupShape& shape,
                                   const Traffic& traffic, Protocol protocol, CollectiveKind kind,
                                   int64_t bytes, double bandwidth_scale) {
  const bool networked = shape.nodes > 1;
  // Inside the nodes a tree over them runs as switches or chains do.
  Algorithm inside = traffic.algorithm;
  if (inside == Algorithm::kNvlsTree) inside = Algorithm::kNvls;
  if (inside == Algorithm::kTree) inside = Algorithm::kRing;
  const ProtocolCost* node = nullptr;
  const ProtocolCost* network = nullptr;
  if (shape.per_node > 1) {
    node = links.node.Find(inside, protocol, kind);
    if (node == nullptr) return std::nullopt;
  }
  if (networked) {
    network = links.network.Find(traffic.algorithm, protocol, kind);
    if (network == nullptr) return std::nullopt;
  }

  PricedTraffic priced;
  priced.traffic = traffic;
  priced.protocol = protocol;
  priced.cost = networked ? network : node;

  double hops = 0;                                          // seconds
  double slowest = 1 / std::numeric_limits<double>::max();  // seconds per byte
  const auto add = [&](double load, const LinkClass& link, double& total) {
    const bool outside = link.kind == LinkKind::kNic || link.kind == LinkKind::kSpine;
    total = outside ? load : load / bandwidth_scale;
    slowest = std::max(slowest, total / link.bytes_per_s);
  };
  double port = 0;
  if (node != nullptr) {
    hops += traffic.node_hops * (links.port->latency_s + node->hop_s);
    if (traffic.port > 0) {
      port += (traffic.port + node->local_share) / node->efficiency;
      slowest = std::max(slowest,
                         traffic.port / node->efficiency / bandwidth_scale /
                             (links.port->bytes_per_s * links.machine.MeshShare(shape.per_node)));
    }
    if (traffic.bridge > 0 && links.bridge != nullptr) {
      add(traffic.bridge / node->bridge_efficiency, *links.bridge, priced.bridge);
    }
  }
  if (network != nullptr && links.port != nullptr && links.port->kind == LinkKind::kPcie) {
    // A device sends to the interface through the same port.
    port += traffic.nic * static_cast<double>(shape.nics) / static_cast<double>(shape.per_node) /
            network->efficiency;
  }
  if (port > 0) add(port, *links.port, priced.port);
  if (traffic.uplink > 0 && links.uplink != nullptr) {
    add(traffic.uplink / (node != nullptr ? node : network)->efficiency, *links.uplink,
        priced.uplink);
  }
  if (network != nullptr) {
    hops += traffic.network_hops * (links.nic->latency_s + network->hop_s);
    add(traffic.nic * Crowding(links, shape, traffic.algorithm) / network->efficiency, *links.nic,
        priced.nic);
    slowest = std::max(slowest, traffic.nic_flow / network->efficiency / links.nic->bytes_per_s);
    if (traffic.spine > 0 && links.spine != nullptr) {
      hops += traffic.spine_hops * links.spine->latency_s;
      add(traffic.spine / network->efficiency, *links.spine, priced.spine);
    }
  }
  priced.rate_cap = 1 / slowest;
  // Chunks fill the pipeline: with the best chunk size, s hops of h seconds and a
  // transfer of t seconds take s h + t + 2 sqrt(s h t); `fill` is the measured 2.
  priced.delay_s =
      priced.cost->base_s + hops + priced.cost->fill * std::sqrt(hops * (bytes * slowest));
  return priced;
}

}  // namespace plancast
