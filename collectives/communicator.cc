#include "collectives/communicator.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/types/span.h"
#include "base/check.h"
#include "cluster/topology/link_rates.h"
#include "collectives/nccl/search_rules.h"

namespace plancast {
namespace {

// NVLinks carry 25 GB/s each in one direction, from the fifth generation on 50.
constexpr double kNvlinkBefore5 = 25, kNvlink5 = 50;
constexpr double kPcieShare = 0.75;    // NCCL plans with 12 of 16 GB/s, and so on
constexpr double kTableLatency = 2.7;  // µs, a hop of a ring by LL
constexpr int kMostRings = 32, kMostChannels = 64;

using Ladder = absl::Span<const float>;

// The fastest speed up to `most`, or the slowest of all.
double SpeedUpTo(Ladder ladder, double most) {
  for (const double speed : ladder) {
    if (speed <= most * (1 + 1e-9)) return speed;
  }
  return ladder.back();
}

// Climbs while the speed is below `wanted` and the next one is at most `most`.
double Raise(Ladder ladder, double speed, double wanted, double most) {
  for (auto it = ladder.rbegin(); it != ladder.rend() && speed < wanted; ++it) {
    if (*it > speed && *it <= most * (1 + 1e-9)) speed = *it;
  }
  return speed;
}

// Few wide channels are cut into twice as many.
void Duplicate(int capability, NcclGraph& graph) {
  if (graph.bw_intra < 25) return;
  if (capability > 80 && graph.bw_intra < 50 && graph.num_channels > 4) return;
  graph.num_channels = std::min(2 * graph.num_channels, kMostRings);
  graph.bw_intra /= 2;
  graph.bw_inter /= 2;
}

// The generation of GPU that came with a link.
int CapabilityOf(absl::string_view link) {
  if (link == "nvlink2" || link == "pcie3") return 70;
  if (link == "nvlink3" || link == "pcie4" || link == "xgmi") return 80;
  if (link == "nvlink4" || link == "pcie5") return 90;
  return 100;
}

// What a machine's own figures say, without NCCL.
struct Links {
  int capability = 80, most_capability = 80;  // of the oldest and the newest devices
  double device = 0;                          // of a device inside its node, GB/s
  double nic = 0;                             // of an interface, GB/s
  double nic_latency = 0;                     // µs
  double nic_bytes_per_s = 0;
  bool nvlink = true, nvswitch = false;

  explicit Links(const Machine& machine) {
    const Machine::Spec& spec = machine.spec();
    capability = most_capability = CapabilityOf(spec.intra_link);
    nvlink = !absl::StartsWith(spec.intra_link, "pcie");
    nvswitch = spec.topology == "nvswitch" || spec.topology == "nvl72";
    device = spec.intra_bytes_per_s * 1e-9;
    const int index = machine.FindLinkClass(LinkKind::kNic);
    if (index < 0) return;  // several interfaces of a device are one link
    nic_bytes_per_s = machine.link_classes()[index].bytes_per_s;
    nic = nic_bytes_per_s * 1e-9;
    nic_latency = machine.link_classes()[index].latency_s * 1e6;
  }

  // Down to what the other hosts of a communicator can do as well.
  void Take(const Links& other) {
    capability = std::min(capability, other.capability);
    most_capability = std::max(most_capability, other.most_capability);
    device = std::min(device, other.device);
    nic = std::min(nic, other.nic);
    nic_bytes_per_s = std::min(nic_bytes_per_s, other.nic_bytes_per_s);
    nic_latency = std::max(nic_latency, other.nic_latency);
    nvlink = nvlink && other.nvlink;
    nvswitch = nvswitch && other.nvswitch;
  }

