#ifndef PLANCAST_COLLECTIVES_TRAFFIC_H_
#define PLANCAST_COLLECTIVES_TRAFFIC_H_

#include <optional>

#include "collectives/group_shape.h"
#include "collectives/protocol_cost.h"
#include "graph/collective_kind.h"
#include "graph/row_copies.h"

namespace plancast {

// What an algorithm asks of the links, per byte of the collective's buffer and
// per direction, and the hops on its critical path. Loads are spread evenly over
// the links of the members: the channels of a ring leave a host by different
// network interfaces.
struct Traffic {
  Algorithm algorithm = Algorithm::kRing;
  double port = 0;     // each member's link inside its host or domain
  double uplink = 0;   // each PCIe switch with members
  double bridge = 0;   // each host bridge
  double nic = 0;      // each network interface next to a member
  double spine = 0;    // each uplink that serves a member
  double between = 0;  // the links of each section with members to the others
  // The largest flow through one network interface, where it exceeds the average
  // `nic`: it bounds the rate.
  double nic_flow = 0;
  bool one_peer = false;    // each member sends to a single other one
  double node_hops = 0;     // inside nodes
  double network_hops = 0;  // between nodes
  double spine_hops = 0;    // of those, the ones between pods or rails
  double between_hops = 0;  // and those between sections
};

// Each returns nothing where the algorithm does not do `kind` over such a group.

// A ring through all members, node after node, crosses each node's border once.
std::optional<Traffic> RingTraffic(const GroupShape& shape, CollectiveKind kind);
// Double binary tree over the nodes, a chain inside each.
std::optional<Traffic> TreeTraffic(const GroupShape& shape, CollectiveKind kind);
// Reduction and multicast in the NVLink switches of one node.
std::optional<Traffic> NvlsTraffic(const GroupShape& shape, CollectiveKind kind);
// The same in each node, a double binary tree over the nodes.
std::optional<Traffic> NvlsTreeTraffic(const GroupShape& shape, CollectiveKind kind);
// Every member sends to every other (all_to_all), or one to all or all to one (scatter, gather).
std::optional<Traffic> PairwiseTraffic(const GroupShape& shape, CollectiveKind kind);
// Of the copies of each row one goes to each node that wants any, and there one to each member
// (DeepEP, HybridEP): of d nodes or members as many get one as are hit, d (1 - (1 - 1/d)^copies),
// fewer where rows go to some groups of members (RowCopies).
void SendCopiesOnce(const GroupShape& shape, const RowCopies& copies, Traffic* pairwise);
// Every member sends to the next one (permute), or one to the other (send_recv).
std::optional<Traffic> DirectTraffic(const GroupShape& shape, CollectiveKind kind);
// The same by copy engines, which reach the memory of devices of their own node.
std::optional<Traffic> CopyTraffic(const GroupShape& shape, CollectiveKind kind);

// With `copies` of each row, pairwise exchanges send them as SendCopiesOnce says.
std::optional<Traffic> TrafficOf(Algorithm algorithm, const GroupShape& shape, CollectiveKind kind,
                                 const RowCopies& copies = {});

}  // namespace plancast

#endif  // PLANCAST_COLLECTIVES_TRAFFIC_H_
