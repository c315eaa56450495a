#include <algorithm>
#include <cmath>

#include "collectives/traffic.h"

namespace plancast {
namespace {

bool IsMessage(CollectiveKind kind) {
  return kind == CollectiveKind::kPermute || kind == CollectiveKind::kSendRecv;
}

// What each member sends to or gets from the others, by the hops and through its own port.
Traffic WithEachOther(const GroupShape& shape) {
  const double n = shape.members, k = shape.per_node;
  Traffic traffic;
  traffic.algorithm = Algorithm::kPairwise;
  traffic.node_hops = k - 1;
  traffic.network_hops = n - k;
  traffic.port = (k - 1) / n;
  return traffic;
}

// Every member sends its part to one of them, the root, or gets it from there: what is at the
// root's links bounds the rate.
Traffic RootedTraffic(const GroupShape& shape) {
  const double n = shape.members, k = shape.per_node;
  Traffic traffic = WithEachOther(shape);
  if (shape.switches > 1) traffic.bridge = traffic.uplink = (k - k / shape.switches) / n;
  if (shape.nics_above_switches) traffic.uplink += (n - k) / n;
  traffic.nic_flow = (n - k) / n;
  traffic.nic = traffic.nic_flow / shape.nics;
  if (shape.pods > 1) {
    traffic.spine_hops = 1;
    traffic.spine = (n - shape.per_pod) / n / shape.pod_uplinks;
  }
  return traffic;
}

}  // namespace

std::optional<Traffic> PairwiseTraffic(const GroupShape& shape, CollectiveKind kind) {
  if (kind == CollectiveKind::kGather || kind == CollectiveKind::kScatter) {
    return RootedTraffic(shape);
  }
  if (kind != CollectiveKind::kAllToAll) return std::nullopt;
  const double n = shape.members, k = shape.per_node;
  Traffic traffic = WithEachOther(shape);
  if (shape.switches > 1) {
    // What the members of a host send to other switches of theirs.
    const double near = k / shape.switches;
    traffic.bridge = k * (k - near) / n;
    traffic.uplink = near * (k - near) / n;
  }
  if (shape.nics_above_switches) traffic.uplink += k / shape.switches * (n - k) / n;
  traffic.nic = k * (n - k) / n / shape.nics;
  // To other pods, and to other rails of one's own.
  const double per_pod = shape.per_pod;
  if (shape.pods > 1) traffic.spine = per_pod * (n - per_pod) / n / shape.pod_uplinks;
  if (shape.nodes > 1) {
    traffic.spine +=
        shape.exchange_rail_change * per_pod * std::max(per_pod - k, 0.0) / n / shape.pod_uplinks;
  }
  return traffic;
}

void SendCopiesOnce(const GroupShape& shape, const RowCopies& copies, Traffic* pairwise) {
  if (copies.each <= 1) return;
  const auto share = [&copies](int64_t places) {  // of the copies that go
    return copies.Reached(static_cast<double>(places)) / copies.each;
  };
  pairwise->nic *= share(shape.nodes);
  pairwise->spine *= share(shape.nodes);
  pairwise->between *= share(shape.nodes);
  // What comes from other nodes is handed on inside.
  const double k = static_cast<double>(shape.per_node);
  pairwise->port = shape.per_node > 1 ? share(shape.members) * (k - 1) / k : 0;
}

namespace {

// All members of one host send each other their parts at once, and for a reduction of the whole
// their sums too.
std::optional<Traffic> AllPairsTraffic(const GroupShape& shape, CollectiveKind kind) {
  const bool reduces = kind == CollectiveKind::kAllReduce;
  if (!reduces && kind != CollectiveKind::kAllGather && kind != CollectiveKind::kReduceScatter) {
    return std::nullopt;
  }
  if (shape.nodes > 1 || shape.switches > 1) return std::nullopt;
  const double n = shape.members;
  Traffic traffic;
  traffic.algorithm = Algorithm::kDirect;
  traffic.node_hops = reduces ? 2 : 1;
  traffic.port = traffic.node_hops * (n - 1) / n;
  return traffic;
}

}  // namespace

std::optional<Traffic> DirectTraffic(const GroupShape& shape, CollectiveKind kind) {
  if (!IsMessage(kind)) return AllPairsTraffic(shape, kind);
  Traffic traffic;
  traffic.algorithm = Algorithm::kDirect;
  traffic.one_peer = true;
  if (shape.per_node > 1) {
    traffic.node_hops = 1;
    traffic.port = 1;
  }
  if (shape.switches > 1) {
    traffic.uplink = 1;
    traffic.bridge = shape.switches;
  }
  if (shape.nodes > 1) {
    // One member of each node sends to the next node: on one interface, whichever
    // of its node's.
    traffic.node_hops = 0;
    traffic.network_hops = 1;
    traffic.nic = 1.0 / shape.nics;
    traffic.nic_flow = 1;
    if (shape.nics_above_switches) traffic.uplink = 1;
  }
  if (shape.pods > 1) {
    traffic.spine_hops = 1;
    traffic.spine = 1.0 / shape.pod_uplinks;
  }
  if (shape.rail_change > 0) {
    traffic.spine_hops = 1;
    traffic.spine = shape.nodes_per_pod() / shape.pod_uplinks;
  }
  return traffic;
}

std::optional<Traffic> CopyTraffic(const GroupShape& shape, CollectiveKind kind) {
  if (shape.nodes > 1 || !IsMessage(kind)) return std::nullopt;
  std::optional<Traffic> traffic = DirectTraffic(shape, kind);
  if (traffic) traffic->algorithm = Algorithm::kCopy;
  return traffic;
}

namespace {

// But for links between sections.
std::optional<Traffic> OverPods(Algorithm algorithm, const GroupShape& shape, CollectiveKind kind) {
  switch (algorithm) {
    case Algorithm::kRing:
      return RingTraffic(shape, kind);
    case Algorithm::kTree:
      return TreeTraffic(shape, kind);
    case Algorithm::kNvls:
      return NvlsTraffic(shape, kind);
    case Algorithm::kNvlsTree:
      return NvlsTreeTraffic(shape, kind);
    case Algorithm::kPairwise:
      return PairwiseTraffic(shape, kind);
    case Algorithm::kDirect:
      return DirectTraffic(shape, kind);
    case Algorithm::kCopy:
      return CopyTraffic(shape, kind);
  }
  return std::nullopt;
}

std::optional<Traffic> OverSections(Algorithm algorithm, const GroupShape& shape,
                                    CollectiveKind kind) {
  std::optional<Traffic> traffic = OverPods(algorithm, shape, kind);
  if (!traffic || shape.sections == 1) return traffic;
  // Sections are joined as pods with one uplink each are.
  GroupShape sections = shape;
  sections.pods = shape.sections;
  sections.pod_uplinks = 1;
  sections.per_pod = shape.per_section;
  sections.rail_change = sections.exchange_rail_change = 0;
  const std::optional<Traffic> over = OverPods(algorithm, sections, kind);
  traffic->between = over->spine;
  traffic->between_hops = over->spine_hops;
  return traffic;
}

}  // namespace

std::optional<Traffic> TrafficOf(Algorithm algorithm, const GroupShape& shape, CollectiveKind kind,
                                 const RowCopies& copies) {
  std::optional<Traffic> traffic = OverSections(algorithm, shape, kind);
  if (traffic && algorithm == Algorithm::kPairwise) SendCopiesOnce(shape, copies, &*traffic);
  return traffic;
}

}  // namespace plancast
