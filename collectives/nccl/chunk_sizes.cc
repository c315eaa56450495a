#include "collectives/nccl/chunk_sizes.h"

#include <algorithm>

#include "base/floor_log2.h"

namespace plancast {
namespace {

constexpr int64_t kKiB = 1024;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t AlignUp(int64_t value, int64_t to) { return CeilDiv(value, to) * to; }

bool Gathers(ProgramKind kind) {
  return kind == ProgramKind::kAllGather || kind == ProgramKind::kReduceScatter;
}

// What a channel carries for each byte that a rank passes in (ncclFuncTrafficPerByte).
int64_t TrafficPerByte(ProgramKind kind, int ranks) {
  if (kind == ProgramKind::kAllReduce) return 2;
  return Gathers(kind) ? ranks : 1;
}

// Halves a chunk down to `least` while fewer than `depth` would be in flight.
int64_t Halve(int64_t chunk, int64_t bytes, double depth, int64_t least) {
  while (static_cast<double>(bytes / chunk) < depth && chunk > least) chunk /= 2;
  return chunk;
}

// Levels of a collective-network chain (collnetChain.depth): the ranks of a node
// and the network.
int ChainDepth(const NcclCommunicator& comm) { return comm.ranks / comm.nodes; }

int64_t NvlsChunk(const NcclTuner& tuner, int64_t bytes, int64_t heads) {
  const NcclCommunicator& comm = tuner.communicator();
  const NcclCost all_reduce =
      tuner.Cost(ProgramKind::kAllReduce, NcclAlgorithm::kNvls, Protocol::kSimple);
  int64_t chunk = 128 * kKiB;
  if (comm.nodes > 1 && all_reduce.bandwidth < 150) chunk = 32 * kKiB;
  if (bytes < 64 * heads * chunk) chunk = std::min(chunk, 64 * kKiB);
  if (bytes < 8 * heads * chunk) chunk = std::min(chunk, 32 * kKiB);
  if (bytes < 2 * heads * chunk) chunk = std::min(chunk, 16 * kKiB);
  return chunk;
}

int64_t NvlsTreeChunk(const NcclCommunicator& comm, int64_t bytes, int64_t heads) {
  int64_t chunk = comm.nodes >= 4 ? 64 * kKiB : 128 * kKiB;
  if (bytes < 4 * heads * chunk) chunk = std::min(chunk, 64 * kKiB);
  if (bytes < heads * chunk) chunk = std::min(chunk, 32 * kKiB);
  return chunk;
}

int64_t CollNetDirectChunk(const NcclCommunicator& comm, int64_t bytes, int64_t chunk,
                           int64_t heads) {
  // Down to the network and back, for one rank of a node or several.
  const int depth = comm.ranks > comm.nodes ? 2 : 1;
  const int64_t share = bytes / heads;
  chunk = Halve(chunk, share, depth * 64, 128 * kKiB);
  chunk = Halve(chunk, share, depth * 8, 64 * kKiB);
  return Halve(chunk, share, depth * 8, 32 * kKiB);
}

}  // namespace

int64_t NcclBufferBytes(Protocol protocol) {
  switch (protocol) {
    case Protocol::kLl:  // 8 lines of 16 bytes for each of 512 threads, 8 slots
      return int64_t{8} * 512 * kNcclSteps * 16;
    case Protocol::kLl128:  // 120 words for each of 640 threads, 8 slots
      return int64_t{120} * 640 * kNcclSteps * 8;
    case Protocol::kSimple:
      return int64_t{4} << 20;
  }
  return 0;
}

int64_t NcclStepBytes(Protocol protocol) {
  const int64_t slot = NcclBufferBytes(protocol) / kNcclSteps;
  if (protocol == Protocol::kLl) return slot / 2;
  return protocol == Protocol::kLl128 ? slot / 16 * 15 : slot;
}

int64_t NcclGrainBytes(Protocol protocol) {
  if (protocol == Protocol::kLl) return 16;
  return protocol == Protocol::kLl128 ? 1920 : 512;
}

double NcclWireFactor(Protocol protocol) {
  if (protocol == Protocol::kLl) return 2;
  return protocol == Protocol::kLl128 ? 16.0 / 15 : 1;
}

std::vector<NcclChannelPart> SplitOverChannels(const NcclCommunicator& communicator,
                                               ProgramKind kind, const NcclChoice& choice,
                                               int64_t bytes) {
  const bool switches =
      choice.algorithm == NcclAlgorithm::kNvls || choice.algorithm == NcclAlgorithm::kNvlsTree;
  const bool collnet = choice.algorithm == NcclAlgorithm::kCollNetDirect ||
                       choice.algorithm == NcclAlgorithm::kCollNetChain;
  const int64_t most = std::max(1, choice.channels);
  // All counts below are of what one rank passes in; `scale` makes it the buffer.
  const int64_t scale = Gathers(kind) ? communicator.ranks : 1;
  const int64_t own = CeilDiv(bytes, scale);
  std::vector<NcclChannelPart> parts;
  const auto give = [&](int64_t part) {
    const int64_t offset = parts.empty() ? 0 : parts.back().offset + parts.back().bytes;
    part = std::min(part * scale, bytes - offset);
    if (part > 0) parts.push_back({static_cast<int>(parts.size()), offset, part});
  };
  if (communicator.version == NcclVersion::k2_17 || collnet) {
    for (int64_t c = 0; c < most; ++c) give(CeilDiv(own, most));
    return parts;
  }
  // A channel is worth waking for so much traffic.
  const int64_t least = (communicator.version == NcclVersion::k2_30 ? 32 : 16) * kKiB;
  int64_t per_byte = TrafficPerByte(kind, communicator.ranks);
  const int64_t traffic = std::max(least, own * per_byte);
  if (choice.protocol == Protocol::kLl) per_byte *= 4;
  const int64_t per_channel = std::max(least, traffic / most);
  const int64_t cell = AlignUp(CeilDiv(least, per_byte), 16);
  const int64_t cells = CeilDiv(own, cell);
  const int64_t channels = switches ? communicator.nvls_channels : communicator.channels;
  int64_t each = std::min(cells, CeilDiv(per_channel, cell * per_byte));
  const int64_t first = channels <= 1 ? cells : each;
  int64_t middle = (cells - first) / std::max<int64_t>(1, each);
  int64_t last = (cells - first) % std::max<int64_t>(1, each);
  if (channels > 1 && channels < 1 + middle + (last != 0 ? 1 : 0)) {
    middle = channels - 2;
    each = (cells - first) / (middle + 1);
    last = each + (cells - first) % (middle + 1);
  }
  give(first * cell);
  for (int64_t c = 0; c < middle; ++c) give(each * cell);
  if (last > 0) give(last * cell);
  return parts;
}

NcclChunking ChunkingOf(const NcclTuner& tuner, ProgramKind kind, const NcclChoice& choice,
                        int64_t bytes) {
  const NcclCommunicator& comm = tuner.communicator();
  const bool simple = choice.protocol == Protocol::kSimple;
  const bool twice_as_deep = kind == ProgramKind::kAllReduce || Gathers(kind);
  NcclChunking chunking;
  int64_t chunk = NcclStepBytes(choice.protocol);
  const int64_t heads = std::max(1, comm.nvls_heads);
  switch (choice.algorithm) {
    case NcclAlgorithm::kRing:
      if (simple && twice_as_deep) {  // 4 slots, handed on by 2
        chunk *= kNcclSteps / 2;
        chunking.slices = 2;
      }
      if (kind == ProgramKind::kAllReduce) chunking.steps_per_loop = 2 * (comm.ranks - 1);
      if (Gathers(kind)) chunking.steps_per_loop = comm.ranks - 1;
      if (twice_as_deep) chunking.chunks_per_loop = comm.ranks;
      break;
    case NcclAlgorithm::kTree:
      if (choice.protocol == Protocol::kLl128) {
        const double per_node = static_cast<double>(comm.ranks) / comm.nodes;
        const double steps = 1 + FloorLog2(comm.nodes) + 0.1 * per_node;
        chunk = Halve(chunk, bytes, steps * 64 / per_node, 128 * kKiB);
        chunk = Halve(chunk, bytes, steps * 16 / per_node, 32 * kKiB);
      }
      break;
    case NcclAlgorithm::kNvls:
      chunk = NvlsChunk(tuner, bytes, heads);
      chunking.chunks_per_loop = static_cast<int>(heads);
      break;
    case NcclAlgorithm::kNvlsTree:
      chunk = NvlsTreeChunk(comm, bytes, heads);
      chunking.chunks_per_loop = static_cast<int>(heads);
      break;
    case NcclAlgorithm::kPat:
      chunk = Halve(chunk, bytes, kind == ProgramKind::kAllGather ? 32 : 16, 64 * kKiB);
      break;
    case NcclAlgorithm::kCollNetDirect: {
      const int direct = std::max(1, comm.collnet_direct.num_channels);
      chunk = CollNetDirectChunk(comm, bytes, chunk, direct);
      chunking.chunks_per_loop = direct;
      break;
    }
    case NcclAlgorithm::kCollNetChain:
      chunk = Halve(256 * kKiB, bytes, ChainDepth(comm) * 64, 128 * kKiB);
      chunk = Halve(chunk, bytes, ChainDepth(comm) * 8, 64 * kKiB);
      chunk = Halve(chunk, bytes, ChainDepth(comm), 32 * kKiB);
      break;
  }
  const int64_t grain = NcclGrainBytes(choice.protocol);
  chunking.chunk_bytes = std::max(grain, chunk / grain * grain);
  const int64_t loop = chunking.chunk_bytes * chunking.chunks_per_loop;
  chunking.loops = CeilDiv(bytes, loop);
  const int64_t rest = bytes - std::max<int64_t>(0, chunking.loops - 1) * loop;
  chunking.last_chunk_bytes =
      std::min(chunking.chunk_bytes, AlignUp(CeilDiv(rest, chunking.chunks_per_loop), 16));
  return chunking;
}

}  // namespace plancast
