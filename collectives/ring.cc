#include "collectives/traffic.h"

namespace plancast {

std::optional<Traffic> RingTraffic(const GroupShape& shape, CollectiveKind kind) {
  const double n = shape.members;
  double flow = (n - 1) / n;  // bytes that each member sends, per byte of the buffer
  double rounds = 1;
  switch (kind) {
    case CollectiveKind::kAllReduce:  // a reduce_scatter, then an all_gather
      rounds = 2;
      flow *= 2;
      break;
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
      break;
    case CollectiveKind::kBroadcast:  // the whole buffer, pipelined
    case CollectiveKind::kReduce:
      flow = 1;
      break;
    default:
      return std::nullopt;
  }
  Traffic traffic;
  traffic.algorithm = Algorithm::kRing;
  traffic.node_hops = rounds * (n - 1);
  traffic.port = flow;
  if (shape.switches > 1) {
    traffic.uplink = flow;
    traffic.bridge = flow * shape.switches;
  }
  if (shape.nodes > 1) {
    traffic.network_hops = rounds * (shape.nodes - 1);
    traffic.node_hops -= traffic.network_hops;
    traffic.port = flow * (shape.per_node - 1) / shape.per_node;
    traffic.nic = flow / shape.nics;
    if (shape.nics_above_switches) traffic.uplink = flow;
  }
  if (shape.pods > 1) {
    traffic.spine_hops = rounds * (shape.pods - 1);
    traffic.spine = flow / shape.pod_uplinks;
  }
  if (shape.rail_change > 0) {
    traffic.spine_hops = traffic.network_hops;
    traffic.spine = flow * shape.nodes_per_pod() / shape.pod_uplinks;
  }
  return traffic;
}

}  // namespace plancast
