#include "executor/chunks/place_nccl.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cluster/mixed_machine.h"
#include "collectives/nccl/chunk_sizes.h"
#include "collectives/nccl/connect.h"
#include "collectives/nccl/tuner_tables.h"
#include "collectives/programs/makers.h"

namespace plancast {
namespace {

absl::StatusOr<ProgramMaker> MakeAlong(const NcclSearchResult& search, ProgramKind kind,
                                       const NcclChoice& choice) {
  const NcclConnections connections = ConnectChannels(search);
  const NcclCommunicator& comm = search.communicator;
  ProgramRequest request;
  request.kind = kind;
  request.levels = {comm.ranks};
  request.protocol = std::string(kProtocolNames[choice.protocol]);
  // Launches of 2.30 have more blocks than channels where switches reduce.
  request.channels = std::max(1, std::min(choice.channels, comm.channels));
  switch (choice.algorithm) {
    case NcclAlgorithm::kRing: {
      request.algorithm = "ring";
      std::vector<std::vector<int32_t>> rings(connections.rings.begin(), connections.rings.end());
      rings.resize(std::min<size_t>(rings.size(), request.channels));
      request.channels = static_cast<int32_t>(rings.size());
      return MakeRingAlong(request, std::move(rings));
    }
    case NcclAlgorithm::kTree: {
      request.algorithm = "tree";
      std::vector<std::vector<TreePlace>> trees;
      for (const std::vector<ChannelTree>& rank : connections.trees) {
        request.channels = std::min(request.channels, static_cast<int32_t>(rank.size()));
        std::vector<TreePlace>& places = trees.emplace_back();
        for (const ChannelTree& tree : rank) {
          TreePlace& place = places.emplace_back();
          place.up = tree.up;
          for (const int down : tree.down) {
            if (down >= 0) place.down.push_back(down);
          }
        }
      }
      return MakeTreeAlong(request, std::move(trees));
    }
    case NcclAlgorithm::kNvls:
      request.algorithm = "nvls";
      return MakerOf(request);
    case NcclAlgorithm::kNvlsTree:
      request.algorithm = "nvls_tree";
      request.levels = {comm.ranks / comm.nodes, comm.nodes};
      request.channels = std::max(2, request.channels / 2 * 2);  // both trees
      return MakerOf(request);
    case NcclAlgorithm::kPat:
      request.algorithm = "pat";
      return MakerOf(request);
    default:
      return absl::FailedPreconditionError(absl::StrCat("no chunk program is written for NCCL's ",
                                                        kNcclAlgorithmNames[choice.algorithm],
                                                        ". Choose another algorithm."));
  }
}

}  // namespace

absl::StatusOr<PlacedProgram> PlaceNccl(const Machine& machine, const NcclSearchResult& search,
                                        ProgramKind kind, const NcclChoice& choice, int64_t bytes) {
  RETURN_IF_ERROR(CheckNotMixed(machine, "A collective along NCCL's channels"));
  const NcclCommunicator& comm = search.communicator;
  if (comm.ranks > machine.num_devices()) {
    return absl::InvalidArgumentError(absl::StrCat("NCCL's channels join ", comm.ranks,
                                                   " ranks; the machine has ",
                                                   machine.num_devices(), " devices."));
  }
  ASSIGN_OR_RETURN(const NcclTuner tuner, NcclTuner::Create(comm));
  PlacedProgram placed;
  ASSIGN_OR_RETURN(placed.program, MakeAlong(search, kind, choice));
  placed.bytes = bytes;
  placed.places.resize(comm.ranks);
  std::iota(placed.places.begin(), placed.places.end(), 0);
  const ChunkNetwork network = ChunkNetwork::OfMachine(machine);
  const int32_t helpers = placed.program.head.helpers;
  for (int32_t h = 0; h < helpers; ++h) {
    ASSIGN_OR_RETURN(const int64_t place, network.SwitchesOf(int64_t{comm.ranks} / helpers * h));
    placed.places.push_back(place);
  }

  ChunkParameters& p = placed.parameters;
  const auto a = static_cast<size_t>(choice.algorithm);
  const auto protocol = static_cast<size_t>(choice.protocol);
  const NcclTunerTables& tables = NcclTunerTables::Shipped(comm.version);
  const bool nvlink = comm.ring.type_intra <= PathType::kNvl;
  const bool one_per_node = comm.ranks == comm.nodes;
  p.start_ps = std::llround(tables.latency[a].base[protocol] * 1e6);
  const bool in_switches =
      choice.algorithm == NcclAlgorithm::kNvls || choice.algorithm == NcclAlgorithm::kNvlsTree;
  const double node_us =
      tables.latency[a]
          .hardware[nvlink ? NcclTunerTables::kNvlink : NcclTunerTables::kPci][protocol];
  // Of switches: to them and back, twice.
  p.node_hop_ps =
      HopBeyondLink(machine, machine.intra_class(), in_switches ? node_us / 2 : node_us);
  const size_t net_row = one_per_node ? static_cast<size_t>(NcclAlgorithm::kTree) : a;
  p.network_hop_ps =
      HopBeyondLink(machine, machine.FindLinkClass(LinkKind::kNic),
                    tables.latency[net_row].hardware[NcclTunerTables::kNet][protocol]);
  p.node_efficiency = p.network_efficiency = p.bridge_efficiency =
      1 / NcclWireFactor(choice.protocol);

  if (choice.algorithm == NcclAlgorithm::kTree) {
    // The tuner's figure of a tree has all that slows it in it, at half of what its
    // links carry: chunks show the rest.
    const NcclCost simple = tuner.Cost(kind, choice.algorithm, Protocol::kSimple);
    p.block_bytes_per_s = std::max<int64_t>(
        1, std::llround(2 * simple.bandwidth * 1e9 / comm.channels * p.node_efficiency));
  } else {
    const NcclCost cost = tuner.Cost(kind, choice.algorithm, choice.protocol);
    // Fewer channels than NCCL has move so much less.
    const double used = std::min(1.0, static_cast<double>(choice.channels) / comm.channels);
    p.buffer_bytes_per_s = cost.bandwidth * 1e9 * (in_switches ? 1 : used);
    // Heads send a part to the network as fast as an interface takes it.
    if (in_switches) p.network_block_bytes_per_s = std::llround(comm.nvls.bw_inter * 1e9);
  }
  const NcclChunking chunking =
      ChunkingOf(tuner, kind, choice, std::max<int64_t>(1, bytes / std::max(1, choice.channels)));
  p.chunk_bytes = std::max<int64_t>(1, chunking.chunk_bytes);
  p.slice_bytes = std::max<int64_t>(1, p.chunk_bytes / std::max(1, chunking.slices));
  p.fifo_bytes = kNcclSteps * NcclStepBytes(choice.protocol);
  return placed;
}

}  // namespace plancast
