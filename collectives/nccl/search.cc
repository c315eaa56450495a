#include "collectives/nccl/search.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cluster/topology/paths.h"
#include "collectives/nccl/compute_graph.h"
#include "collectives/nccl/p2p_channels.h"
#include "collectives/nccl/search_rules.h"

namespace plancast {
namespace {

constexpr int kMaxHosts = 1'000'000;

CpuArch ArchOf(const std::string& arch) {
  return arch == "arm64" ? CpuArch::kArm : arch == "ppc64" ? CpuArch::kPower : CpuArch::kX86;
}

CpuVendor VendorOf(const std::string& vendor) {
  if (vendor == "GenuineIntel") return CpuVendor::kIntel;
  if (vendor == "AuthenticAMD") return CpuVendor::kAmd;
  if (vendor == "CentaurHauls" || vendor == "  Shanghai  ") return CpuVendor::kZhaoxin;
  return CpuVendor::kUndefined;
}

// One node's topology and the paths in it: those of the host where it is whole.
class Domain {
 public:
  // `members` null: all GPUs.
  Domain(const Topology& host, const TopologyPaths& host_paths, const std::vector<int>* members,
         bool inter)
      : topology_(&host), paths_(&host_paths) {
    // Until 2.28 a single host forgot its network devices.
    const bool nets = inter || host.version() == NcclVersion::k2_30;
    if (members == nullptr && nets) return;
    part_ = members == nullptr ? host : host.WithGpus(*members);
    if (!nets) part_ = part_->WithoutNets();
    topology_ = &*part_;
    paths_ = &part_paths_.emplace(*part_);
  }
  Domain(const Domain&) = delete;

  const Topology& topology() const { return *topology_; }
  const TopologyPaths& paths() const { return *paths_; }

 private:
  const Topology* topology_;
  const TopologyPaths* paths_;
  std::optional<Topology> part_;
  std::optional<TopologyPaths> part_paths_;
};

bool SupportsNvls(const Topology& topology, int least_ranks, int nodes) {
  if (topology.MinComputeCapability() < 90 || topology.Count(NodeKind::kNvs) == 0) return false;
  switch (topology.version()) {
    case NcclVersion::k2_17:
      return nodes == 1 && least_ranks > 2;
    case NcclVersion::k2_27:
      return least_ranks > 2;
    case NcclVersion::k2_30:
      return least_ranks >= 2;
  }
  return false;
}

void ComputeGraphs(const Topology& topology, const TopologyPaths& paths, bool inter, bool nvls,
                   bool collnet, NcclNode& node) {
  const int max_channels = SearchRulesOf(topology.version()).max_channels;
  auto compute = [&](GraphRequest request) {
    return ComputeGraph(topology, paths, inter, request);
  };
  node.ring = compute({NcclPattern::kRing, false, 1, max_channels / 2});
  const int channels = node.ring.num_channels;
  const bool old = topology.version() == NcclVersion::k2_17;
  node.tree = compute({NcclPattern::kBalancedTree, false, old ? 1 : channels, channels});
  if (collnet) {
    node.collnet_chain = compute({NcclPattern::kTree, true, channels, channels});
    if (!old) node.collnet_direct = compute({NcclPattern::kCollNetDirect, true, 1, max_channels});
  }
  if (nvls && !old) node.nvls = compute({NcclPattern::kNvls, false, 1, max_channels});
}

// What holds for all nodes of a communicator.
void Agree(const NcclGraph& graph, bool first, NcclGraph& agreed) {
  if (first) {
    agreed = graph;
    return;
  }
  agreed.num_channels = std::min(agreed.num_channels, graph.num_channels);
  agreed.same_channels = agreed.same_channels && graph.same_channels;
  agreed.bw_intra = std::min(agreed.bw_intra, graph.bw_intra);
  agreed.bw_inter = std::min(agreed.bw_inter, graph.bw_inter);
  agreed.type_intra = std::max(agreed.type_intra, graph.type_intra);
  agreed.type_inter = std::max(agreed.type_inter, graph.type_inter);
  agreed.cross_nic = std::max(agreed.cross_nic, graph.cross_nic);
}

std::vector<RankPaths> Summarise(const Topology& topology, const TopologyPaths& paths) {
  std::vector<int> gpus = topology.Of(NodeKind::kGpu);
  auto by_rank = [&](int a, int b) { return topology.node(a).rank < topology.node(b).rank; };
  std::sort(gpus.begin(), gpus.end(), by_rank);
  auto summary = [&](int from, int to) {
    const TopologyPath& path = paths.Between(from, to);
    return PathSummary{path.type, path.gb_per_s, path.hops()};
  };
  std::vector<RankPaths> all;
  for (int gpu : gpus) {
    RankPaths rank;
    rank.rank = topology.node(gpu).rank;
    rank.dev = topology.node(gpu).dev;
    for (int other : gpus) rank.to_gpus.push_back(summary(gpu, other));
    for (int net : topology.Of(NodeKind::kNet)) rank.to_nets.push_back(summary(gpu, net));
    all.push_back(std::move(rank));
  }
  return all;
}

int DistinctHeads(const NcclGraph& nvls) {
  std::set<int> heads;
  for (const NcclChannel& channel : nvls.channels) heads.insert(channel.gpus[0]);
  return static_cast<int>(heads.size());
}

// Channels that collectives use, once rings and trees are connected.
int ConnectedChannels(const NcclCommunicator& comm, int search_channels) {
  const int most = SearchRulesOf(comm.version).max_channels;
  int channels = std::min(most, 2 * search_channels);
  if (comm.collnet_supported && comm.collnet_chain.bw_intra > comm.collnet_chain.bw_inter &&
      comm.ranks > comm.nodes) {
    channels = std::min(most, channels + channels / 2);
  }
  // Few GPUs with fast networks need more blocks than channels.
  if (comm.version != NcclVersion::k2_17 && comm.min_compute_capability >= 90 && comm.nodes > 1 &&
      comm.ring.bw_intra > 45 && channels < 16) {
    channels = std::min(most, 2 * channels);
  }
  return channels;
}

int NvlsBlocks(const NcclCommunicator& comm) {
  if (!comm.nvls_supported) return 0;
  if (comm.version == NcclVersion::k2_17 || comm.min_compute_capability < 100) return 16;
  return comm.nodes > 1 ? 32 : 24;
}

}  // namespace

absl::StatusOr<NcclSearchResult> SearchGraphs(const SystemElement& system, int hosts,
                                              NcclVersion version, const SearchOptions& options) {
  if (hosts < 1 || hosts > kMaxHosts) {
    return absl::InvalidArgumentError(
        absl::StrCat(hosts, " hosts; it has to be between 1 and ", kMaxHosts, "."));
  }
  ASSIGN_OR_RETURN(const Topology topology, Topology::Create(system, version));
  const TopologyPaths paths(topology);
  const std::vector<std::vector<int>> domains = paths.Domains();
  NcclSearchResult result;
  result.hosts = hosts;
  result.ranks_per_host = topology.Count(NodeKind::kGpu);
  NcclCommunicator& comm = result.communicator;
  comm.version = version;
  comm.nodes = hosts * static_cast<int>(domains.size());
  comm.ranks = hosts * result.ranks_per_host;
  if (comm.nodes > 1 && topology.Count(NodeKind::kNet) == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("no <net> elements, and ", comm.nodes,
                     " nodes have to be joined. Fill network devices in, or ask for one host."));
  }
  int least_ranks = result.ranks_per_host;
  for (const std::vector<int>& domain : domains) {
    least_ranks = std::min(least_ranks, static_cast<int>(domain.size()));
    comm.max_local_ranks = std::max(comm.max_local_ranks, static_cast<int>(domain.size()));
  }
  comm.min_compute_capability = topology.MinComputeCapability();
  comm.max_compute_capability = topology.MaxComputeCapability();
  comm.cpu_arch = ArchOf(topology.FirstCpu().arch);
  comm.cpu_vendor = VendorOf(topology.FirstCpu().vendor);
  comm.has_nvswitch = topology.Count(NodeKind::kNvs) > 0;
  comm.nvls_supported = SupportsNvls(topology, least_ranks, comm.nodes);
  bool reducing = false;
  for (int net : topology.Of(NodeKind::kNet)) {
    reducing = reducing || topology.node(net).collectives;
  }
  comm.collnet_supported =
      options.collnet && reducing && comm.nodes >= comm.collnet_nodes_threshold;
  comm.all_nvlink = true;

