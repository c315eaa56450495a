#include "collectives/price.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/match.h"
#include "collectives/nccl/chunk_sizes.h"

namespace plancast {
namespace {

const LinkClass* ClassOf(const Machine& machine, int index) {
  return index < 0 ? nullptr : &machine.link_classes()[index];
}

// From a section to the others.
const LinkClass* BetweenOf(const Machine& all, int section) {
  if (all.spec().between_bytes_per_s <= 0) return nullptr;
  const size_t own = all.section(section).link_classes().size();
  return &all.link_classes()[all.FirstLinkClass(section) + own];
}

// Where the rings of all groups leave a host by the same few interfaces, each
// group's share of its interfaces counts as that of all the host's.
double Crowding(const LinkCosts& links, const GroupShape& shape, Algorithm algorithm) {
  const int64_t used = links.machine.spec().ring_nics;
  const bool chooses = algorithm != Algorithm::kPairwise && algorithm != Algorithm::kDirect &&
                       algorithm != Algorithm::kCopy;
  const int64_t all = links.nic->instances_per_block;
  const bool part_of_host =
      shape.per_node != 1 && shape.per_node != links.machine.spec().gpus_per_host;
  if (used == 0 || used >= all || !part_of_host || !chooses) return 1;
  return static_cast<double>(all) / static_cast<double>(used);
}

// NCCL's forecast for `bytes`, and the time in which chunks fill the pipeline. In
// switches and network a chunk goes up and down the levels of a tree; going up and
// coming down load the same links, so a level takes half as long as a turn of the
// loop, and turns wait for each other the more, the more there are.
struct Forecast {
  double latency_s = 0, fill_s = 0, bytes_per_s = 0;
  double channels_bytes_per_s = 0;  // of all rings into a node
};

std::optional<Forecast> ForecastOf(const GroupTuners& tuners, const ProtocolCost& cost,
                                   double efficiency, Algorithm algorithm, Protocol protocol,
                                   CollectiveKind kind, int64_t bytes) {
  const auto nccl_kind = NcclKindOf(kind);
  const auto nccl_algorithm = NcclAlgorithmOf(algorithm);
  if (!nccl_kind || !nccl_algorithm) return std::nullopt;
  NcclChoice choice = {*nccl_algorithm, protocol, 0, 1, 0};
  const NcclCost nccl = tuners.time.CostAt(*nccl_kind, choice.algorithm, choice.protocol, bytes);
  if (nccl.bandwidth <= 0) return std::nullopt;
  Forecast forecast;
  forecast.latency_s = nccl.latency_us * 1e-6;
  forecast.bytes_per_s = nccl.bandwidth * 1e9 * efficiency;
  const NcclGraph& ring = tuners.time.communicator().ring;
  forecast.channels_bytes_per_s = ring.num_channels * ring.bw_inter * 1e9 * efficiency;
  if (algorithm != Algorithm::kNvlsTree || cost.fill <= 0) return forecast;
  tuners.time.SizeLaunch(bytes, &choice);
  const int64_t part = std::max<int64_t>(1, bytes / choice.channels);
  const NcclChunking chunking = ChunkingOf(tuners.time, *nccl_kind, choice, part);
  const double loop =
      static_cast<double>(chunking.chunk_bytes) * chunking.chunks_per_loop * choice.channels;
  const double turns = std::max(1.0, static_cast<double>(bytes) / loop);
  const double levels = 2 + 2 * std::floor(std::log2(tuners.time.communicator().nodes));
  const double turn_s = std::min(loop, static_cast<double>(bytes)) / forecast.bytes_per_s;
  forecast.fill_s = cost.fill * levels / 2 * turn_s * turns / (turns + 1);
  return forecast;
}

}  // namespace

std::optional<ProgramKind> ProgramKindOf(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return ProgramKind::kAllReduce;
    case CollectiveKind::kAllGather:
      return ProgramKind::kAllGather;
    case CollectiveKind::kReduceScatter:
      return ProgramKind::kReduceScatter;
    case CollectiveKind::kAllToAll:
      return ProgramKind::kAllToAll;
    case CollectiveKind::kBroadcast:
      return ProgramKind::kBroadcast;
    case CollectiveKind::kReduce:
      return ProgramKind::kReduce;
    case CollectiveKind::kGather:
      return ProgramKind::kGather;
    case CollectiveKind::kScatter:
      return ProgramKind::kScatter;
    case CollectiveKind::kSendRecv:
      return ProgramKind::kSendRecv;
    default:
      return std::nullopt;
  }
}

