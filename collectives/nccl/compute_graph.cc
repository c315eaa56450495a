#include "collectives/nccl/compute_graph.h"

#include <algorithm>

#include "cluster/topology/link_rates.h"
#include "collectives/nccl/channel_search.h"
#include "collectives/nccl/search_rules.h"

namespace plancast {
namespace {

constexpr int kMaxNvlsHeads = 32;
constexpr int kMaxDirectHeads = 8;

PathType Worse(PathType type) { return static_cast<PathType>(static_cast<int>(type) + 1); }

// The state of one call of ComputeGraph.
class GraphComputation {
 public:
  GraphComputation(const Topology& topology, const TopologyPaths& paths, bool inter,
                   const GraphRequest& request);

  NcclGraph Run();

 private:
  void SetLimits();
  void FirstPass();
  bool Loosen();
  bool Loosen217();
  bool LowerBandwidth();
  void Duplicate();
  void SecondPass();
  bool Raise();
  void Fall();
  void Search();
  bool Done() const;
  NcclGraph Result() const;

  bool old() const { return version_ == NcclVersion::k2_17; }

  const Topology& topology_;
  const TopologyPaths& paths_;
  const bool inter_;
  const NcclVersion version_;
  const int gpus_;
  const int capability_;
  const SearchRules& rules_;
  const std::vector<float>& ladder_;
  ChannelSearch search_;
  SearchBounds bounds_;
  float gpu_links_ = 0;  // that a graph of this pattern may use
  int cross_nic_ = 0;    // 1: any way (2.17), 2: in pairs of channels
  PathType least_intra_ = PathType::kLoc, least_inter_ = PathType::kPix;
  PathType greatest_intra_ = PathType::kSys, greatest_inter_ = PathType::kSys;
  bool try_same_ = true;
  size_t speed_ = 0;
  int64_t budget_ = 0;
  int steps_ = 0;
  ChannelPlan best_, plan_;
};

GraphComputation::GraphComputation(const Topology& topology, const TopologyPaths& paths, bool inter,
                                   const GraphRequest& request)
    : topology_(topology),
      paths_(paths),
      inter_(inter),
      version_(topology.version()),
      gpus_(topology.Count(NodeKind::kGpu)),
      capability_(topology.MinComputeCapability()),
      rules_(SearchRulesOf(version_)),
      ladder_(SpeedLadder(version_, capability_, inter)),
      search_(topology, paths, inter),
      bounds_(BoundsOf(topology, paths, inter)) {
  best_.pattern = request.pattern;
  best_.collnet = request.collnet;
  best_.min_channels = request.min_channels;
  best_.max_channels = request.max_channels;
}

void GraphComputation::SetLimits() {
  const NcclPattern pattern = best_.pattern;
  const bool nets = topology_.Count(NodeKind::kNet) > 1;
  const bool crosses = pattern == NcclPattern::kRing || pattern == NcclPattern::kBalancedTree ||
                       pattern == NcclPattern::kSplitTree;
  cross_nic_ = !nets ? 0 : old() ? 1 : crosses ? 2 : 0;
  if (old()) {
    least_intra_ = gpus_ == 1 ? PathType::kLoc : PathType::kNvl;
  } else {
    if (gpus_ > 1) {
      least_intra_ = paths_.LeastType(NodeKind::kGpu);
      greatest_intra_ = paths_.GreatestType(NodeKind::kGpu);
    }
    if (inter_) {
      least_inter_ = paths_.LeastType(NodeKind::kNet);
      greatest_inter_ = paths_.GreatestType(NodeKind::kNet);
      greatest_intra_ = greatest_inter_;
    }
    // Balanced trees sometimes come back through the CPU.
    if (version_ == NcclVersion::k2_30 && capability_ < 90) greatest_inter_ = PathType::kSys;
    try_same_ = pattern != NcclPattern::kNvls;
    if (pattern == NcclPattern::kNvls) {
      best_.max_channels = std::min(kMaxNvlsHeads, gpus_);
      if (!inter_) best_.min_channels = best_.max_channels;  // pull from all GPUs alike
    }
    if (pattern == NcclPattern::kCollNetDirect) {
      best_.max_channels = std::min(kMaxDirectHeads, gpus_);
    }
    // Two islands of NVLink: a tree will do better, but wants two channels, and as
    // many as the ring has.
    if (pattern == NcclPattern::kRing && best_.max_channels >= 2 && best_.min_channels == 1 &&
        paths_.SplitNvlink()) {
      best_.min_channels = 2;
    }
  }
  if (gpus_ == 1 && best_.pattern != NcclPattern::kRing) best_.pattern = NcclPattern::kTree;
  best_.type_intra = least_intra_;
  best_.type_inter = least_inter_;
  best_.same_channels = try_same_;
  gpu_links_ = bounds_.gpu_links;
  // Only rings come back to where they started.
  if (!old() && gpus_ > 1 && best_.pattern != NcclPattern::kRing) {
    gpu_links_ *= gpus_ * 1.0 / (gpus_ - 1);
  }
}

bool GraphComputation::Done() const {
  return steps_ == -1 || best_.channels * best_.bw_inter >= bounds_.gpu_links;
}

void GraphComputation::Search() {
  steps_ = plan_.same_channels ? rules_.same_channels_steps : rules_.attempt_steps;
  budget_ -= steps_;
  search_.Run(plan_, best_, steps_);
}

// Loosens the next rule, all before it being strict again.
bool GraphComputation::Loosen() {
  if (old()) return Loosen217();
  if (capability_ >= 90 && plan_.pattern == NcclPattern::kBalancedTree) {
    plan_.pattern = NcclPattern::kTree;
    return true;
  }
  plan_.pattern = best_.pattern;
  const PathType most = inter_ ? plan_.type_inter : greatest_intra_;
  if (plan_.type_intra < most && (best_.channels == 0 || plan_.type_intra < best_.type_intra)) {
    plan_.type_intra = Worse(plan_.type_intra);
    if (plan_.type_intra < PathType::kDis) return true;
  }
  plan_.type_intra = least_intra_;
  if (inter_ && plan_.type_inter < greatest_inter_ &&
      (best_.channels == 0 || plan_.type_inter < best_.type_inter ||
       plan_.type_inter < PathType::kPxn)) {
    plan_.type_inter = Worse(plan_.type_inter);
    if (plan_.type_inter < PathType::kDis) return true;
  }
  plan_.type_inter = least_inter_;
  if (cross_nic_ == 2 && plan_.cross_nic == 0 &&
      (best_.pattern == NcclPattern::kRing || best_.pattern == NcclPattern::kBalancedTree)) {
    plan_.cross_nic = 2;
    return true;
  }
  plan_.cross_nic = 0;
  return false;
}

// 2.17 knows neither chip-to-chip links nor what came with them.
bool GraphComputation::Loosen217() {
  auto worse = [](PathType type) {
    do {
      type = Worse(type);
    } while (type == PathType::kC2c || type == PathType::kP2c);
    return type;
  };
  const PathType most = inter_ ? plan_.type_inter : PathType::kSys;
  if (plan_.type_intra < most && (best_.channels == 0 || plan_.type_intra < best_.type_intra)) {
    plan_.type_intra = worse(plan_.type_intra);
    return true;
  }
  plan_.type_intra = least_intra_;
  if (inter_ && plan_.type_inter < PathType::kSys &&
      (best_.channels == 0 || plan_.type_inter < best_.type_inter ||
       plan_.type_inter < PathType::kPxn)) {
    plan_.type_inter = worse(plan_.type_inter);
    return true;
  }
  plan_.type_inter = PathType::kPix;
  if (cross_nic_ != 0 && plan_.cross_nic == 0) {
    plan_.cross_nic = cross_nic_;
    return true;
  }
  plan_.cross_nic = 0;
  if (plan_.pattern == NcclPattern::kSplitTree) {
    plan_.pattern = NcclPattern::kTree;
    return true;
  }
  plan_.pattern = best_.pattern;
  return false;
}

bool GraphComputation::LowerBandwidth() {
  if (speed_ + 1 >= ladder_.size()) return false;
  // NCCL's .49 is a double, its bandwidths are not.
  if (best_.channels > 0 && !(ladder_[speed_ + 1] / best_.bw_inter > .49)) return false;
  plan_.bw_intra = plan_.bw_inter = ladder_[++speed_];
  return true;
}

void GraphComputation::FirstPass() {
  plan_ = best_;
  while (speed_ + 1 < ladder_.size() &&
         (ladder_[speed_] > bounds_.best_path ||
          (!old() && ladder_[speed_] * best_.min_channels > gpu_links_))) {
    ++speed_;
  }
  plan_.bw_intra = plan_.bw_inter = ladder_[speed_];
  budget_ = rules_.total_steps;
  const bool through_amd = !old() && topology_.IsAmd();
  while (true) {
    Search();
    if (Done()) return;
    if (plan_.same_channels && !(through_amd && plan_.type_intra == PathType::kSys)) {
      plan_.same_channels = false;
      continue;
    }
    plan_.same_channels = try_same_;
    budget_ += steps_;
    if (budget_ < 0 && best_.channels > 0) return;
    if (!Loosen() && !LowerBandwidth()) return;
  }
}

// Fast channels are split in two.
void GraphComputation::Duplicate() {
  if (old()) {
    if (!((capability_ <= 80 && best_.bw_intra >= 25) ||
          (capability_ <= 90 && best_.bw_intra >= 50))) {
      return;
    }
  } else if (best_.channels == 0 || best_.pattern == NcclPattern::kNvls || best_.bw_intra < 25 ||
             (capability_ > 80 && best_.bw_intra < 50 && best_.channels > 4)) {
    return;
  }
  const int channels = best_.channels;
  const int twice = std::min(channels * 2, best_.max_channels);
  for (int c = channels; c < twice; ++c) {
    std::copy_n(best_.gpus.begin() + (c - channels) * gpus_, gpus_, best_.gpus.begin() + c * gpus_);
    std::copy_n(best_.nets.begin() + (c - channels) * 2, 2, best_.nets.begin() + c * 2);
  }
  best_.bw_intra /= (twice + channels - 1) / channels;
  best_.bw_inter /= (twice + channels - 1) / channels;
  best_.channels = twice;
}

// Whether a bandwidth was raised for one more search.
bool GraphComputation::Raise() {
  if (steps_ == 0 || speed_ == 0) return false;
  if (best_.pattern == NcclPattern::kRing) {
    if (old()) return false;
    plan_.bw_intra = plan_.bw_inter = ladder_[--speed_];
    return true;
  }
  if (!old() && best_.pattern == NcclPattern::kNvls && plan_.bw_inter == best_.bw_inter &&
      plan_.bw_inter < plan_.bw_intra * 2) {
    plan_.min_channels = plan_.max_channels = best_.channels;
    plan_.bw_inter = ladder_[--speed_];
    return true;
  }
  if (plan_.bw_intra == best_.bw_intra && plan_.bw_intra < plan_.bw_inter * 2) {
    plan_.bw_intra = ladder_[--speed_];
    return true;
  }
  return false;
}

void GraphComputation::SecondPass() {
  steps_ = -1;
  plan_ = best_;
  speed_ = 0;
  while (speed_ + 1 < ladder_.size() && ladder_[speed_] > best_.bw_inter) ++speed_;
  plan_.bw_intra = plan_.bw_inter = ladder_[speed_];
  plan_.min_channels = best_.channels;
  while (Raise()) Search();
}

// Nothing fits: the GPUs in their order.
void GraphComputation::Fall() {
  best_.gpus.resize(std::max<size_t>(best_.gpus.size(), gpus_));
  best_.nets.resize(std::max<size_t>(best_.nets.size(), 2));
  for (int gpu = 0; gpu < gpus_; ++gpu) best_.gpus[gpu] = gpu;
  best_.bw_intra = best_.bw_inter = 0.1;
  best_.type_intra = best_.type_inter = PathType::kSys;
  best_.nets[0] = best_.nets[1] = 0;
  if (version_ == NcclVersion::k2_30) {
    const std::vector<int>& first = search_.NetsToTry(PathType::kLoc, 0);
    const std::vector<int>& last = search_.NetsToTry(PathType::kLoc, gpus_ - 1);
    if (first.empty() || last.empty()) {
      best_.nets[0] = best_.nets[1] = -1;
      best_.bw_inter = 0;
      best_.type_inter = PathType::kDis;
    } else {
      best_.nets[0] = first[0];
      best_.nets[1] = last[0];
    }
  }
  best_.channels = 1;
}

NcclGraph GraphComputation::Result() const {
  NcclGraph graph;
  graph.pattern = best_.pattern;
  graph.cross_nic = best_.cross_nic;
  graph.num_channels = best_.channels;
  graph.bw_intra = best_.bw_intra;
  graph.bw_inter = best_.bw_inter;
  graph.latency_inter = best_.latency_inter;
  graph.type_intra = best_.type_intra;
  graph.type_inter = best_.type_inter;
  graph.same_channels = best_.same_channels;
  graph.num_hops = best_.hops;
  for (int c = 0; c < best_.channels; ++c) {
    NcclChannel channel;
    for (int end = 0; end < 2 && inter_; ++end) {
      const int net = best_.nets[c * 2 + end];
      if (net >= 0 && net < topology_.Count(NodeKind::kNet)) {
        channel.nets[end] = topology_.node(topology_.Of(NodeKind::kNet)[net]).dev;
      }
    }
    const int visited = best_.pattern == NcclPattern::kNvls ? 1 : gpus_;
    for (int step = 0; step < visited; ++step) {
      const int gpu = topology_.Of(NodeKind::kGpu)[best_.gpus[c * gpus_ + step]];
      channel.gpus.push_back(topology_.node(gpu).rank);
    }
    graph.channels.push_back(std::move(channel));
  }
  return graph;
}

NcclGraph GraphComputation::Run() {
  if (best_.pattern == NcclPattern::kNvls &&
      (old() || topology_.Count(NodeKind::kNvs) == 0 || capability_ < 90)) {
    return Result();
  }
  SetLimits();
  FirstPass();
  if (!old()) Duplicate();
  SecondPass();
  if (best_.channels == 0 && !best_.collnet && best_.pattern != NcclPattern::kNvls) Fall();
  if (old()) Duplicate();
  return Result();
}

}  // namespace

SearchBounds BoundsOf(const Topology& topology, const TopologyPaths& paths, bool inter) {
  SearchBounds bounds;
  if (!inter && topology.Count(NodeKind::kGpu) == 1) {
    bounds.best_path = LocalRate(topology.version());
    return bounds;
  }
  for (int gpu : topology.Of(NodeKind::kGpu)) {
    for (int to : topology.Of(inter ? NodeKind::kNet : NodeKind::kGpu)) {
      const TopologyPath& path = paths.Between(gpu, to);
      if (!path.links.empty()) bounds.best_path = std::max(bounds.best_path, path.gb_per_s);
    }
    float nvlink = 0, pci = 0;
    for (int index : topology.node(topology.node(gpu).device).links) {
      const TopologyLink& link = topology.links()[index];
      if (link.type == LinkType::kNvl) nvlink += link.gb_per_s;
      if (link.type == LinkType::kPci) pci = link.gb_per_s;
    }
    bounds.gpu_links = std::max(bounds.gpu_links, std::max(nvlink, pci));
  }
  return bounds;
}

NcclGraph ComputeGraph(const Topology& topology, const TopologyPaths& paths, bool inter,
                       const GraphRequest& request) {
  return GraphComputation(topology, paths, inter, request).Run();
}

}  // namespace plancast
