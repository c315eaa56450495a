#include "interop/msccl/msccl_run.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cluster/mixed_machine.h"
#include "cluster/topology/host_shapes.h"
#include "collectives/nccl/chunk_sizes.h"
#include "collectives/nccl/tuner_tables.h"
#include "interop/timeline/timeline_json.h"

namespace plancast {
namespace {

constexpr double kPicoseconds = 1e12, kMicrosecond = 1e6;  // ps

// nccl-tests: what the links would have to carry of the buffer at best.
double BusFactor(const ChunkProgram& program) {
  const double n = program.members();
  switch (program.kind) {
    case ProgramKind::kAllReduce:
      return 2 * (n - 1) / n;
    case ProgramKind::kAllGather:
    case ProgramKind::kReduceScatter:
    case ProgramKind::kAllToAll:
    case ProgramKind::kGather:
    case ProgramKind::kScatter:
      return (n - 1) / n;
    default:
      return 1;
  }
}

// Of a time, what `bytes` take at a rate.
double Part(double bytes, int64_t bytes_per_s, int64_t of_ps) {
  return bytes / static_cast<double>(bytes_per_s) * kPicoseconds / std::max<int64_t>(of_ps, 1);
}

absl::Status FindBusiest(const ChunkProgram& program, const ChunkNetwork& network, int64_t bytes,
                         const ChunkParameters& parameters, MscclRun& run) {
  const double per_chunk = static_cast<double>(bytes) / program.chunks;
  std::vector<double> payload(network.num_links()), carried(network.num_links());
  for (int32_t r = 0; r < program.num_ranks(); ++r) {
    for (const ThreadBlock& block : program.ranks[r].blocks) {
      int64_t chunks = 0;
      for (const ChunkStep& step : block.steps) chunks += Sends(step.op) ? step.source.count : 0;
      if (chunks == 0) continue;
      const double sent = static_cast<double>(chunks) * per_chunk;
      ASSIGN_OR_RETURN(const Route route, network.RouteOf(r, block.send_peer));
      for (const Route::Hop& hop : route.hops) {
        const double efficiency = hop.part == LinkPart::kNetwork  ? parameters.network_efficiency
                                  : hop.part == LinkPart::kBridge ? parameters.bridge_efficiency
                                                                  : parameters.node_efficiency;
        payload[hop.link] += sent;
        carried[hop.link] += sent / efficiency;
      }
      if (parameters.block_bytes_per_s == 0) continue;
      const double busy = Part(sent, parameters.block_bytes_per_s, run.finish_ps);
      if (busy <= run.busiest_block.busy) continue;
      run.busiest_block = {
          absl::StrCat("gpu ", r, " to gpu ", block.send_peer, ", channel ", block.channel), sent,
          busy};
    }
  }
  for (int64_t link = 0; link < network.num_links(); ++link) {
    const double busy = Part(carried[link], network.LinkBytesPerSecond(link), run.finish_ps);
    if (busy > run.busiest_link.busy)
      run.busiest_link = {network.LinkName(link), payload[link], busy};
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ChunkParameters> MscclParameters(const Machine& machine,
                                                const std::string& protocol) {
  RETURN_IF_ERROR(CheckNotMixed(machine, "A run of an algorithm"));
  const auto found = kProtocolNames.Find(protocol);
  if (!found) {
    return absl::InvalidArgumentError(
        absl::StrCat("no protocol `", protocol, "`; there are `Simple`, `LL` and `LL128`."));
  }
  const bool simple = *found == Protocol::kSimple, ll = *found == Protocol::kLl;
  const auto p = static_cast<size_t>(*found);
  const NcclTunerTables& tables = NcclTunerTables::Shipped(NcclVersion::k2_17);
  const auto& ring = tables.latency[static_cast<int>(NcclAlgorithm::kRing)];
  const bool nvlink = machine.FindLinkClass(LinkKind::kNvlink) >= 0;
  const auto node = nvlink ? NcclTunerTables::kNvlink : NcclTunerTables::kPci;
  ChunkParameters out;
  out.start_ps = std::llround(ring.base[p] * kMicrosecond);
  out.node_hop_ps = HopBeyondLink(machine, machine.intra_class(), ring.hardware[node][p]);
  out.network_hop_ps = HopBeyondLink(machine, machine.FindLinkClass(LinkKind::kNic),
                                     ring.hardware[NcclTunerTables::kNet][p]);
  const double efficiency = 1 / NcclWireFactor(*found);
  out.node_efficiency = out.bridge_efficiency = out.network_efficiency = efficiency;
  const proto::KnownGpu* gpu = FindKnownGpu(machine.device().name);
  if (gpu != nullptr && nvlink) {
    const auto& generation = tables.Of(gpu->compute_capability());
    const double gb_per_s = simple || ll ? generation.tree[0] : generation.ring_ll128[0];
    out.block_bytes_per_s = std::llround(gb_per_s * 1e9 * (ll ? efficiency : 1));
  }
  const int64_t step = NcclStepBytes(*found);
  out.chunk_bytes = simple ? 4 * step : step;
  out.slice_bytes = simple ? 2 * step : step;
  out.fifo_bytes = kNcclSteps * step;
  return out;
}

absl::StatusOr<ChunkNetwork> NetworkOfGraph(const LinkGraph& graph, int64_t bytes_per_s,
                                            int64_t latency_ps) {
  std::vector<ChunkNetwork::Wire> wires;
  for (const GraphLink& link : graph.links()) {
    wires.push_back({link.from, link.to, link.width * bytes_per_s, latency_ps});
  }
  return ChunkNetwork::OfWires(graph.nodes(), graph.nodes(), std::move(wires));
}

absl::StatusOr<MscclRun> RunProgram(const ChunkProgram& program, const ChunkNetwork& network,
                                    int64_t bytes, const ChunkParameters& parameters,
                                    bool timeline) {
  if (bytes < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a buffer of ", bytes, " bytes; give one more."));
  }
  if (program.helpers > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("`", program.name, "` has helpers beside its GPUs; give one without."));
  }
  if (program.num_ranks() > network.num_devices()) {
    return absl::InvalidArgumentError(absl::StrCat("`", program.name, "` is for ",
                                                   program.num_ranks(), " GPUs, and there are ",
                                                   network.num_devices(), "."));
  }
  PlacedProgram placed;
  placed.program = MakerOfProgram(program);
  placed.places.resize(program.num_ranks());
  std::iota(placed.places.begin(), placed.places.end(), 0);
  placed.bytes = bytes;
  placed.parameters = parameters;
  ChunkOptions options;
  options.timeline = timeline;
  ASSIGN_OR_RETURN(ChunkOutcome outcome, ExecuteChunks(network, {placed}, options));
  MscclRun out;
  out.finish_ps = outcome.finish_ps;
  out.rank_finish_ps = std::move(outcome.programs[0].rank_finish_ps);
  const double seconds = std::max<int64_t>(out.finish_ps, 1) / kPicoseconds;
  out.algorithm_bytes_per_s = static_cast<double>(bytes) / seconds;
  out.bus_bytes_per_s = out.algorithm_bytes_per_s * BusFactor(program);
  out.messages = outcome.messages;
  out.timeline = std::move(outcome.timeline);
  RETURN_IF_ERROR(FindBusiest(program, network, bytes, parameters, out));
  return out;
}

std::string MessageTrace(const MscclRun& run) {
  Timeline timeline;
  std::map<std::tuple<int32_t, int32_t, int32_t>, int32_t> tracks;  // by sender, peer, channel
  for (const ChunkMessage& message : run.timeline) {
    const auto key = std::make_tuple(message.from, message.to, message.channel);
    const auto [track, fresh] = tracks.emplace(key, static_cast<int32_t>(tracks.size()));
    if (fresh) {
      timeline.tracks.push_back(
          {message.from, track->second, absl::StrCat("gpu ", message.from),
           absl::StrCat("to gpu ", message.to, ", channel ", message.channel)});
    }
    TimelineSpan span;
    span.name = absl::StrCat("step ", message.step);
    span.category = "message";
    span.track = track->second;
    span.start_ps = message.start_ps;
    span.duration_ps = message.end_ps - message.start_ps;
    span.args = {{"turn", absl::StrCat(message.turn)}, {"bytes", absl::StrCat(message.bytes)}};
    timeline.spans.push_back(std::move(span));
  }
  return TimelineJson(timeline);
}

}  // namespace plancast
