#include "collectives/group_shape.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"

namespace plancast {
namespace {

using Devices = absl::InlinedVector<int64_t, 16>;

// The highest member.
int64_t LastOf(const GroupPattern& group) {
  if (!group.devices.empty()) return group.devices.back();
  int64_t last = group.base;
  for (const GroupPattern::Dim& dim : group.dims) last += (dim.extent - 1) * dim.stride;
  return last;
}

absl::Status CheckInside(const Machine& machine, const GroupPattern& group) {
  for (const GroupPattern::Dim& dim : group.dims) {
    if (dim.extent < 1 || dim.stride < 1 || dim.extent > machine.num_devices()) {
      return absl::InvalidArgumentError(
          absl::StrCat("a group has a dimension of ", dim.extent, " devices ", dim.stride,
                       " apart; both have to be positive and within the machine's ",
                       machine.num_devices(), " devices."));
    }
  }
  const int64_t last = LastOf(group);
  if (group.base < 0 || last >= machine.num_devices()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a group covers devices ", group.base, " to ", last, "; the machine has ",
                     machine.num_devices(), ". Use more hosts, or fewer devices in the strategy."));
  }
  return absl::OkStatus();
}

// The members in the block of `block` consecutive devices that holds the base,
// ascending, if every block with members holds as many in the same places; else
// nothing.
std::optional<Devices> MembersOfFirstBlock(const GroupPattern& group, int64_t block) {
  if (!group.devices.empty()) return std::nullopt;
  Devices members = {group.base};
  const int64_t start = group.base % block;
  int64_t end = start;  // local index of the last member so far
  bool straddled = false;
  for (const GroupPattern::Dim& dim : group.dims) {
    if (dim.extent == 1) continue;
    if (dim.stride % block == 0) continue;  // steps over whole blocks
    int64_t inside = dim.extent;
    if (straddled) return std::nullopt;
    if (end + (dim.extent - 1) * dim.stride >= block) {
      // Runs through several blocks: even if its steps meet each alike.
      inside = block / dim.stride;
      straddled = true;
      if (block % dim.stride != 0 || dim.extent % inside != 0 || end >= dim.stride) {
        return std::nullopt;
      }
    }
    end += (inside - 1) * dim.stride;
    const size_t count = members.size();
    for (int64_t c = 1; c < inside; ++c) {
      for (size_t i = 0; i < count; ++i) members.push_back(members[i] + c * dim.stride);
    }
  }
  std::sort(members.begin(), members.end());
  return members;
}

// Of ascending devices, how many instances of a link class serve them.
template <typename DeviceList>
int64_t CountInstances(const Machine& machine, int link_class, const DeviceList& devices) {
  int64_t count = 0, last = -1;
  for (const int64_t device : devices) {
    const int64_t instance = machine.LinkInstance(link_class, device);
    if (instance != last) ++count;
    last = instance;
  }
  return count;
}

// The longest run of ascending devices in one block, and the number of blocks.
struct Busiest {
  std::vector<int64_t> devices;
  int64_t blocks = 0;
};
Busiest BusiestBlock(const std::vector<int64_t>& members, int64_t block) {
  Busiest busiest;
  for (size_t i = 0; i < members.size(); ++busiest.blocks) {
    size_t j = i;
    while (j < members.size() && members[j] / block == members[i] / block) ++j;
    if (j - i > busiest.devices.size()) {
      busiest.devices.assign(members.begin() + i, members.begin() + j);
    }
    i = j;
  }
  return busiest;
}

template <typename DeviceList>
void FillNode(const Machine& machine, const DeviceList& node, GroupShape& shape) {
  shape.per_node = static_cast<int64_t>(node.size());
  const int nic = machine.FindLinkClass(LinkKind::kNic);
  if (nic >= 0) shape.nics = CountInstances(machine, nic, node);
  const int pcie_switch = machine.FindLinkClass(LinkKind::kPcieSwitch);
  if (pcie_switch < 0) return;
  shape.switches = CountInstances(machine, pcie_switch, node);
  shape.nics_above_switches =
      nic >= 0 && machine.link_classes()[nic].instances_per_block <
                      machine.link_classes()[pcie_switch].instances_per_block;
}

bool JoinsByPcie(const Machine& machine) {
  const int intra = machine.intra_class();
  return intra >= 0 && machine.link_classes()[intra].kind == LinkKind::kPcie;
}

// The rails of ascending devices.
std::set<int64_t> RailsOf(const Machine& machine, int spine, absl::Span<const int64_t> devices) {
  std::set<int64_t> rails;
  for (const int64_t device : devices) {
    rails.insert(machine.LinkInstance(spine, device) %
                 machine.link_classes()[spine].instances_per_block);
  }
  return rails;
}

// Whether ascending members lie on other rails in some nodes than in others.
bool RailsDiffer(const Machine& machine, int spine, const std::vector<int64_t>& members) {
  std::optional<std::set<int64_t>> first;
  for (size_t begin = 0, end = 0; begin < members.size(); begin = end) {
    while (end < members.size() &&
           machine.DomainOf(members[end]) == machine.DomainOf(members[begin])) {
      ++end;
    }
    std::set<int64_t> rails =
        RailsOf(machine, spine, absl::MakeConstSpan(members).subspan(begin, end - begin));
    if (first.has_value() && *first != rails) return true;
    first = std::move(rails);
  }
  return false;
}

