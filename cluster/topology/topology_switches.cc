#include <algorithm>

#include "cluster/topology/link_rates.h"
#include "cluster/topology/topology_builder.h"

namespace plancast {
namespace {

// Broadcom's switches of the fourth and fifth generation show themselves as two
// levels of switches though all ports have the full rate. 0: another switch.
int TwoLevelGeneration(uint64_t device, int level, NcclVersion version) {
  constexpr uint64_t kFamily = 0xfffffffffffff000;
  if ((device & kFamily) == 0x1000c0101000a000) return 4;
  if (version == NcclVersion::k2_17) return 0;
  return (device & kFamily) == (0x1000c03010000000 + static_cast<uint64_t>(level) * 0x1000) ? 5 : 0;
}

}  // namespace

// Makes one switch of two levels that are one in hardware.
void TopologyBuilder::FlattenSwitches() {
  for (size_t top = 0; top < nodes_.size(); ++top) {
    if (nodes_[top].kind != NodeKind::kPci || removed_[top]) continue;
    const int generation = TwoLevelGeneration(nodes_[top].pci_device, 0, version_);
    if (generation == 0) continue;
    std::vector<int> below;
    std::vector<Link>& links = links_[top];
    for (size_t i = 0; i < links.size();) {
      const TopologyNode& sub = nodes_[links[i].to];
      const bool same = version_ == NcclVersion::k2_17
                            ? sub.pci_device == nodes_[top].pci_device
                            : TwoLevelGeneration(sub.pci_device, 1, version_) == generation;
      if (sub.kind == NodeKind::kPci && same) {
        below.push_back(links[i].to);
        links.erase(links.begin() + i);
      } else {
        ++i;
      }
    }
    for (int sub : below) {
      for (const Link& link : links_[sub]) {
        if (link.to == static_cast<int>(top)) continue;
        links.push_back(link);
        for (Link& back : links_[link.to]) {
          if (back.to != sub) continue;
          back.to = static_cast<int>(top);
          break;
        }
      }
      removed_[sub] = true;
      for (std::vector<Link>& others : links_) {
        others.erase(std::remove_if(others.begin(), others.end(),
                                    [&](const Link& link) { return link.to == sub; }),
                     others.end());
      }
      links_[sub].clear();
    }
    // Not again, however it looks.
    nodes_[top].pci_device |= 0xffff;
    if (TwoLevelGeneration(nodes_[top].pci_device, 0, version_) != 0) nodes_[top].pci_device = 0;
    top = static_cast<size_t>(-1);  // anew: what is below may be two levels as well
  }
}

void TopologyBuilder::ConnectCpus() {
  for (size_t a = 0; a < nodes_.size(); ++a) {
    if (nodes_[a].kind != NodeKind::kCpu) continue;
    const TopologyNode& cpu = nodes_[a];
    const float rate = SocketRate(version_, cpu.arch, cpu.vendor, cpu.family, cpu.model);
    for (size_t b = 0; b < nodes_.size(); ++b) {
      if (a == b || nodes_[b].kind != NodeKind::kCpu || nodes_[b].host != cpu.host) continue;
      Connect(static_cast<int>(a), static_cast<int>(b), LinkType::kSys, rate);
    }
  }
}

// The PCI tree is walked downwards first.
void TopologyBuilder::PutUplinkLast(int node, int up) {
  std::vector<Link>& links = links_[node];
  if (up >= 0) {
    const auto found =
        std::find_if(links.begin(), links.end(), [&](const Link& link) { return link.to == up; });
    if (found != links.end()) std::rotate(found, found + 1, links.end());
  }
  for (size_t i = 0; i < links.size(); ++i) {
    if (links[i].type == LinkType::kPci && links[i].to != up) PutUplinkLast(links[i].to, node);
  }
}

}  // namespace plancast
