#include <algorithm>

#include "collectives/nccl/channel_search.h"

// What a channel takes of links, and the order in which the search tries GPUs and
// network devices.

namespace plancast {
namespace {

// Sums of many small bandwidths are compared: three digits, as NCCL keeps them.
// Rounds half away from zero, as roundf does, without calling it.
void Subtract(float& rate, float bw) {
  const double exact = (rate - bw) * 1000;
  const auto whole = static_cast<int64_t>(exact < 0 ? exact - 0.5 : exact + 0.5);
  rate = static_cast<float>(whole) / 1000;
}

// NCCL compares whole GB/s.
struct Score {
  int gpu;
  int net_rate, net_pci_rate, net_hops;
  int rate, hops;
  int distance;  // in the list, from the GPU before

  bool operator<(const Score& other) const {
    if (net_rate != other.net_rate) return net_rate > other.net_rate;
    if (net_pci_rate != other.net_pci_rate) return net_pci_rate > other.net_pci_rate;
    if (net_hops != other.net_hops) return net_hops < other.net_hops;
    if (rate != other.rate) return rate > other.rate;
    if (hops != other.hops) return hops < other.hops;
    return distance < other.distance;
  }
};

}  // namespace

bool ChannelSearch::Take(int from, int to, float times) {
  const TopologyPath& path = paths_.Between(from, to);
  if (version_ == NcclVersion::k2_17 && path.links.empty()) return true;
  auto inside = [&](int node) {
    const NodeKind kind = topology_.node(node).kind;
    return kind == NodeKind::kGpu || kind == NodeKind::kNvs;
  };
  const bool intra = inside(from) && inside(to);
  const PathType farthest = intra ? plan_->type_intra : plan_->type_inter;
  if (path.type >= PathType::kDis) return false;
  // Fractions, of CollNet, are not held to the type, as in NCCL.
  if (times == 1 && path.type > farthest) return false;
  const bool tree = plan_->pattern == NcclPattern::kTree ||
                    plan_->pattern == NcclPattern::kBalancedTree ||
                    plan_->pattern == NcclPattern::kSplitTree;
  if (version_ != NcclVersion::k2_17 && times == 1 && tree &&
      paths_.Between(to, from).type > farthest) {
    return false;
  }
  const float bw = (intra ? plan_->bw_intra : plan_->bw_inter) * times;
  const bool from_gpu = topology_.node(from).kind == NodeKind::kGpu;
  const int taken = TakeLinks(path, from_gpu, path.hops(), bw);
  if (taken < path.hops()) {
    TakeLinks(path, from_gpu, taken, -bw);
    return false;
  }
  plan_->hops = static_cast<int>(plan_->hops + times * path.hops());
  return true;
}

// Of the first `count` links of a path; how many had enough.
int ChannelSearch::TakeLinks(const TopologyPath& path, bool from_gpu, int count, float bw) {
  float pci = bw;
  if (path.type == PathType::kPhb && from_gpu) {
    for (int link : path.links) {
      // Intel's root complexes cut traffic between GPUs into small packets.
      if (intel_[topology_.links()[link].to]) pci = bw * 6 / 5;
    }
  }
  for (int i = 0; i < count; ++i) {
    LinkState& link = links_[path.links[i]];
    const float forward = link.pci ? pci : bw;
    float back = 0;
    if (link.from_outside && !from_gpu) back += forward / 8;
    if (link.all_back) back += forward;
    if (link.rate < forward || (back != 0 && links_[link.reverse].rate < back)) return i;
    Subtract(link.rate, forward);
    if (back != 0) Subtract(links_[link.reverse].rate, back);
  }
  return count;
}

void ChannelSearch::ChargeNet(int net, float bw) {
  const TopologyNode& device = topology_.node(nets_[net]);
  for (size_t other = 0; other < nets_.size(); ++other) {
    const TopologyNode& candidate = topology_.node(nets_[other]);
    if (candidate.asic == device.asic && candidate.port == device.port) net_rate_[other] -= bw;
  }
}

// GB/s, whole, or -1 where the GPU has no PCIe link.
int ChannelSearch::PciRate(int gpu) const {
  const auto [there, back] = pci_links_[gpu];
  if (there < 0) return -1;
  return static_cast<int>(std::min(links_[there].rate, links_[back].rate));
}

// `sort_by_net`: 0 not, 1 the next GPU goes back to the network, -1 a later one does.
ChannelSearch::Steps ChannelSearch::NextGpus(int gpu, int sort_by_net) const {
  if (version_ != NcclVersion::k2_17 && topology_.Count(NodeKind::kNvs) > 0) {
    return Neighbours(gpu);
  }
  const uint64_t flag = uint64_t{1} << plan_->channels;
  const int net = sort_by_net == 0 ? -1 : nets_[plan_->nets[plan_->channels * 2]];
  absl::InlinedVector<Score, 16> scores;
  for (int i = 1; i < gpus(); ++i) {
    const int other = (gpu + i) % gpus();
    const TopologyPath& path = paths_.Between(gpus_[gpu], gpus_[other]);
    if (path.links.empty() || (used_[other] & flag) != 0) continue;
    Score score{other, 0, 0, 0, static_cast<int>(path.gb_per_s), path.hops(), i};
    if (net >= 0) {
      const TopologyPath& from_net = paths_.Between(net, gpus_[other]);
      score.net_hops = from_net.hops();
      score.net_pci_rate = PciRate(other);
      score.net_rate = static_cast<int>(from_net.gb_per_s);
    }
    scores.push_back(score);
  }
  std::sort(scores.begin(), scores.end());
  Steps next;
  for (const Score& score : scores) next.push_back(score.gpu);
  // All alike and the way back far: from the end.
  const bool alike = std::all_of(scores.begin(), scores.end(), [&](const Score& score) {
    return score.rate == scores[0].rate && score.hops == scores[0].hops;
  });
  if (sort_by_net == -1 && alike) std::reverse(next.begin(), next.end());
  return next;
}

// NVSwitches like few peers: only the GPUs before and behind.
ChannelSearch::Steps ChannelSearch::Neighbours(int gpu) const {
  const uint64_t flag = uint64_t{1} << plan_->channels;
  const int before = (gpu - 1 + gpus()) % gpus(), behind = (gpu + 1) % gpus();
  Steps next;
  auto add = [&](int candidate) {
    const bool used = (used_[candidate] & flag) != 0;
    const bool joined = !paths_.Between(gpus_[gpu], gpus_[candidate]).links.empty();
    if (candidate == gpu || used || !joined) return;
    if (next.empty() || next[0] != candidate) next.push_back(candidate);
  };
  switch (plan_->pattern) {
    case NcclPattern::kRing:
      add(before);
      add(behind);
      break;
    case NcclPattern::kSplitTree:
    case NcclPattern::kBalancedTree:
      add(behind);
      add(before);
      break;
    default:
      add(behind);
  }
  return next;
}

// Those that the GPUs would choose for their channels.
std::vector<int> ChannelSearch::PreferredNets(int gpu) const {
  std::vector<std::vector<int>> own;
  for (int g = 0; g < gpus(); ++g) {
    if (gpu >= 0 && gpu != g) continue;
    own.emplace_back();
    for (int channel = 0; channel < rules_.max_channels; ++channel) {
      const int net = paths_.LocalNet(gpus_[g], channel);
      const int index =
          static_cast<int>(std::find(nets_.begin(), nets_.end(), net) - nets_.begin());
      if (net < 0 || (!own.back().empty() && own.back()[0] == index)) break;
      own.back().push_back(index);
    }
  }
  std::vector<int> nets;
  auto add = [&](int net) {
    if (std::find(nets.begin(), nets.end(), net) == nets.end()) nets.push_back(net);
  };
  if (topology_.hosts() == 1) {
    for (const std::vector<int>& list : own) {
      for (int net : list) add(net);
    }
    return nets;
  }
  for (int channel = 0; channel < rules_.max_channels; ++channel) {
    for (const std::vector<int>& list : own) {
      if (channel < static_cast<int>(list.size())) add(list[channel]);
    }
  }
  return nets;
}

// `nets`, and behind them all others up to that distance.
std::vector<int> ChannelSearch::FarNets(PathType farthest, int gpu, std::vector<int> nets) const {
  const bool old = version_ == NcclVersion::k2_17;
  for (int type = 0; type <= static_cast<int>(farthest); ++type) {
    for (int g = 0; g < gpus(); ++g) {
      if (gpu >= 0 && gpu != g) continue;
      std::vector<int> at_type;
      for (int n = 0; n < static_cast<int>(nets_.size()); ++n) {
        if (!old && n >= rules_.max_channels) break;
        if (static_cast<int>(paths_.Between(gpus_[g], nets_[n]).type) == type) at_type.push_back(n);
      }
      // 2.17 has no preferred devices; every GPU starts elsewhere.
      if (old && !at_type.empty()) {
        const int dev = std::max(0, topology_.node(gpus_[g]).dev);
        std::rotate(at_type.begin(), at_type.begin() + dev % at_type.size(), at_type.end());
      }
      for (int net : at_type) {
        if (std::find(nets.begin(), nets.end(), net) == nets.end()) nets.push_back(net);
      }
    }
  }
  return nets;
}

const std::vector<int>& ChannelSearch::NetsToTry(PathType farthest, int gpu) {
  const auto [entry, added] = to_try_.try_emplace({farthest, gpu});
  if (added) {
    std::vector<int> preferred;
    if (version_ != NcclVersion::k2_17) preferred = PreferredNets(gpu);
    entry->second = FarNets(farthest, gpu, std::move(preferred));
  }
  return entry->second;
}

}  // namespace plancast