std::optional<ProgramKind> NcclKindOf(CollectiveKind kind) {
  if (PricedAs(kind) == CollectiveKind::kAllToAll || kind == CollectiveKind::kSendRecv) {
    return std::nullopt;
  }
  return ProgramKindOf(kind);
}

std::optional<NcclAlgorithm> NcclAlgorithmOf(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::kRing:
      return NcclAlgorithm::kRing;
    case Algorithm::kTree:
      return NcclAlgorithm::kTree;
    case Algorithm::kNvls:
      return NcclAlgorithm::kNvls;
    case Algorithm::kNvlsTree:
      return NcclAlgorithm::kNvlsTree;
    default:
      return std::nullopt;
  }
}

LinkCosts::LinkCosts(const Machine& all, const ProtocolCosts& costs, int section)
    : all(all),
      machine(all.section(section)),
      node(costs.Of(machine.spec().intra_link)),
      network(costs.Of(machine.spec().fabric)),
      port(ClassOf(machine, machine.intra_class())),
      uplink(ClassOf(machine, machine.FindLinkClass(LinkKind::kPcieSwitch))),
      bridge(ClassOf(machine, machine.FindLinkClass(LinkKind::kHostBridge))),
      nic(ClassOf(machine, machine.FindLinkClass(LinkKind::kNic))),
      spine(ClassOf(machine, machine.FindLinkClass(LinkKind::kSpine))),
      between(BetweenOf(all, section)),
      first_link_class_(all.FirstLinkClass(section)) {}

int LinkCosts::IndexOf(const LinkClass* link) const {
  if (link == between) return static_cast<int>(link - all.link_classes().data());
  return first_link_class_ + static_cast<int>(link - machine.link_classes().data());
}

double MeshShareOf(const Machine& machine, const GroupShape& shape, const Traffic& traffic) {
  const bool one_link = traffic.one_peer && absl::StartsWith(machine.spec().intra_link, "xgmi");
  return machine.MeshShare(one_link ? std::min<int64_t>(shape.per_node, 2) : shape.per_node);
}

