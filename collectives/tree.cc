#include <cmath>

#include "collectives/traffic.h"

namespace plancast {
namespace {

// What the busiest of `count` places in a double binary tree sends, per byte:
// each of the two trees carries half of the buffer up and down, and an inner
// place of one is a leaf of the other.
double BusiestFlow(int64_t count) {
  if (count <= 1) return 0;
  if (count == 2) return 1;
  return count == 3 ? 1.5 : 2;
}

}  // namespace

std::optional<Traffic> TreeTraffic(const GroupShape& shape, CollectiveKind kind) {
  if (kind != CollectiveKind::kAllReduce) return std::nullopt;
  const double k = shape.per_node;
  Traffic traffic;
  traffic.algorithm = Algorithm::kTree;
  traffic.node_hops = 2 * (k - 1);
  traffic.network_hops = 2 * std::ceil(std::log2(shape.nodes));
  traffic.spine_hops = 2 * std::ceil(std::log2(shape.pods));
  traffic.port = 2 * (k - 1) / k;
  if (shape.switches > 1) {
    traffic.bridge = 2.0 * (shape.switches - 1);
    traffic.uplink = traffic.bridge / shape.switches;
  }
  if (shape.nics_above_switches) traffic.uplink += BusiestFlow(shape.nodes) / shape.switches;
  traffic.nic = BusiestFlow(shape.nodes) / shape.nics;
  traffic.spine = BusiestFlow(shape.pods) / shape.pod_uplinks;
  if (shape.rail_change > 0) {
    // A tree over the nodes has one edge less than nodes, each used both ways.
    traffic.spine_hops = traffic.network_hops;
    traffic.spine =
        2.0 * (shape.nodes - 1) / shape.nodes * shape.nodes_per_pod() / shape.pod_uplinks;
  }
  return traffic;
}

std::optional<Traffic> NvlsTraffic(const GroupShape& shape, CollectiveKind kind) {
  // With fewer members switches save nothing, and NCCL does not use them.
  if (shape.nodes > 1 || shape.members < 3) return std::nullopt;
  const double n = shape.members;
  Traffic traffic;
  traffic.algorithm = Algorithm::kNvls;
  traffic.node_hops = 2;
  switch (kind) {
    case CollectiveKind::kAllReduce:
      // A member's share of every reduction, and the multicast of its own part.
      traffic.port = (n + 1) / n;
      return traffic;
    default:
      return std::nullopt;
  }
}

std::optional<Traffic> NvlsTreeTraffic(const GroupShape& shape, CollectiveKind kind) {
  if (shape.nodes < 2 || shape.per_node < 3) return std::nullopt;
  GroupShape node = shape;
  node.members = shape.per_node;
  node.nodes = 1;
  std::optional<Traffic> traffic = NvlsTraffic(node, kind);
  std::optional<Traffic> tree = TreeTraffic(shape, kind);
  if (!traffic || !tree) return std::nullopt;
  traffic->algorithm = Algorithm::kNvlsTree;
  traffic->network_hops = tree->network_hops;
  traffic->spine_hops = tree->spine_hops;
  traffic->nic = tree->nic;
  traffic->spine = tree->spine;
  return traffic;
}

}  // namespace plancast
