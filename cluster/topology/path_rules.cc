#include <algorithm>

#include "cluster/topology/paths.h"

// What NCCL makes of the plain paths: when GPUs may talk directly, what counts as near
// to a network device, and the ways around.

namespace plancast {
namespace {

constexpr int kMaxChannels = 64;

bool IsPowerOfTwo(int value) { return (value & (value - 1)) == 0; }

// The low bits of `value`, below power of two `end`, in reverse order.
int MirrorBits(int value, int end) {
  int mirror = 0;
  for (int bit = 1, to = end >> 1; bit < end; bit <<= 1, to >>= 1) {
    if (value & bit) mirror |= to;
  }
  return mirror;
}

// Of a path made of two: chip-to-chip to the CPU and PCIe from there is a type of
// its own.
PathType Merge(PathType a, PathType b, NcclVersion version) {
  const PathType worse = std::max(a, b), better = std::min(a, b);
  if (version != NcclVersion::k2_17 && worse == PathType::kPhb && better == PathType::kC2c) {
    return PathType::kP2c;
  }
  return worse;
}

}  // namespace

int TopologyPaths::NearestCpu(int gpu) const {
  const std::vector<int> cpus = topology_.version() == NcclVersion::k2_17
                                    ? topology_.Of(NodeKind::kCpu)
                                    : Nearest(gpu, NodeKind::kCpu);
  int nearest = -1;
  for (int cpu : cpus) {
    if (nearest < 0 || Between(gpu, cpu).hops() < Between(gpu, nearest).hops()) nearest = cpu;
  }
  return nearest;
}

// The path from `from` to `to` leads by way of `by`.
void TopologyPaths::Concatenate(int from, int by, int to) {
  const TopologyPath& first = Between(from, by);
  const TopologyPath& second = Between(by, to);
  TopologyPath path;
  path.links = first.links;
  path.links.insert(path.links.end(), second.links.begin(), second.links.end());
  path.gb_per_s = std::min(first.gb_per_s, second.gb_per_s);
  path.type = topology_.node(by).kind == NodeKind::kGpu
                  ? PathType::kPxn
                  : Merge(first.type, second.type, topology_.version());
  At(from, to) = std::move(path);
}

bool TopologyPaths::PeerToPeer(int a, int b) const {
  const TopologyNode& cpu = topology_.FirstCpu();
  PathType farthest = PathType::kPxb;
  if (topology_.version() == NcclVersion::k2_17) {
    const bool other_x86 = cpu.arch == "x86_64" && (topology_.IsIntel() || !topology_.IsAmd());
    farthest = cpu.arch == "arm64" || other_x86 ? PathType::kPxb : PathType::kSys;
  } else {
    const int gpus =
        std::max(topology_.Count(NodeKind::kDevice),
                 topology_.version() == NcclVersion::k2_30 ? 0 : topology_.Count(NodeKind::kGpu));
    if (topology_.IsAmd() && gpus <= 2) farthest = PathType::kSys;
  }
  return Between(a, b).type <= farthest;
}

bool TopologyPaths::NetworkIsFaster(int a, int b) const {
  float rate[2] = {0, 0};
  const int gpus[2] = {a, b};
  for (int i = 0; i < 2; ++i) {
    for (int net : topology_.Of(NodeKind::kNet)) {
      const TopologyPath& path = Between(gpus[i], net);
      if (path.type <= PathType::kPxb) rate[i] = std::max(rate[i], path.gb_per_s);
    }
  }
  const float inside = Between(a, b).gb_per_s;
  return rate[0] > inside && rate[1] > inside;
}

void TopologyPaths::DivertPeers() {
  for (int gpu : topology_.Of(NodeKind::kGpu)) {
    for (int peer : topology_.Of(NodeKind::kGpu)) {
      if (PeerToPeer(peer, gpu)) continue;
      if (const int cpu = NearestCpu(gpu); cpu >= 0) Concatenate(peer, cpu, gpu);
    }
    MarkNetworkPeers(gpu);
  }
}

// Between hosts of one description only NVLink joins GPUs; in a host the network is
// used where it is faster, but not instead of NVLink by way of another GPU.
void TopologyPaths::MarkNetworkPeers(int gpu) {
  for (int peer : topology_.Of(NodeKind::kGpu)) {
    if (peer == gpu) continue;
    TopologyPath& path = At(peer, gpu);
    const bool joined = path.type <= PathType::kNvb;
    const bool apart = topology_.node(peer).host != topology_.node(gpu).host && !joined;
    if (apart || (path.type != PathType::kNvb && NetworkIsFaster(peer, gpu))) {
      path.type = PathType::kNet;
    }
  }
}

void TopologyPaths::UseChipToChip() {
  for (int gpu : topology_.Of(NodeKind::kGpu)) {
    const int cpu = NearestCpu(gpu);
    if (cpu < 0) continue;
    const std::vector<int> nets = topology_.version() == NcclVersion::k2_30
                                      ? Nearest(gpu, NodeKind::kNet)
                                      : topology_.Of(NodeKind::kNet);
    for (int net : nets) {
      if (Merge(Between(gpu, cpu).type, Between(net, cpu).type, topology_.version()) !=
          PathType::kP2c) {
        continue;
      }
      At(gpu, net).type = std::min(PathType::kP2c, Between(gpu, net).type);
      At(net, gpu).type = std::min(PathType::kP2c, Between(net, gpu).type);
    }
  }
}

// The GPU that relays on a path with PXN.
int TopologyPaths::Relay(const TopologyPath& path) const {
  const bool devices = topology_.version() == NcclVersion::k2_30;
  for (int i = devices ? 1 : 0; i < path.hops(); ++i) {
    const int node = topology_.links()[path.links[i]].to;
    if (topology_.node(node).kind == NodeKind::kNvs) continue;
    if (topology_.node(node).kind == NodeKind::kGpu) return node;
    for (int link : topology_.node(node).links) {
      const int to = topology_.links()[link].to;
      if (topology_.node(to).kind == NodeKind::kGpu) return to;
    }
    return -1;
  }
  return -1;
}

bool TopologyPaths::GpuDirect(int gpu, int net, bool read) const {
  const TopologyNode& device = topology_.node(gpu);
  if (!topology_.node(net).gdr || !device.gdr) return false;
  const NcclVersion version = topology_.version();
  if (read && (version == NcclVersion::k2_17 || device.compute_capability < 80)) {
    bool nvlink = topology_.Count(NodeKind::kGpu) == 1;
    for (int peer : topology_.Of(NodeKind::kGpu)) {
      nvlink = nvlink || (peer != gpu && Between(gpu, peer).type == PathType::kNvl);
    }
    if (!nvlink) return false;
  }
  PathType distance = Between(gpu, net).type;
  if (distance == PathType::kPxn) {
    const int relay = Relay(Between(gpu, net));
    if (relay >= 0) distance = Between(relay, net).type;
  }
  return distance <= (version == NcclVersion::k2_17 ? PathType::kPxb : PathType::kP2c);
}

int TopologyPaths::LocalNet217(int gpu) const {
  PathType least = PathType::kSys;
  float most = 0;
  std::vector<int> nets;
  for (int net : topology_.Of(NodeKind::kNet)) {
    const TopologyPath& path = Between(net, gpu);
    if (path.gb_per_s > most || (path.gb_per_s == most && path.type < least)) {
      most = path.gb_per_s;
      least = path.type;
      nets.clear();
    }
    if (path.gb_per_s == most && path.type == least) nets.push_back(net);
  }
  if (nets.empty()) return -1;
  return first_[nets[std::max(0, topology_.node(gpu).dev) % nets.size()]];
}

// In the order of channels, up to where they repeat.
std::vector<int> TopologyPaths::LocalNets(int gpu) const {
  if (topology_.version() == NcclVersion::k2_17) {
    const int net = LocalNet217(gpu);
    return net < 0 ? std::vector<int>() : std::vector<int>{net};
  }
  const std::vector<int> nets = Nearest(gpu, NodeKind::kNet);
  if (nets.empty()) return {};
  const int count = static_cast<int>(nets.size());
  const int sharers = std::max<int>(1, Nearest(nets[0], NodeKind::kGpu).size());
  int start = std::max(0, topology_.node(gpu).dev) % sharers;
  if (IsPowerOfTwo(count)) start = MirrorBits(start, count);
  std::vector<int> order;
  for (int i = 0; i < (count + sharers - 1) / sharers; ++i) {
    order.push_back(first_[nets[(start + i) % count]]);
  }
  return order;
}

int TopologyPaths::LocalNet(int gpu, int channel) const {
  const std::vector<int> nets = LocalNets(gpu);
  return nets.empty() ? -1 : nets[channel % nets.size()];
}

int TopologyPaths::FindLocalGpu(int net) const {
  const std::vector<int> gpus = Nearest(net, NodeKind::kGpu);
  std::vector<std::vector<int>> nets;
  size_t longest = 0;
  for (int gpu : gpus) {
    nets.push_back(LocalNets(gpu));
    longest = std::max(longest, nets.back().size());
  }
  for (size_t channel = 0; channel < std::min<size_t>(longest, kMaxChannels); ++channel) {
    for (size_t i = 0; i < gpus.size(); ++i) {
      if (!nets[i].empty() && nets[i][channel % nets[i].size()] == net) return gpus[i];
    }
  }
  return -1;
}

// 2.17 looks at every GPU; the last one that will do relays, or the first whose own
// network device this is.
int TopologyPaths::RelayOf217(int net, int gpu) const {
  int relay = -1;
  for (int peer : topology_.Of(NodeKind::kGpu)) {
    const TopologyPath& own = Between(gpu, net);
    const TopologyPath& its = Between(peer, net);
    if (peer == gpu || its.type > PathType::kPxb || Between(peer, gpu).type > PathType::kNvl ||
        (its.gb_per_s <= own.gb_per_s && own.type <= PathType::kPxb)) {
      continue;
    }
    relay = peer;
    if (LocalNet217(peer) == first_[net]) break;
  }
  return relay;
}

// Only towards the network: NCCL receives at the GPU that is near, and sends by it.
void TopologyPaths::UseRelays() {
  const NcclVersion version = topology_.version();
  for (int net : topology_.Of(NodeKind::kNet)) {
    for (int gpu : topology_.Of(NodeKind::kGpu)) {
      const TopologyPath& own = Between(gpu, net);
      if (version == NcclVersion::k2_17) {
        const int relay = RelayOf217(net, gpu);
        if (relay >= 0) Concatenate(gpu, relay, net);
        DivertWithoutGpuDirect(net, gpu);
        continue;
      }
      const int relay = FindLocalGpu(first_[net]);
      if (relay >= 0 && relay != gpu) {
        const TopologyPath& its = Between(relay, net);
        const bool direct = version != NcclVersion::k2_30 || GpuDirect(relay, net, true);
        const PathType farthest = version == NcclVersion::k2_30 ? PathType::kP2c : PathType::kPxb;
        if (its.type <= farthest && direct && Between(relay, gpu).type <= PathType::kNvl &&
            topology_.node(relay).host == topology_.node(gpu).host &&
            (its.gb_per_s > own.gb_per_s || own.type > PathType::kPxn)) {
          Concatenate(gpu, relay, net);
        }
      }
      if (own.type < PathType::kPhb) DivertWithoutGpuDirect(net, gpu);
    }
  }
}

void TopologyPaths::DivertWithoutGpuDirect(int net, int gpu) {
  if (GpuDirect(gpu, net, false)) return;
  const int cpu = NearestCpu(gpu);
  if (cpu < 0) return;
  Concatenate(net, cpu, gpu);
  Concatenate(gpu, cpu, net);
}

}  // namespace plancast