std::optional<PricedTraffic> Price(const LinkCosts& links, const GroupShape& shape,
                                   const Traffic& traffic, Protocol protocol, CollectiveKind kind,
                                   int64_t bytes, double bandwidth_scale,
                                   const GroupTuners* tuners) {
  const bool networked = shape.nodes > 1;
  // Inside the nodes a tree over them runs as switches or chains do.
  Algorithm inside = traffic.algorithm;
  if (inside == Algorithm::kNvlsTree) inside = Algorithm::kNvls;
  if (inside == Algorithm::kTree) inside = Algorithm::kRing;
  const ProtocolCost* node = nullptr;
  const ProtocolCost* network = nullptr;
  if (shape.per_node > 1) {
    node = links.node.Find(inside, protocol, kind);
    if (node == nullptr && networked) node = links.node.Find(inside, Protocol::kSimple, kind);
    if (node == nullptr) return std::nullopt;
  }
  std::optional<Forecast> forecast;
  double network_efficiency = 1;
  if (networked) {
    network = links.network.Find(traffic.algorithm, protocol, kind);
    if (network == nullptr) return std::nullopt;
    network_efficiency = network->EfficiencyAmong(shape.nodes);
    if (network->forecast) {
      if (tuners == nullptr) return std::nullopt;
      forecast = ForecastOf(*tuners, *network, network_efficiency, traffic.algorithm, protocol,
                            kind, bytes);
      if (!forecast) return std::nullopt;
    }
  }

  PricedTraffic priced;
  priced.traffic = traffic;
  priced.protocol = protocol;
  priced.cost = networked ? network : node;

  double hops = 0;                                          // seconds
  double slowest = 1 / std::numeric_limits<double>::max();  // seconds per byte
  const auto add = [&](double load, const LinkClass& link, double& total) {
    const bool outside = link.kind == LinkKind::kNic || link.kind == LinkKind::kSpine ||
                         link.kind == LinkKind::kBetween;
    total = outside ? load : load / bandwidth_scale;
    slowest = std::max(slowest, total / link.bytes_per_s);
  };
  double port = 0;
  if (node != nullptr) {
    hops += traffic.node_hops * (links.port->latency_s + node->hop_s);
    if (traffic.port > 0) {
      port += (traffic.port + node->local_share / static_cast<double>(shape.members)) /
              node->efficiency;
      slowest = std::max(
          slowest, traffic.port / node->efficiency / bandwidth_scale /
                       (links.port->bytes_per_s * MeshShareOf(links.machine, shape, traffic)));
    }
    if (traffic.bridge > 0 && links.bridge != nullptr) {
      double crowding = 1;
      if (node->bridge_crowding > 0 && shape.switches > 2) {
        crowding = std::pow(static_cast<double>(shape.switches) / 2, node->bridge_crowding);
      }
      add(traffic.bridge * crowding / node->bridge_efficiency, *links.bridge, priced.bridge);
    }
  }
  if (network != nullptr && links.port != nullptr && links.port->kind == LinkKind::kPcie) {
    // A device sends to the interface through the same port.
    port += traffic.nic * static_cast<double>(shape.nics) / static_cast<double>(shape.per_node) /
            network_efficiency;
  }
  if (port > 0) add(port, *links.port, priced.port);
  if (traffic.uplink > 0 && links.uplink != nullptr) {
    add(traffic.uplink / (node != nullptr ? node->efficiency : network_efficiency), *links.uplink,
        priced.uplink);
  }
  if (network != nullptr) {
    hops += traffic.network_hops * (links.nic->latency_s + network->hop_s);
    double efficiency = network_efficiency;
    if (forecast) {
      // The rings of a group are all that its interfaces carry.
      efficiency = std::min(1.0, forecast->channels_bytes_per_s / tuners->wire_bytes_per_s);
    }
    add(traffic.nic * Crowding(links, shape, traffic.algorithm) / efficiency, *links.nic,
        priced.nic);
    slowest = std::max(slowest, traffic.nic_flow / network_efficiency / links.nic->bytes_per_s);
    if (traffic.spine > 0 && links.spine != nullptr) {
      hops += traffic.spine_hops * links.spine->latency_s;
      add(traffic.spine / efficiency, *links.spine, priced.spine);
    }
    if (traffic.between > 0 && links.between != nullptr) {
      hops += traffic.between_hops * links.between->latency_s;
      add(traffic.between / efficiency, *links.between, priced.between);
    }
  }
  if (forecast) {
    slowest = std::max(slowest, 1 / forecast->bytes_per_s);
    double beyond = traffic.spine > 0 && links.spine != nullptr
                        ? traffic.spine_hops * links.spine->latency_s
                        : 0;
    if (links.between != nullptr) beyond += traffic.between_hops * links.between->latency_s;
    priced.rate_cap = 1 / slowest;
    priced.delay_s = forecast->latency_s + forecast->fill_s + beyond;
    return priced;
  }
  priced.rate_cap = 1 / slowest;
  // Chunks fill the pipeline: with the best chunk size, s hops of h seconds and a
  // transfer of t seconds take s h + t + 2 sqrt(s h t); `fill` is the measured 2.
  priced.delay_s =
      priced.cost->base_s + hops + priced.cost->fill * std::sqrt(hops * (bytes * slowest));
  return priced;
}

}  // namespace plancast
