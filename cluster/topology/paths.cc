#include "cluster/topology/paths.h"

#include <algorithm>

#include "cluster/topology/link_rates.h"

namespace plancast {
namespace {

PathType TypeOf(LinkType type) {
  switch (type) {
    case LinkType::kNvl:
      return PathType::kNvl;
    case LinkType::kC2c:
      return PathType::kC2c;
    case LinkType::kPci:
      return PathType::kPix;
    case LinkType::kSys:
      return PathType::kSys;
    case LinkType::kLoc:
    case LinkType::kNet:
      break;
  }
  return PathType::kLoc;
}

}  // namespace

TopologyPaths::TopologyPaths(const Topology& topology) : topology_(topology) {
  const int nodes = static_cast<int>(topology.nodes().size());
  slot_.assign(nodes, -1);
  int slots = 0;
  first_.assign(nodes, -1);
  // Paths to devices of one number are kept with the first of them, as NCCL does.
  for (NodeKind kind : {NodeKind::kCpu, NodeKind::kGpu, NodeKind::kNet, NodeKind::kNvs}) {
    for (int node : topology.Of(kind)) {
      slot_[node] = slots++;
      for (int other : topology.Of(kind)) {
        const TopologyNode& a = topology.node(node);
        const TopologyNode& b = topology.node(other);
        if (a.id != b.id || a.host != b.host) continue;
        first_[node] = other;
        break;
      }
    }
  }
  reverse_.assign(topology.links().size(), -1);
  for (size_t i = 0; i < topology.links().size(); ++i) {
    const TopologyLink& link = topology.links()[i];
    for (int back : topology.node(link.to).links) {
      const TopologyLink& candidate = topology.links()[back];
      const bool fits = topology.version() != NcclVersion::k2_30 || candidate.type == link.type;
      if (candidate.to == link.from && fits) {
        reverse_[i] = back;
        break;
      }
    }
  }
  TopologyPath none;
  if (topology.version() == NcclVersion::k2_17) none.type = PathType::kLoc;
  paths_.assign(nodes, std::vector<TopologyPath>(slots, none));

  std::vector<NodeKind> kinds = {NodeKind::kCpu, NodeKind::kGpu, NodeKind::kNet};
  if (topology.version() != NcclVersion::k2_17) kinds.push_back(NodeKind::kNvs);
  for (NodeKind kind : kinds) {
    for (int base : topology.Of(kind)) FindPathsTo(base);
  }
  DivertPeers();
  if (topology.version() != NcclVersion::k2_17) UseChipToChip();
  UseRelays();
  local_gpu_.assign(nodes, -1);
  for (int net : topology.Of(NodeKind::kNet)) local_gpu_[net] = FindLocalGpu(net);
}

// Breadth first, from `base` outwards; a path that turns out better is walked again.
void TopologyPaths::FindPathsTo(int base) {
  TopologyPath& self = At(base, first_[base]);
  self.links.clear();
  self.gb_per_s = LocalRate(topology_.version());
  self.type = PathType::kLoc;
  std::vector<int> nodes = {base}, next;
  while (!nodes.empty()) {
    next.clear();
    for (int node : nodes) Relax(base, node, next);
    nodes.swap(next);
  }
}

void TopologyPaths::Relax(int base, int node, std::vector<int>& next) {
  const bool devices = topology_.version() == NcclVersion::k2_30;
  const TopologyNode& via = topology_.node(node);
  const NodeKind gpu_kind = devices ? NodeKind::kDevice : NodeKind::kGpu;
  const bool from_gpu = topology_.node(base).kind == NodeKind::kGpu;
  const int base_device = devices && from_gpu ? topology_.node(base).device : base;
  const int direct_hops = devices && from_gpu ? 2 : 1;  // of one NVLink
  for (int index : via.links) {
    const TopologyLink& link = topology_.links()[index];
    const TopologyNode& to = topology_.node(link.to);
    const TopologyPath& path = At(node, first_[base]);
    TopologyPath& known = At(link.to, first_[base]);
    const float rate = std::min(path.gb_per_s, link.gb_per_s);
    // Through a GPU leads NVLink to one other GPU, and nothing else.
    const bool to_rank = devices && link.type == LinkType::kLoc && to.kind == NodeKind::kGpu;
    if (node != base_device && via.kind == gpu_kind && !to_rank &&
        (link.type != LinkType::kNvl || to.kind != gpu_kind || path.hops() > direct_hops)) {
      continue;
    }
    PathType type = TypeOf(link.type);
    if (via.kind == NodeKind::kPci && to.kind == NodeKind::kPci) type = PathType::kPxb;
    if (link.type == LinkType::kPci && (via.kind == NodeKind::kCpu || to.kind == NodeKind::kCpu)) {
      type = PathType::kPhb;
    }
    const bool second_nvlink = devices ? path.hops() == direct_hops : path.hops() >= 1;
    if (via.kind == gpu_kind && path.type == PathType::kNvl && type == PathType::kNvl &&
        second_nvlink) {
      type = PathType::kNvb;
    }
    type = std::max(type, path.type);
    const bool better =
        devices
            ? type < known.type || (type == known.type && known.gb_per_s < rate) ||
                  (type == known.type && known.gb_per_s == rate && known.hops() > path.hops() + 1)
            : (known.gb_per_s == 0 || known.hops() > path.hops()) && known.gb_per_s < rate;
    if (!better || reverse_[index] < 0) continue;
    std::vector<int> links = {reverse_[index]};
    links.insert(links.end(), path.links.begin(), path.links.end());
    known.links = std::move(links);
    known.gb_per_s = rate;
    known.type = type;
    if (std::find(next.begin(), next.end(), link.to) == next.end()) next.push_back(link.to);
  }
}

std::vector<int> TopologyPaths::Nearest(int node, NodeKind kind, PathType* type) const {
  PathType least = PathType::kDis;
  float most = 0;
  std::vector<int> nearest;
  for (int to : topology_.Of(kind)) {
    const TopologyPath& path = Between(node, to);
    if (path.gb_per_s > most || (path.gb_per_s == most && path.type < least)) {
      most = path.gb_per_s;
      least = path.type;
      if (type != nullptr) *type = least;
      nearest.clear();
    }
    if (path.gb_per_s == most && path.type == least) nearest.push_back(to);
  }
  return nearest;
}

PathType TopologyPaths::LeastType(NodeKind kind) const {
  PathType least = PathType::kSys;
  for (int gpu : topology_.Of(NodeKind::kGpu)) {
    for (int to : topology_.Of(kind)) {
      if (gpu != to) least = std::min(least, Between(gpu, to).type);
    }
  }
  return least;
}

PathType TopologyPaths::GreatestType(NodeKind kind) const {
  PathType greatest = PathType::kLoc;
  for (int gpu : topology_.Of(NodeKind::kGpu)) {
    for (int to : topology_.Of(kind)) {
      if (gpu != to) greatest = std::max(greatest, Between(gpu, to).type);
    }
  }
  return greatest;
}

std::vector<std::vector<int>> TopologyPaths::Domains() const {
  const std::vector<int>& gpus = topology_.Of(NodeKind::kGpu);
  std::vector<size_t> domain(gpus.size());
  std::vector<std::vector<int>> domains(gpus.size());
  for (size_t g = 0; g < gpus.size(); ++g) {
    domain[g] = g;
    for (size_t p = 0; p < g; ++p) {
      if (Between(gpus[g], gpus[p]).type < PathType::kNet) {
        domain[g] = std::min(domain[g], domain[p]);
      }
    }
    domains[domain[g]].push_back(gpus[g]);
  }
  domains.erase(std::remove_if(domains.begin(), domains.end(),
                               [](const std::vector<int>& members) { return members.empty(); }),
                domains.end());
  return domains;
}

bool TopologyPaths::SplitNvlink() const {
  const std::vector<int>& gpus = topology_.Of(NodeKind::kGpu);
  std::vector<size_t> domain(gpus.size());
  for (size_t g = 0; g < gpus.size(); ++g) domain[g] = g;
  for (size_t g = 0; g < gpus.size(); ++g) {
    for (size_t p = g + 1; p < gpus.size(); ++p) {
      if (Between(gpus[g], gpus[p]).type == PathType::kNvl) domain[p] = domain[g];
    }
  }
  std::vector<int> members(gpus.size(), 0);
  for (size_t of : domain) ++members[of];
  return std::count_if(members.begin(), members.end(), [](int count) { return count > 1; }) == 2;
}

}  // namespace plancast
