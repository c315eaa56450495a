#include "collectives/nccl/p2p_channels.h"

#include <algorithm>

#include "cluster/topology/link_rates.h"
#include "collectives/nccl/search_rules.h"

namespace plancast {
namespace {

constexpr int kNetChannelRate = 14;  // GB/s that NCCL 2.30 expects of one channel
constexpr int kPeersPerBatch = 8;

int PowerOfTwoUp(int value) {
  int power = 1;
  while (power < value) power *= 2;
  return power;
}

// To peers on other nodes: as many channels as near network devices can be driven by.
int OverNetwork(const Topology& topology, const TopologyPaths& paths, int gpu) {
  if (topology.version() == NcclVersion::k2_17) return 2;
  const std::vector<int> cpus = paths.Nearest(gpu, NodeKind::kCpu);
  if (cpus.empty() || paths.LocalNet(gpu, 0) < 0) return 2;
  float to_cpu = 0;
  int hops = 1 << 20;
  for (int cpu : cpus) {
    const TopologyPath& path = paths.Between(gpu, cpu);
    if (path.hops() < hops) {
      hops = path.hops();
      to_cpu = path.gb_per_s;
    }
  }
  int nets = 0;
  float rate = 0;
  for (int channel = 0; channel < SearchRulesOf(topology.version()).max_channels; ++channel) {
    const int net = paths.LocalNet(gpu, channel);
    if (channel > 0 && net == paths.LocalNet(gpu, 0)) break;
    rate += paths.Between(gpu, net).gb_per_s;
    ++nets;
    if (rate >= to_cpu) break;
  }
  if (topology.version() == NcclVersion::k2_27) return std::max(2, nets);
  return std::max(nets, (static_cast<int>(rate) + kNetChannelRate - 1) / kNetChannelRate);
}

}  // namespace

int P2pChannelsOfPeers(const Topology& topology, const TopologyPaths& paths, bool inter) {
  int least = SearchRulesOf(topology.version()).max_channels;
  for (int gpu : topology.Of(NodeKind::kGpu)) {
    if (inter) least = std::min(least, OverNetwork(topology, paths, gpu));
    for (int peer : topology.Of(NodeKind::kGpu)) {
      if (peer == gpu) continue;
      const TopologyPath& path = paths.Between(peer, gpu);
      const bool nvlink = path.type == PathType::kNvl ||
                          (topology.version() == NcclVersion::k2_30 && path.type == PathType::kNvb);
      int channels = 2;
      if (nvlink) {
        const float link = NvlinkRate(topology.version(), topology.node(gpu).compute_capability);
        channels = 2 * std::max(1, static_cast<int>(path.gb_per_s / link));
      }
      least = std::min(least, channels);
    }
  }
  return least;
}

void SetP2pChannels(NcclCommunicator& communicator) {
  const int most = SearchRulesOf(communicator.version).max_channels;
  const int channels = std::max(1, std::min(communicator.channels, most));
  int& per_peer = communicator.p2p_channels_per_peer;
  communicator.p2p_channels = PowerOfTwoUp(channels);
  if (communicator.version != NcclVersion::k2_30) {
    if (communicator.version == NcclVersion::k2_27 && communicator.nodes > 1) {
      // Channels to the network shrink with the ranks that share them.
      int shared = 2;
      while (shared > 1 && int64_t{shared} * communicator.ranks > int64_t{4} * channels) {
        shared /= 2;
      }
      if (per_peer <= 2) per_peer = std::min(per_peer, shared);
    }
    per_peer = std::min(PowerOfTwoUp(std::min(per_peer, channels)), communicator.p2p_channels);
    return;
  }
  per_peer = PowerOfTwoUp(per_peer);
  if (communicator.nodes == 1) {
    per_peer = std::min(communicator.p2p_channels, per_peer);
    return;
  }
  const int64_t batches = (communicator.ranks + kPeersPerBatch - 1) / kPeersPerBatch;
  while (per_peer > 1 && per_peer * batches > communicator.p2p_channels) per_peer /= 2;
}

}  // namespace plancast
