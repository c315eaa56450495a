#include "executor/chunks/realise_chunks.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/picoseconds.h"
#include "base/status_macros.h"
#include "cluster/mixed_machine.h"
#include "collectives/group_shape.h"
#include "collectives/price.h"
#include "collectives/programs/check/connections.h"
#include "collectives/programs/rank_builder.h"
#include "collectives/protocol_cost.h"

namespace plancast {
namespace {

// Fixed point rounds loads up; rates stay so far below what links carry that they
// do not fill them.
constexpr double kBelow = 1 - 4e-6;
// At most so many turns for every hop of a pipeline: filling it then takes a two
// hundredth of the transfer.
constexpr int64_t kTurnsPerHop = 200;

ProgramMaker MakePermute(int32_t n) {
  ProgramMaker maker;
  maker.head.name = "permute";
  maker.head.kind = ProgramKind::kCustom;
  maker.num_ranks = n;
  maker.alike_channels = 1;
  maker.make = [n](int32_t rank, int32_t) {
    RankBuilder builder(1, 1);
    const int32_t block = builder.Block((rank + 1) % n, (rank + n - 1) % n, 0);
    builder.Step(block, ChunkOp::kSend, {ChunkBuffer::kInput, 0, 1});
    builder.Step(block, ChunkOp::kRecv, {ChunkBuffer::kOutput, 0, 1});
    return builder.Take();
  };
  return maker;
}

struct Chosen {
  ProgramMaker program;
  bool in_turns = false;  // a pipeline over turns
};

absl::Status NoProgram() {
  return absl::FailedPreconditionError("no chunk program is written for this group.");
}

absl::StatusOr<Chosen> Choose(const RealisedCollective& realised, const GroupShape& shape,
                              CollectiveKind kind, const CollectivePolicy& policy) {
  const auto n = static_cast<int32_t>(shape.members);
  const auto inner = static_cast<int32_t>(shape.per_node);
  const bool even = shape.per_node * shape.nodes == shape.members;
  Chosen chosen;
  if (kind == CollectiveKind::kPermute) {
    chosen.program = MakePermute(n);
    return chosen;
  }
  ProgramRequest request;
  request.kind = *ProgramKindOf(kind);
  request.levels = {inner, static_cast<int32_t>(shape.nodes)};
  if (!even) request.levels = {1, n};
  const std::string& algorithm = realised.algorithm;
  if (algorithm == "ring") {
    request.algorithm = "ring";
    request.channels = even ? inner : 1;
    chosen.in_turns = kind == CollectiveKind::kBroadcast;
  } else if (algorithm == "pairwise" || algorithm == "direct") {
    if (policy.copies.each > 1) return NoProgram();
    request.algorithm = "direct";
  } else {
    if (!even) return NoProgram();
    request.algorithm = algorithm == "nvls-tree" ? "nvls_tree" : algorithm;
    // Chains start at every member in turn, for its network interface; those between
    // PCIe switches at the first, or they would cross borders twice.
    const bool turns = algorithm == "tree" && shape.switches == 1;
    if (algorithm == "tree" && !turns && shape.nodes > 1 && shape.nics > 1) return NoProgram();
    request.channels = turns ? 2 * inner : algorithm == "nvls" ? 1 : 2;
    chosen.in_turns = true;
  }
  ASSIGN_OR_RETURN(chosen.program, MakerOf(request));
  return chosen;
}

// The closed form of what Realise chose, with its parts.
struct Priced {
  PricedTraffic closed;
  const ProtocolCost* node = nullptr;
  const ProtocolCost* network = nullptr;
  double hops_s = 0;  // all hops on the critical path
};

std::optional<Priced> PriceAgain(const LinkCosts& links, const GroupShape& shape,
                                 const RealisedCollective& realised, CollectiveKind kind,
                                 int64_t bytes, double scale) {
  for (int a = 0; a < kNumAlgorithms; ++a) {
    const auto algorithm = static_cast<Algorithm>(a);
    if (kAlgorithmNames[algorithm] != realised.algorithm) continue;
    const std::optional<Traffic> traffic = TrafficOf(algorithm, shape, kind);
    if (!traffic) return std::nullopt;
    Protocol protocol = Protocol::kSimple;
    for (const Protocol low : {Protocol::kLl, Protocol::kLl128}) {
      if (realised.protocol == kProtocolNames[low]) protocol = low;
    }
    const auto closed =
        Price(links, shape, *traffic, protocol, kind, bytes, scale, TunersOf(links.machine, shape));
    if (!closed) return std::nullopt;
    Priced priced;
    priced.closed = *closed;
    Algorithm inside = algorithm;
    if (inside == Algorithm::kNvlsTree) inside = Algorithm::kNvls;
    if (inside == Algorithm::kTree) inside = Algorithm::kRing;
    if (shape.per_node > 1) {
      priced.node = links.node.Find(inside, protocol, kind);
      if (priced.node == nullptr) priced.node = links.node.Find(inside, Protocol::kSimple, kind);
    }
    if (shape.nodes > 1) priced.network = links.network.Find(algorithm, protocol, kind);
    if (priced.node != nullptr) {
      priced.hops_s += traffic->node_hops * (links.port->latency_s + priced.node->hop_s);
    }
    if (priced.network != nullptr) {
      priced.hops_s += traffic->network_hops * (links.nic->latency_s + priced.network->hop_s);
      if (links.spine != nullptr) priced.hops_s += traffic->spine_hops * links.spine->latency_s;
    }
    return priced;
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<PlacedProgram> PlaceCollective(const Machine& machine, const GroupPattern& group,
                                              CollectiveKind kind, int64_t bytes,
                                              const CollectivePolicy& policy) {
  RETURN_IF_ERROR(CheckNotMixed(machine, "A collective chunk by chunk"));
  ASSIGN_OR_RETURN(const RealisedCollective realised, Realise(machine, group, kind, bytes, policy));
  ASSIGN_OR_RETURN(const GroupShape shape, ShapeOf(machine, group));
  if (shape.members == 1 || bytes == 0 || shape.members > kMaxChunkRanks) return NoProgram();
  const LinkCosts links(machine,
                        policy.nominal ? ProtocolCosts::Nominal() : ProtocolCosts::Shipped());
  const std::optional<Priced> priced =
      PriceAgain(links, shape, realised, kind, bytes, policy.bandwidth_scale);
  if (!priced) return NoProgram();
  ASSIGN_OR_RETURN(Chosen chosen, Choose(realised, shape, kind, policy));

  const ChunkNetwork network = ChunkNetwork::OfMachine(machine);
  PlacedProgram placed;
  placed.program = std::move(chosen.program);
  placed.places = group.Members();
  for (int32_t h = 0; h < placed.program.head.helpers; ++h) {  // the switches of a node
    ASSIGN_OR_RETURN(const int64_t place, network.SwitchesOf(placed.places[h * shape.per_node]));
    placed.places.push_back(place);
  }
  placed.bytes = bytes;

  ChunkParameters& p = placed.parameters;
  const Traffic& traffic = priced->closed.traffic;
  const double rate = priced->closed.rate_cap;  // of the buffer
  p.buffer_bytes_per_s = rate * kBelow;
  if (priced->node != nullptr) {
    // What is copied alongside the transfer loads the port as well; in a mesh the links
    // to the other members are the limit before that.
    const double own = priced->node->local_share / static_cast<double>(shape.members);
    const double beside = traffic.port > 0 ? 1 + own / traffic.port : 1;
    p.node_efficiency = priced->node->efficiency * policy.bandwidth_scale /
                        std::max(beside, 1 / MeshShareOf(machine, shape, traffic));
    p.bridge_efficiency = priced->node->bridge_efficiency * policy.bandwidth_scale;
  }
  if (priced->network != nullptr) {
    p.network_efficiency = priced->network->EfficiencyAmong(shape.nodes);
  }
  const double transfer_s = static_cast<double>(bytes) / rate;
  const double ways_s = priced->closed.delay_s - priced->closed.cost->base_s;  // and the fill
  const int64_t chunks = placed.program.head.chunks;
  if (chosen.in_turns) {
    // Filling takes a hop's share of a turn for every hop: less than what is measured.
    const double hops = std::max(1.0, traffic.node_hops + traffic.network_hops);
    const double turns =
        std::clamp(2 * hops * transfer_s / std::max(ways_s, 1e-12), 1.0, hops * kTurnsPerHop);
    p.chunk_bytes = std::max<int64_t>(
        1, static_cast<int64_t>(static_cast<double>(bytes) / static_cast<double>(chunks) / turns));
  }

  // The longest way through the program has nearly, not quite, the hops of the closed
  // form (a ring crosses the border of its first node twice), and a program in turns
  // fills by itself: hops are stretched so that ways and filling together take what
  // they take in the closed form.
  const auto time = [&](PlacedProgram program, int64_t of_bytes,
                        bool ways) -> absl::StatusOr<double> {
    program.bytes = of_bytes;
    program.parameters.latency_stretch = ways ? 1 : 0;
    if (ways) program.parameters.buffer_bytes_per_s = 0;
    ASSIGN_OR_RETURN(const ChunkOutcome outcome, ExecuteChunks(network, {program}));
    return ToSeconds(outcome.finish_ps);
  };
  p.node_hop_ps = RoundToPicoseconds(priced->node == nullptr ? 0 : priced->node->hop_s);
  p.network_hop_ps = RoundToPicoseconds(priced->network == nullptr ? 0 : priced->network->hop_s);
  ASSIGN_OR_RETURN(const double way_s, time(placed, chunks, true));
  double filling_s = 0;
  if (chosen.in_turns) {
    ASSIGN_OR_RETURN(const double filled_s, time(placed, bytes, false));
    filling_s = filled_s - transfer_s;
  }
  p.latency_stretch = std::max(0.0, ways_s - filling_s) / std::max(way_s, 1e-12);
  p.start_ps = RoundToPicoseconds(priced->closed.cost->base_s);
  return placed;
}

absl::StatusOr<RealisedCollective> RealiseByChunks(const Machine& machine,
                                                   const GroupPattern& group, CollectiveKind kind,
                                                   int64_t bytes, const CollectivePolicy& policy) {
  ASSIGN_OR_RETURN(RealisedCollective realised, Realise(machine, group, kind, bytes, policy));
  const absl::StatusOr<PlacedProgram> placed = PlaceCollective(machine, group, kind, bytes, policy);
  if (absl::IsFailedPrecondition(placed.status())) return realised;
  RETURN_IF_ERROR(placed.status());
  ASSIGN_OR_RETURN(const ChunkOutcome outcome,
                   ExecuteChunks(ChunkNetwork::OfMachine(machine), {*placed}));
  const int64_t transfer = AloneTime(machine, realised) - realised.delay_ps;
  realised.delay_ps = std::max<int64_t>(0, outcome.finish_ps - transfer) + realised.fused_ps;
  return realised;
}

}  // namespace plancast