  static Links Of(const Machine& machine, const SectionShapes& shapes) {
    Links links(machine.section(shapes[0].section));
    for (const SectionShape& at : shapes) links.Take(Links(machine.section(at.section)));
    return links;
  }
};

// The nodes of all sections as if they were alike: NCCL counts the ranks of the fullest
// and opens the channels of the narrowest.
GroupShape AsAlike(const SectionShapes& shapes) {
  GroupShape all = shapes[0].shape;
  for (const SectionShape& at : shapes) {
    all.per_node = std::max(all.per_node, at.shape.per_node);
    all.nics = std::min(all.nics, at.shape.nics);
  }
  return all;
}

// The same as a release plans with.
struct Rates {
  int capability = 80;
  double total = 0, nic = 0;  // of a device inside its node, of an interface; GB/s
  Ladder intra, inter;        // speeds of a channel to try
};

Rates RatesOf(const Links& links, NcclVersion version) {
  Rates rates;
  rates.capability = links.capability;
  const double link = links.capability >= 100 ? kNvlink5 : kNvlinkBefore5;
  rates.total =
      links.device * (links.nvlink ? NvlinkRate(version, links.capability) / link : kPcieShare);
  rates.nic = links.nic;
  rates.intra = SpeedLadder(version, links.capability, false);
  rates.inter = SpeedLadder(version, links.capability, true);
  return rates;
}

void FillOneNode(const Rates& rates, int members, NcclCommunicator& comm) {
  NcclGraph& ring = comm.ring;
  double best = 0;
  for (const double speed : rates.intra) {
    const int channels = std::min(kMostRings, static_cast<int>(rates.total / speed + 1e-9));
    if (channels * speed <= best) continue;
    if (best > 0 && speed / ring.bw_intra <= 0.49) break;
    best = channels * speed;
    ring.num_channels = channels;
    ring.bw_intra = ring.bw_inter = speed;
  }
  if (ring.num_channels == 0) {
    ring.num_channels = 1;
    ring.bw_intra = ring.bw_inter = rates.intra.back();
  }
  Duplicate(rates.capability, ring);
  comm.tree = ring;
  comm.tree.pattern = NcclPattern::kBalancedTree;
  NcclGraph& nvls = comm.nvls;
  nvls.num_channels = std::min(members, kMostRings);
  nvls.bw_intra = SpeedUpTo(rates.intra, rates.total / (nvls.num_channels + 1));
  nvls.bw_inter = Raise(rates.intra, nvls.bw_intra, 2 * nvls.bw_intra, rates.total);
}

void FillNetwork(const Rates& rates, const GroupShape& shape, NcclCommunicator& comm) {
  const double members = static_cast<double>(shape.per_node);
  NcclGraph& ring = comm.ring;
  ring.num_channels = static_cast<int>(std::clamp<int64_t>(shape.nics, 1, kMostRings));
  const double nic = rates.nic;
  // A ring leaves out one of the links between the members of each node.
  double most = nic;
  const double inside =
      members > 1 ? rates.total * members / (members - 1) / ring.num_channels : nic;
  most = std::min(most, inside);
  ring.bw_intra = ring.bw_inter = SpeedUpTo(rates.inter, most);
  ring.same_channels = ring.num_channels == 1;
  Duplicate(rates.capability, ring);
  NcclGraph& tree = comm.tree;
  tree = ring;
  tree.pattern = rates.capability >= 90 ? NcclPattern::kTree : NcclPattern::kBalancedTree;
  const double chain =
      members > 1 ? rates.total * members / (members - 1) / tree.num_channels : rates.total;
  tree.bw_intra = Raise(rates.inter, tree.bw_intra, 2 * tree.bw_inter, chain);
  NcclGraph& nvls = comm.nvls;
  nvls.num_channels = static_cast<int>(std::min<int64_t>(shape.per_node, kMostRings));
  nvls.bw_intra = SpeedUpTo(rates.inter, std::min(nic, rates.total / (members + 1)));
  nvls.bw_inter = Raise(rates.inter, nvls.bw_intra, 2 * nvls.bw_intra, nic);
}

using Key =
    std::tuple<double, int, int, double, double, bool, bool, int64_t, int64_t, int64_t, int64_t>;

NcclCommunicator CommunicatorOf(const Links& links, const GroupShape& shape, NcclVersion version) {
  const Rates rates = RatesOf(links, version);
  NcclCommunicator comm;
  comm.version = version;
  comm.nodes = static_cast<int>(shape.nodes);
  comm.ranks = static_cast<int>(shape.members);
  comm.max_local_ranks = static_cast<int>(shape.per_node);
  comm.min_compute_capability = links.capability;
  comm.max_compute_capability = links.most_capability;
  comm.has_nvswitch = links.nvswitch;
  comm.all_nvlink = links.nvlink;
  const int least = version == NcclVersion::k2_30 ? 2 : 3;
  comm.nvls_supported = links.nvswitch && rates.capability >= 90 && shape.per_node >= least;
  const PathType inside = shape.per_node == 1 ? PathType::kLoc
                          : links.nvlink      ? PathType::kNvl
                                              : PathType::kPhb;
  comm.ring.pattern = NcclPattern::kRing;
  comm.nvls.pattern = NcclPattern::kNvls;
  if (shape.nodes == 1) {
    FillOneNode(rates, static_cast<int>(shape.members), comm);
  } else {
    FillNetwork(rates, shape, comm);
  }
  // NCCL's table has InfiniBand in mind; slower fabrics add what they take longer.
  const double slower = links.nic_latency - kTableLatency;
  for (NcclGraph* graph : {&comm.ring, &comm.tree, &comm.nvls}) {
    if (shape.nodes > 1) graph->latency_inter = std::max(0.0, slower);
    graph->type_intra = inside;
    graph->type_inter = PathType::kPix;
  }
  if (!comm.nvls_supported) comm.nvls = {};
  comm.channels = std::min(2 * comm.ring.num_channels, kMostChannels);
  if (rates.capability >= 90 && shape.nodes > 1 && comm.ring.bw_intra > 45 && comm.channels < 16) {
    comm.channels *= 2;
  }
  comm.nvls_heads = comm.nvls.num_channels;
  comm.nvls_channels = 16;
  if (rates.capability >= 100) comm.nvls_channels = shape.nodes > 1 ? 32 : 24;
  return comm;
}

const GroupTuners* TunersOf(const Links& links, const GroupShape& shape) {
  if (shape.members < 2) return nullptr;
  thread_local absl::flat_hash_map<Key, std::unique_ptr<GroupTuners>> remembered;
  const Key key = {links.nic_latency, links.capability, links.most_capability,
                   links.device,      links.nic,        links.nvlink,
                   links.nvswitch,    shape.nodes,      shape.members,
                   shape.per_node,    shape.nics};
  auto it = remembered.find(key);
  if (it == remembered.end()) {
    if (remembered.size() >= 4096) remembered.clear();
    auto choice = NcclTuner::Create(CommunicatorOf(links, shape, NcclVersion::k2_27));
    auto time = NcclTuner::Create(CommunicatorOf(links, shape, NcclVersion::k2_30));
    PLANCAST_CHECK_OK(choice);
    PLANCAST_CHECK_OK(time);
    const double wire = static_cast<double>(shape.nics) * links.nic_bytes_per_s;
    auto tuners =
        std::make_unique<GroupTuners>(GroupTuners{*std::move(choice), *std::move(time), wire});
    it = remembered.emplace(key, std::move(tuners)).first;
  }
  return it->second.get();
}

}  // namespace

NcclCommunicator CommunicatorOf(const Machine& machine, const GroupShape& shape,
                                NcclVersion version) {
  return CommunicatorOf(Links(machine), shape, version);
}

NcclCommunicator CommunicatorOf(const Machine& machine, const SectionShapes& shapes,
                                NcclVersion version) {
  return CommunicatorOf(Links::Of(machine, shapes), AsAlike(shapes), version);
}

const GroupTuners* TunersOf(const Machine& machine, const GroupShape& shape) {
  return TunersOf(Links(machine), shape);
}

const GroupTuners* TunersOf(const Machine& machine, const SectionShapes& shapes) {
  return TunersOf(Links::Of(machine, shapes), AsAlike(shapes));
}

}  // namespace plancast
