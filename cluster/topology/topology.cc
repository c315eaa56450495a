#include "cluster/topology/topology.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/enum_names.h"
#include "cluster/topology/topology_builder.h"

namespace plancast {
namespace {

constexpr auto kKindNames = NamesOf<NodeKind>("GPU", "PCI", "NVS", "CPU", "NIC", "NET", "DEV");
constexpr auto kLinkNames = NamesOf<LinkType>("LOC", "NVL", "C2C", "PCI", "SYS", "NET");

std::string NodeName(const TopologyNode& node) {
  const absl::string_view kind = kKindNames[node.kind];
  if (node.kind == NodeKind::kGpu) return absl::StrCat(kind, "/", node.rank);
  if (node.id < 0) return absl::StrCat(kind, "/", node.id);
  return absl::StrCat(kind, "/", absl::Hex(node.id));
}

}  // namespace

absl::StatusOr<Topology> Topology::Create(const SystemElement& system, NcclVersion version) {
  return TopologyBuilder(version).Build(system);
}

int Topology::MinComputeCapability() const {
  int least = nodes_[Of(NodeKind::kGpu)[0]].compute_capability;
  for (int gpu : Of(NodeKind::kGpu)) least = std::min(least, nodes_[gpu].compute_capability);
  return least;
}

int Topology::MaxComputeCapability() const {
  int most = 0;
  for (int gpu : Of(NodeKind::kGpu)) most = std::max(most, nodes_[gpu].compute_capability);
  return most;
}

bool Topology::IsIntel() const {
  return FirstCpu().arch == "x86_64" && FirstCpu().vendor == "GenuineIntel";
}

bool Topology::IsAmd() const {
  return FirstCpu().arch == "x86_64" && FirstCpu().vendor == "AuthenticAMD";
}

Topology Topology::WithGpus(const std::vector<int>& gpus) const {
  Topology part = *this;
  part.of_[static_cast<int>(NodeKind::kGpu)] = gpus;
  auto gone = [&](int node) {
    return nodes_[node].kind == NodeKind::kGpu &&
           std::find(gpus.begin(), gpus.end(), node) == gpus.end();
  };
  for (size_t i = 0; i < part.nodes_.size(); ++i) {
    std::vector<int>& links = part.nodes_[i].links;
    if (gone(static_cast<int>(i))) links.clear();
    links.erase(
        std::remove_if(links.begin(), links.end(), [&](int link) { return gone(links_[link].to); }),
        links.end());
  }
  return part;
}

Topology Topology::WithoutNets() const {
  Topology part = *this;
  part.of_[static_cast<int>(NodeKind::kNet)].clear();
  for (TopologyNode& node : part.nodes_) {
    std::vector<int>& links = node.links;
    if (node.kind == NodeKind::kNet) links.clear();
    links.erase(
        std::remove_if(links.begin(), links.end(),
                       [&](int link) { return nodes_[links_[link].to].kind == NodeKind::kNet; }),
        links.end());
  }
  return part;
}

std::string Topology::DebugString() const {
  std::string text;
  for (const TopologyNode& node : nodes_) {
    if (node.links.empty()) continue;
    absl::StrAppend(&text, NodeName(node), "\n");
    for (int index : node.links) {
      const TopologyLink& link = links_[index];
      absl::StrAppendFormat(&text, "  %s %g -> %s\n", kLinkNames[link.type], link.gb_per_s,
                            NodeName(nodes_[link.to]));
    }
  }
  return text;
}

}  // namespace plancast
