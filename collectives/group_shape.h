#ifndef PLANCAST_COLLECTIVES_GROUP_SHAPE_H_
#define PLANCAST_COLLECTIVES_GROUP_SHAPE_H_

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "cluster/machine.h"
#include "collectives/realise.h"

namespace plancast {

// How a group lies on a machine. A node is a set of devices joined without the
// network: an NVLink domain, mostly one host. Where nodes hold different numbers
// of members, the figures are those of the node with the most members.
struct GroupShape {
  int64_t members = 1;
  int64_t nodes = 1;
  int64_t per_node = 1;  // members of one node
  int64_t nics = 1;      // network interfaces next to the members of a node
  int64_t switches = 1;  // PCIe switches with members, of one host
  // Network traffic crosses the uplinks of PCIe switches: there are fewer
  // interfaces than switches.
  bool nics_above_switches = false;
  int64_t pods = 1;
  int64_t pod_uplinks = 1;  // uplinks of a pod that serve members
  int64_t per_pod = 1;      // members of one pod
  // Of the traffic between the nodes of a pod, the share that changes rails and so
  // crosses the spine: of rings and messages, and of exchanges among all members.
  // Members hand on to the rail of the receiver inside their node where NVLink
  // joins them.
  double rail_change = 0, exchange_rail_change = 0;
  // Sections of a mixed machine with members, and the members of one; and of the nodes and
  // pods those in other sections.
  int64_t sections = 1, per_section = 1;
  int64_t nodes_elsewhere = 0, pods_elsewhere = 0;
  // Nodes of one pod.
  double nodes_per_pod() const {
    return static_cast<double>(nodes - nodes_elsewhere) /
           static_cast<double>(pods - pods_elsewhere);
  }
};

// How a group lies in one section of a machine: `members`, `nodes`, `pods` and `sections`
// count the whole group, the rest is of the members there.
struct SectionShape {
  int section = 0;
  GroupShape shape;
};
// One of a machine that is not mixed.
using SectionShapes = absl::InlinedVector<SectionShape, 1>;

// In every section with members, ascending. Fails where the group leaves the machine or a
// dimension is not positive. Takes time in the members of one node for groups that lie
// evenly, in all members for others, and for those in several sections.
absl::StatusOr<SectionShapes> ShapesOf(const Machine& machine, const GroupPattern& group);

// Of a group in one section; fails for others too.
absl::StatusOr<GroupShape> ShapeOf(const Machine& machine, const GroupPattern& group);

}  // namespace plancast

#endif  // PLANCAST_COLLECTIVES_GROUP_SHAPE_H_