  for (const std::vector<int>& members : domains) {
    const bool inter = comm.nodes > 1;
    const Domain domain(topology, paths, domains.size() > 1 ? &members : nullptr, inter);
    NcclNode node;
    for (int gpu : members) node.ranks.push_back(topology.node(gpu).rank);
    std::sort(node.ranks.begin(), node.ranks.end());
    ComputeGraphs(domain.topology(), domain.paths(), inter, comm.nvls_supported,
                  comm.collnet_supported, node);
    const bool first = result.nodes.empty();
    Agree(node.ring, first, comm.ring);
    Agree(node.tree, first, comm.tree);
    Agree(node.collnet_chain, first, comm.collnet_chain);
    Agree(node.collnet_direct, first, comm.collnet_direct);
    Agree(node.nvls, first, comm.nvls);
    const int heads = DistinctHeads(node.nvls);
    comm.nvls_heads = first ? heads : std::min(comm.nvls_heads, heads);
    const SearchBounds bounds = BoundsOf(domain.topology(), domain.paths(), inter);
    result.best_path_gb_per_s = std::max<double>(result.best_path_gb_per_s, bounds.best_path);
    result.gpu_gb_per_s = std::max<double>(result.gpu_gb_per_s, bounds.gpu_links);
    comm.all_nvlink = comm.all_nvlink && members.size() > 1 &&
                      domain.paths().GreatestType(NodeKind::kGpu) < PathType::kPix;
    const int peer = P2pChannelsOfPeers(domain.topology(), domain.paths(), inter);
    comm.p2p_channels_per_peer = first ? peer : std::min(comm.p2p_channels_per_peer, peer);
    if (domains.size() == 1) result.paths = Summarise(domain.topology(), domain.paths());
    result.nodes.push_back(std::move(node));
  }
  if (domains.size() > 1) result.paths = Summarise(topology, paths);
  result.search_channels = std::min(comm.ring.num_channels, comm.tree.num_channels);
  comm.channels = ConnectedChannels(comm, result.search_channels);
  comm.nvls_channels = NvlsBlocks(comm);
  SetP2pChannels(comm);
  return result;
}

}  // namespace plancast