// Fills what concerns pods and rails. `all`: the members, if they lie unevenly in
// nodes, else empty.
void FillPods(const Machine& machine, int spine, const GroupPattern& group,
              std::vector<int64_t> all, GroupShape& shape) {
  const LinkClass& uplinks = machine.link_classes()[spine];
  const int64_t rails = uplinks.instances_per_block;
  if (rails > 1 && !all.empty() && RailsDiffer(machine, spine, all)) {
    shape.rail_change = shape.exchange_rail_change = 1;
  } else if (rails > 1 && JoinsByPcie(machine)) {
    shape.exchange_rail_change = 1 - 1 / static_cast<double>(shape.nics);
  }
  const auto pod = MembersOfFirstBlock(group, uplinks.devices_per_block);
  if (all.empty() && !pod) all = group.Members();
  const Busiest busiest = pod ? Busiest{} : BusiestBlock(all, uplinks.devices_per_block);
  shape.per_pod = static_cast<int64_t>(pod ? pod->size() : busiest.devices.size());
  shape.pods = pod ? shape.members / shape.per_pod : busiest.blocks;
  if (shape.rail_change > 0) {
    shape.pod_uplinks = static_cast<int64_t>(pod ? RailsOf(machine, spine, *pod).size()
                                                 : RailsOf(machine, spine, busiest.devices).size());
    return;
  }
  // Rails repeat from host to host, so those of a node are those of its pod.
  shape.pod_uplinks = std::min(rails, std::max<int64_t>(1, shape.nics));
  if (machine.spec().hosts_per_domain > 1) shape.pod_uplinks = std::min(rails, shape.per_pod);
}

// On a machine of equal hosts. `leaves`: there are members elsewhere too.
GroupShape ShapeAmongEquals(const Machine& machine, const GroupPattern& group, bool leaves) {
  GroupShape shape;
  shape.members = group.size();
  shape.per_section = shape.members;
  const int64_t node_size = machine.gpus_per_domain();
  std::vector<int64_t> all;  // only of groups that lie unevenly

  if (const auto node = MembersOfFirstBlock(group, node_size)) {
    FillNode(machine, *node, shape);
    shape.nodes = shape.members / shape.per_node;
  } else {
    all = group.Members();
    const Busiest busiest = BusiestBlock(all, node_size);
    FillNode(machine, busiest.devices, shape);
    shape.nodes = busiest.blocks;
  }

  shape.per_pod = shape.members;
  const int spine = machine.FindLinkClass(LinkKind::kSpine);
  if (spine >= 0 && (shape.nodes > 1 || leaves)) {
    FillPods(machine, spine, group, std::move(all), shape);
  }
  return shape;
}

// The members, which ascend, section by section.
SectionShapes ShapesOverSections(const Machine& machine, const std::vector<int64_t>& members) {
  SectionShapes shapes;
  for (size_t begin = 0, end = 0; begin < members.size(); begin = end) {
    const int section = machine.SectionOf(members[begin]);
    std::vector<int64_t> here;
    while (end < members.size() && machine.SectionOf(members[end]) == section) {
      here.push_back(members[end++] - machine.FirstDevice(section));
    }
    const bool leaves = here.size() < members.size();
    shapes.push_back(
        {section, ShapeAmongEquals(machine.section(section), GroupPattern::Of(here), leaves)});
  }
  GroupShape all;
  all.members = all.nodes = all.pods = 0;
  for (const SectionShape& at : shapes) {
    all.members += at.shape.members;
    all.nodes += at.shape.nodes;
    all.pods += at.shape.pods;
  }
  for (SectionShape& at : shapes) {
    at.shape.nodes_elsewhere = all.nodes - at.shape.nodes;
    at.shape.pods_elsewhere = all.pods - at.shape.pods;
    at.shape.members = all.members;
    at.shape.nodes = all.nodes;
    at.shape.pods = all.pods;
    at.shape.sections = static_cast<int64_t>(shapes.size());
  }
  return shapes;
}

}  // namespace

absl::StatusOr<SectionShapes> ShapesOf(const Machine& machine, const GroupPattern& group) {
  if (absl::Status status = CheckInside(machine, group); !status.ok()) return status;
  if (!machine.mixed()) return SectionShapes{{0, ShapeAmongEquals(machine, group, false)}};
  const int section = machine.SectionOf(group.devices.empty() ? group.base : group.devices.front());
  if (section != machine.SectionOf(LastOf(group))) {
    return ShapesOverSections(machine, group.Members());
  }
  GroupPattern here = group;
  here.base -= machine.FirstDevice(section);
  for (int64_t& device : here.devices) device -= machine.FirstDevice(section);
  return SectionShapes{{section, ShapeAmongEquals(machine.section(section), here, false)}};
}

absl::StatusOr<GroupShape> ShapeOf(const Machine& machine, const GroupPattern& group) {
  ASSIGN_OR_RETURN(const SectionShapes shapes, ShapesOf(machine, group));
  if (shapes.size() == 1) return shapes[0].shape;
  return absl::UnimplementedError(absl::StrCat("the group has members in ", shapes.size(),
                                               " sections of `", machine.spec().name,
                                               "`. Take one within a section."));
}

}  // namespace plancast
