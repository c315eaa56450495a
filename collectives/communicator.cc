#include "collectives/communicator.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/types/span.h"
#include "base/check.h"

namespace plancast {
namespace {

// Speeds that NCCL's search tries for a channel, GB/s, by generation (NCCL.md 1.5).
constexpr double kIntraOld[] = {40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3};
constexpr double kInterOld[] = {48, 30, 28, 24, 20, 18,  15,  12,  10, 9,
                                7,  6,  5,  4,  3,  2.4, 1.2, .24, .12};
constexpr double kIntraHopper[] = {60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3};
constexpr double kInterHopper[] = {48, 45, 42, 40, 30,  24,  22,  20, 17.5,
                                   15, 12, 6,  3,  2.4, 1.2, .24, .12};
constexpr double kIntraBlackwell[] = {90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18};
constexpr double kInterBlackwell[] = {96, 86,   80, 48, 45.1, 42, 40,  30,  24,  22,
                                      20, 17.5, 15, 12, 6,    3,  2.4, 1.2, .24, .12};
// Of a link's rate, what NCCL plans with: 240 of 300 GB/s, 370.8 of 450, 721.8 of
// 900 (NCCL.md 1.2); of PCIe 12 of 16.
constexpr double kHopperShare = 370.8 / 450, kNvlinkShare = 0.802, kPcieShare = 0.75;
constexpr double kTableLatency = 2.7;  // µs, a hop of a ring by LL
constexpr int kMostRings = 32, kMostChannels = 64;

struct Ladder {
  absl::Span<const double> intra, inter;
};

Ladder LadderOf(int capability) {
  if (capability >= 100) return {kIntraBlackwell, kInterBlackwell};
  if (capability >= 90) return {kIntraHopper, kInterHopper};
  return {kIntraOld, kInterOld};
}

// The fastest speed up to `most`, or the slowest of all.
double SpeedUpTo(absl::Span<const double> ladder, double most) {
  for (const double speed : ladder) {
    if (speed <= most * (1 + 1e-9)) return speed;
  }
  return ladder.back();
}

// Climbs while the speed is below `wanted` and the next one is at most `most`.
double Raise(absl::Span<const double> ladder, double speed, double wanted, double most) {
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

struct Rates {
  int capability = 80;
  double total = 0;        // of a device inside its node, as NCCL counts it, GB/s
  double nic = 0;          // of an interface, GB/s
  double nic_latency = 0;  // µs
  bool nvlink = true, nvswitch = false;
};

Rates RatesOf(const Machine& machine) {
  const Machine::Spec& spec = machine.spec();
  Rates rates;
  rates.capability = CapabilityOf(spec.intra_link);
  rates.nvlink = !absl::StartsWith(spec.intra_link, "pcie");
  const double share = !rates.nvlink            ? kPcieShare
                       : rates.capability == 90 ? kHopperShare
                                                : kNvlinkShare;
  rates.total = spec.intra_bytes_per_s * 1e-9 * share;
  const int nic = machine.FindLinkClass(LinkKind::kNic);
  if (nic >= 0) {  // several interfaces of a device are one link
    rates.nic = machine.link_classes()[nic].bytes_per_s * 1e-9;
    rates.nic_latency = machine.link_classes()[nic].latency_s * 1e6;
  }
  rates.nvswitch = spec.topology == "nvswitch" || spec.topology == "nvl72";
  return rates;
}

void FillOneNode(const Rates& rates, int members, NcclCommunicator& comm) {
  const Ladder ladder = LadderOf(rates.capability);
  NcclGraph& ring = comm.ring;
  double best = 0;
  for (const double speed : ladder.intra) {
    const int channels = std::min(kMostRings, static_cast<int>(rates.total / speed + 1e-9));
    if (channels * speed <= best) continue;
    if (best > 0 && speed / ring.bw_intra <= 0.49) break;
    best = channels * speed;
    ring.num_channels = channels;
    ring.bw_intra = ring.bw_inter = speed;
  }
  if (ring.num_channels == 0) {
    ring.num_channels = 1;
    ring.bw_intra = ring.bw_inter = ladder.intra.back();
  }
  Duplicate(rates.capability, ring);
  comm.tree = ring;
  comm.tree.pattern = NcclPattern::kBalancedTree;
  NcclGraph& nvls = comm.nvls;
  nvls.num_channels = std::min(members, kMostRings);
  nvls.bw_intra = SpeedUpTo(ladder.intra, rates.total / (nvls.num_channels + 1));
  nvls.bw_inter = Raise(ladder.intra, nvls.bw_intra, 2 * nvls.bw_intra, rates.total);
}

void FillNetwork(const Rates& rates, const GroupShape& shape, NcclCommunicator& comm) {
  const Ladder ladder = LadderOf(rates.capability);
  const double members = static_cast<double>(shape.per_node);
  NcclGraph& ring = comm.ring;
  ring.num_channels = static_cast<int>(std::clamp<int64_t>(shape.nics, 1, kMostRings));
  const double nic = rates.nic;
  // A ring leaves out one of the links between the members of each node.
  double most = nic;
  const double inside =
      members > 1 ? rates.total * members / (members - 1) / ring.num_channels : nic;
  most = std::min(most, inside);
  ring.bw_intra = ring.bw_inter = SpeedUpTo(ladder.inter, most);
  ring.same_channels = ring.num_channels == 1;
  Duplicate(rates.capability, ring);
  NcclGraph& tree = comm.tree;
  tree = ring;
  tree.pattern = rates.capability >= 90 ? NcclPattern::kTree : NcclPattern::kBalancedTree;
  const double chain =
      members > 1 ? rates.total * members / (members - 1) / tree.num_channels : rates.total;
  tree.bw_intra = Raise(ladder.inter, tree.bw_intra, 2 * tree.bw_inter, chain);
  NcclGraph& nvls = comm.nvls;
  nvls.num_channels = static_cast<int>(std::min<int64_t>(shape.per_node, kMostRings));
  nvls.bw_intra = SpeedUpTo(ladder.inter, std::min(nic, rates.total / (members + 1)));
  nvls.bw_inter = Raise(ladder.inter, nvls.bw_intra, 2 * nvls.bw_intra, nic);
}

using Key = std::tuple<double, int, double, double, bool, bool, int64_t, int64_t, int64_t, int64_t>;

}  // namespace

NcclCommunicator CommunicatorOf(const Machine& machine, const GroupShape& shape,
                                NcclVersion version) {
  const Rates rates = RatesOf(machine);
  NcclCommunicator comm;
  comm.version = version;
  comm.nodes = static_cast<int>(shape.nodes);
  comm.ranks = static_cast<int>(shape.members);
  comm.max_local_ranks = static_cast<int>(shape.per_node);
  comm.min_compute_capability = comm.max_compute_capability = rates.capability;
  comm.has_nvswitch = rates.nvswitch;
  comm.all_nvlink = rates.nvlink;
  const int least = version == NcclVersion::k2_30 ? 2 : 3;
  comm.nvls_supported = rates.nvswitch && rates.capability >= 90 && shape.per_node >= least;
  const PathType inside = shape.per_node == 1 ? PathType::kLoc
                          : rates.nvlink      ? PathType::kNvl
                                              : PathType::kPhb;
  comm.ring.pattern = NcclPattern::kRing;
  comm.nvls.pattern = NcclPattern::kNvls;
  if (shape.nodes == 1) {
    FillOneNode(rates, static_cast<int>(shape.members), comm);
  } else {
    FillNetwork(rates, shape, comm);
  }
  // NCCL's table has InfiniBand in mind; slower fabrics add what they take longer.
  const double slower = rates.nic_latency - kTableLatency;
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

const GroupTuners* TunersOf(const Machine& machine, const GroupShape& shape) {
  if (shape.members < 2) return nullptr;
  thread_local absl::flat_hash_map<Key, std::unique_ptr<GroupTuners>> remembered;
  const Rates rates = RatesOf(machine);
  const Key key = {rates.nic_latency, rates.capability, rates.total,   rates.nic,      rates.nvlink,
                   rates.nvswitch,    shape.nodes,      shape.members, shape.per_node, shape.nics};
  auto it = remembered.find(key);
  if (it == remembered.end()) {
    if (remembered.size() >= 4096) remembered.clear();
    auto choice = NcclTuner::Create(CommunicatorOf(machine, shape, NcclVersion::k2_27));
    auto time = NcclTuner::Create(CommunicatorOf(machine, shape, NcclVersion::k2_30));
    PLANCAST_CHECK_OK(choice);
    PLANCAST_CHECK_OK(time);
    auto tuners = std::make_unique<GroupTuners>(GroupTuners{*std::move(choice), *std::move(time)});
    it = remembered.emplace(key, std::move(tuners)).first;
  }
  return it->second.get();
}

}  // namespace plancast
