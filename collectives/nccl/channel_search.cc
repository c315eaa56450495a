#include "collectives/nccl/channel_search.h"

#include <algorithm>

namespace plancast {

ChannelSearch::ChannelSearch(const Topology& topology, const TopologyPaths& paths, bool inter)
    : topology_(topology),
      paths_(paths),
      rules_(SearchRulesOf(topology.version())),
      version_(topology.version()),
      inter_(inter),
      gpus_(topology.Of(NodeKind::kGpu)),
      nets_(topology.Of(NodeKind::kNet)) {
  for (const TopologyNode& node : topology.nodes()) {
    intel_.push_back(node.kind == NodeKind::kCpu && node.arch == "x86_64" &&
                     node.vendor == "GenuineIntel");
  }
  for (const TopologyLink& link : topology.links()) AddLink(link);
  for (int gpu : gpus_) pci_links_.push_back(PciLinksOf(topology.node(gpu).device));
  for (size_t n = 0; n < nets_.size(); ++n) {
    const TopologyNode& net = topology.node(nets_[n]);
    net_rate_.push_back(net.gb_per_s);
    connections_.push_back(net.max_connections);
    for (size_t other = 0; other <= n; ++other) {
      const TopologyNode& candidate = topology.node(nets_[other]);
      if (candidate.id != net.id || candidate.host != net.host) continue;
      first_net_.push_back(static_cast<int>(other));
      break;
    }
  }
  used_.assign(gpus_.size(), 0);
  const auto index = [&](int node) {
    const auto found = std::find(gpus_.begin(), gpus_.end(), node);
    return found == gpus_.end() ? -1 : static_cast<int>(found - gpus_.begin());
  };
  for (int net : nets_) {
    local_gpu_.push_back(index(paths.LocalGpu(net)));
    nearest_gpus_.emplace_back();
    PathType type = PathType::kDis;
    const std::vector<int> nearest = paths.Nearest(net, NodeKind::kGpu, &type);
    if (type == PathType::kDis) continue;
    for (int gpu : nearest) nearest_gpus_.back().push_back(index(gpu));
  }
}

void ChannelSearch::AddLink(const TopologyLink& link) {
  const TopologyNode& to = topology_.node(link.to);
  const NodeKind gpu_kind = version_ == NcclVersion::k2_30 ? NodeKind::kDevice : NodeKind::kGpu;
  LinkState state = {link.gb_per_s, link.type == LinkType::kPci,
                     to.kind == gpu_kind && to.compute_capability < 80,
                     to.kind == NodeKind::kCpu && link.type == LinkType::kNvl &&
                         (version_ == NcclVersion::k2_17 || to.arch == "ppc64"),
                     -1};
  for (int back : to.links) {
    const TopologyLink& candidate = topology_.links()[back];
    if (candidate.to != link.from) continue;
    if (version_ != NcclVersion::k2_17 && candidate.type != link.type) continue;
    state.reverse = back;
    break;
  }
  if (state.reverse < 0) state.from_outside = state.all_back = false;
  links_.push_back(state);
}

std::array<int, 2> ChannelSearch::PciLinksOf(int device) const {
  for (int index : topology_.node(device).links) {
    const TopologyLink& link = topology_.links()[index];
    if (link.type != LinkType::kPci) continue;
    for (int back : topology_.node(link.to).links) {
      if (topology_.links()[back].to == device) return {index, back};
    }
  }
  return {-1, -1};
}

void ChannelSearch::Run(ChannelPlan& plan, ChannelPlan& best, int& steps) {
  plan.gpus.resize(static_cast<size_t>(plan.max_channels) * gpus_.size());
  plan.nets.resize(static_cast<size_t>(plan.max_channels) * 2);
  plan.channels = 0;
  plan_ = &plan;
  best_ = &best;
  steps_ = &steps;
  NextChannel();
}

void ChannelSearch::NextChannel() {
  const int last = gpus() - 1;
  if (inter_) {
    const NcclPattern pattern = plan_->pattern;
    FromNet({pattern == NcclPattern::kRing        ? last
             : pattern == NcclPattern::kSplitTree ? 1
                                                  : 0,
             -1});
    return;
  }
  const Ends ends = {-1, plan_->pattern == NcclPattern::kRing ? last : -1};
  if (plan_->pattern == NcclPattern::kNvls) {
    TryGpu(-1, plan_->channels, 0, ends, Order::kFree);
    return;
  }
  if (plan_->channels == 0) {
    TryGpu(-1, 0, 0, ends, Order::kPci);
  } else {
    TryGpu(-1, Replay(-1), 0, ends, Order::kReplay);
  }
  if (plan_->same_channels && plan_->channels > 0) return;
  for (int gpu = 0; gpu < gpus(); ++gpu) TryGpu(-1, gpu, 0, ends, Order::kFree);
}

void ChannelSearch::FromNet(Ends ends) {
  const std::vector<int>& nets = NetsToTry(plan_->type_inter, -1);
  const bool heads =
      plan_->pattern == NcclPattern::kNvls || plan_->pattern == NcclPattern::kCollNetDirect;
  bool head_found = false;
  for (size_t i = 0; i < nets.size(); ++i) {
    if (heads && head_found) return;
    const size_t rotated = version_ == NcclVersion::k2_17 ? i : (plan_->channels + i) % nets.size();
    FromNetDevice(nets[rotated], static_cast<int>(nets.size()), ends, &head_found);
  }
}

void ChannelSearch::FromNetDevice(int net, int tried, Ends ends, bool* head_found) {
  ChannelPlan& plan = *plan_;
  const TopologyNode& device = topology_.node(nets_[net]);
  const float bw = static_cast<int>(plan.bw_inter);
  if (plan.collnet && !device.collectives) return;
  if (net_rate_[net] < bw) return;
  const bool old = version_ == NcclVersion::k2_17;
  if (old && connections_[net] == 0) return;
  if (!old && plan.pattern == NcclPattern::kRing && plan.cross_nic == 2 && plan.channels % 2 == 1 &&
      first_net_[net] != plan.nets[(plan.channels - 1) * 2 + 1]) {
    return;
  }
  plan.nets[plan.channels * 2] = first_net_[net];
  plan.latency_inter = device.latency_us;
  ChargeNet(net, bw);
  --connections_[net];
  if (plan.pattern == NcclPattern::kNvls || plan.pattern == NcclPattern::kCollNetDirect) {
    const int gpu = local_gpu_[net];
    bool used = plan.channels >= tried || gpu < 0;
    for (int c = 0; c < plan.channels; ++c) used = used || plan.gpus[c * gpus()] == gpu;
    if (!used) {
      TryGpu(nets_[net], gpu, 0, ends, Order::kFree);
      *head_found = true;
    }
  } else {
    if (plan.channels > 0 && (old || plan.same_channels)) {
      TryGpu(nets_[net], Replay(-1), 0, ends, Order::kReplay);
    }
    if (plan.channels == 0 || !plan.same_channels) {
      if (plan.channels == 0 && (old || topology_.Count(NodeKind::kNvs) == 0)) {
        // The order of the bus gives a reference, apart from the budget.
        int steps = rules_.pci_order_steps;
        int* budget = std::exchange(steps_, &steps);
        TryGpu(nets_[net], 0, 0, ends, Order::kPci);
        steps_ = budget;
        if (steps == -1) *steps_ = -1;
      }
      if (old) {
        StartAtLocalGpus217(net, bw, ends);
      } else {
        StartAtLocalGpus(net, ends);
      }
    }
  }
  ++connections_[net];
  ChargeNet(net, -bw);
}

void ChannelSearch::StartAtLocalGpus(int net, Ends ends) {
  if (local_gpu_[net] >= 0) TryGpu(nets_[net], local_gpu_[net], 0, ends, Order::kFree);
  for (int gpu : nearest_gpus_[net]) {
    if (gpu != local_gpu_[net]) TryGpu(nets_[net], gpu, 0, ends, Order::kFree);
  }
}

void ChannelSearch::StartAtLocalGpus217(int net, float bw, Ends ends) {
  float most = 0;
  int hops = 0xfffffff;
  for (int gpu : gpus_) {
    const TopologyPath& path = paths_.Between(nets_[net], gpu);
    if (path.gb_per_s > most) {
      most = path.gb_per_s;
      hops = path.hops();
    } else if (path.gb_per_s == most) {
      hops = std::min(hops, path.hops());
    }
  }
  if (most < bw) return;
  // GPUs with a PCIe link first.
  for (bool without : {false, true}) {
    for (int gpu = 0; gpu < gpus(); ++gpu) {
      const TopologyPath& path = paths_.Between(nets_[net], gpus_[gpu]);
      if (path.gb_per_s != most || path.hops() != hops || (PciRate(gpu) <= 0) != without) continue;
      TryGpu(nets_[net], gpu, 0, ends, Order::kFree);
    }
  }
}

void ChannelSearch::TryGpu(int from, int gpu, int step, Ends ends, Order order) {
  if (from >= 0 && !Take(from, gpus_[gpu], 1)) return;
  const uint64_t flag = uint64_t{1} << plan_->channels;
  used_[gpu] ^= flag;
  AtGpu(gpu, step, ends, order);
  used_[gpu] ^= flag;
  if (from >= 0) Give(from, gpus_[gpu], 1);
}

void ChannelSearch::AtGpu(int gpu, int step, Ends ends, Order order) {
  if (*steps_ <= 0) return;
  --*steps_;
  ChannelPlan& plan = *plan_;
  plan.gpus[plan.channels * gpus() + step] = gpu;
  if (step == ends.to_net) {
    if (inter_) BackToNet(gpu, step, ends, order);
  } else if (plan.pattern == NcclPattern::kNvls) {
    TryNvls(gpu);
  } else if (plan.pattern == NcclPattern::kCollNetDirect) {
    TryCollNetDirect(gpu);
  } else if (step < gpus() - 1) {
    ToNextGpu(gpu, step, ends, order);
  } else if (step == ends.to_first) {
    const int first = gpus_[plan.gpus[plan.channels * gpus()]];
    if (!Take(gpus_[gpu], first, 1)) return;
    Finish();
    Give(gpus_[gpu], first, 1);
  } else {
    Finish();
  }
}

void ChannelSearch::BackToNet(int gpu, int step, Ends ends, Order order) {
  ChannelPlan& plan = *plan_;
  const bool balanced = plan.pattern == NcclPattern::kBalancedTree;
  const std::vector<int>& nets = NetsToTry(plan.type_inter, gpu);
  for (int net : nets) {
    if (!NetFits(net, step)) continue;
    // A balanced tree leaves by its first two GPUs, half by each.
    const int next = balanced && step == 0 ? 1 : -1;
    const float bw = plan.bw_inter;
    if (balanced) plan.bw_inter = bw / 2;
    const bool taken = Take(gpus_[gpu], nets_[net], 1);
    plan.bw_inter = bw;
    if (!taken) continue;
    plan.nets[plan.channels * 2 + 1] = first_net_[net];
    AtGpu(gpu, step, {next, ends.to_first}, order);
    if (balanced) plan.bw_inter = bw / 2;
    Give(gpus_[gpu], nets_[net], 1);
    plan.bw_inter = bw;
  }
}

bool ChannelSearch::NetFits(int net, int step) const {
  const ChannelPlan& plan = *plan_;
  const int start = plan.nets[plan.channels * 2];
  const TopologyNode& from = topology_.node(nets_[start]);
  const TopologyNode& to = topology_.node(nets_[net]);
  const int number = first_net_[net];
  const bool newest = version_ == NcclVersion::k2_30;
  if (newest && to.plane >= 0 && from.plane >= 0 && to.plane != from.plane) return false;
  if (plan.pattern == NcclPattern::kTree && number != start) return false;
  const bool pairs = version_ != NcclVersion::k2_17 && plan.cross_nic == 2;
  if (plan.pattern == NcclPattern::kRing && pairs) {
    if (plan.channels % 2 == 1 && number != plan.nets[(plan.channels - 1) * 2]) return false;
  } else if (plan.cross_nic == 0) {
    if (newest && to.rail >= 0 && from.rail >= 0) {
      if (to.rail != from.rail) return false;
    } else if (to.asic != from.asic || to.port != from.port) {
      return false;
    }
  }
  return plan.pattern != NcclPattern::kBalancedTree || step == 0 ||
         number == plan.nets[plan.channels * 2 + 1];
}

void ChannelSearch::ToNextGpu(int gpu, int step, Ends ends, Order order) {
  if (order != Order::kFree) {
    const int next = order == Order::kPci ? step + 1 : Replay(step);
    TryGpu(gpus_[gpu], next, step + 1, ends, order);
    return;
  }
  const int sort_by_net = ends.to_net == -1 ? 0 : ends.to_net == step + 1 ? 1 : -1;
  for (int to : NextGpus(gpu, sort_by_net)) TryGpu(gpus_[gpu], to, step + 1, ends, order);
}

int ChannelSearch::Replay(int step) const {
  return plan_->gpus[(plan_->channels - 1) * gpus() + step + 1];
}

// The head takes twice what the others take: its own share as well.
void ChannelSearch::TryNvls(int head) {
  const int nvs = topology_.Of(NodeKind::kNvs)[0];
  auto times = [&](int gpu) { return gpu == head ? 2.0f : 1.0f; };
  int down = 0;
  while (down < gpus() && Take(nvs, gpus_[down], times(down))) ++down;
  if (down == gpus()) {
    int up = 0;
    while (up < gpus() && Take(gpus_[up], nvs, times(up))) ++up;
    if (up == gpus()) Finish();
    while (up > 0) {
      --up;
      Give(gpus_[up], nvs, times(up));
    }
  }
  while (down > 0) {
    --down;
    Give(nvs, gpus_[down], times(down));
  }
}

void ChannelSearch::TryCollNetDirect(int head) {
  const float share = 1.0 / (gpus() - 1);
  int out = 0;
  while (out < gpus() && Take(gpus_[head], gpus_[out], share)) ++out;
  if (out == gpus()) {
    int in = 0;
    while (in < gpus() && Take(gpus_[in], gpus_[head], share)) ++in;
    if (in == gpus()) {
      int step = 1;
      for (int gpu = 0; gpu < gpus(); ++gpu) {
        if (gpu != head) plan_->gpus[plan_->channels * gpus() + step++] = gpu;
      }
      Finish();
    }
    while (in > 0) Give(gpus_[--in], gpus_[head], share);
  }
  while (out > 0) Give(gpus_[head], gpus_[--out], share);
}

// A channel is complete.
void ChannelSearch::Finish() {
  if (*steps_ <= 0) return;
  --*steps_;
  ChannelPlan& plan = *plan_;
  ++plan.channels;
  if (Better()) {
    *best_ = plan;
    if (plan.channels == plan.max_channels) *steps_ = -1;
  }
  if (plan.channels < plan.max_channels) NextChannel();
  --plan.channels;
}

bool ChannelSearch::Better() const {
  const ChannelPlan& plan = *plan_;
  const ChannelPlan& best = *best_;
  if (plan.channels < plan.min_channels) return false;
  if (plan.pattern == NcclPattern::kNvls) {
    return (plan.channels > best.channels && plan.channels <= gpus()) ||
           plan.channels * plan.bw_inter > best.channels * best.bw_inter;
  }
  const float bw = plan.channels * plan.bw_intra, known = best.channels * best.bw_intra;
  if (bw != known) return bw > known;
  return plan.pattern == best.pattern && plan.cross_nic == best.cross_nic && plan.hops < best.hops;
}

}  // namespace plancast
