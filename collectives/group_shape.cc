#include "collectives/group_shape.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"

namespace plancast {
namespace {

using Devices = absl::InlinedVector<int64_t, 16>;

absl::Status CheckInside(const Machine& machine, const GroupPattern& group) {
  int64_t last = group.base;
  for (const GroupPattern::Dim& dim : group.dims) {
    if (dim.extent < 1 || dim.stride < 1 || dim.extent > machine.num_devices()) {
      return absl::InvalidArgumentError(
          absl::StrCat("a group has a dimension of ", dim.extent, " devices ", dim.stride,
                       " apart; both have to be positive and within the machine's ",
                       machine.num_devices(), " devices."));
    }
    last += (dim.extent - 1) * dim.stride;
  }
  if (!group.devices.empty()) last = group.devices.back();
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

template <typename DeviceList>
int64_t CountSwitches(const Machine& machine, const DeviceList& devices) {
  const int64_t gpus = machine.spec().gpus_per_host;
  int64_t count = 0, last = -1;
  for (const int64_t device : devices) {
    const int64_t pcie_switch = device % gpus / machine.spec().gpus_per_switch;
    if (pcie_switch != last) ++count;
    last = pcie_switch;
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
  if (machine.FindLinkClass(LinkKind::kHostBridge) >= 0) {
    shape.switches = CountSwitches(machine, node);
  }
}

}  // namespace

absl::StatusOr<GroupShape> ShapeOf(const Machine& machine, const GroupPattern& group) {
  if (absl::Status status = CheckInside(machine, group); !status.ok()) return status;
  GroupShape shape;
  shape.members = group.size();
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
  if (spine < 0 || shape.nodes == 1) return shape;
  const int64_t pod_size = machine.spec().hosts_per_pod * machine.spec().gpus_per_host;
  const auto pod = MembersOfFirstBlock(group, pod_size);
  if (pod && static_cast<int64_t>(pod->size()) == shape.members) return shape;
  if (all.empty() && !pod) all = group.Members();
  const Busiest busiest = pod ? Busiest{} : BusiestBlock(all, pod_size);
  shape.per_pod = static_cast<int64_t>(pod ? pod->size() : busiest.devices.size());
  shape.pods = pod ? shape.members / shape.per_pod : busiest.blocks;
  // Rails repeat from host to host, so those of a node are those of its pod.
  const int64_t rails = machine.link_classes()[spine].instances_per_block;
  shape.pod_uplinks = std::min(rails, std::max<int64_t>(1, shape.nics));
  if (machine.spec().hosts_per_domain > 1) shape.pod_uplinks = std::min(rails, shape.per_pod);
  return shape;
}

}  // namespace plancast
