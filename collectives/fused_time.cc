#include "collectives/fused_time.h"

#include <algorithm>
#include <cmath>

#include "collectives/nccl/chunk_sizes.h"

namespace plancast {
namespace {

// Latency of device memory, V100 to H100 (Ultrasonics Sonochemistry 99, 2023, 106546, table 3).
constexpr double kMemoryCycles = 400;
// Between an SM and the L2 cache, Volta to Hopper.
constexpr double kSmBytesPerCycle = 64;
// Of a block, where NCCL's tuner does not say; of GPUs without a clock: assumptions.
constexpr int kThreads = 512;
constexpr double kMhz = 1500;

// What a thread takes at a time.
int64_t WordOf(Protocol protocol) { return protocol == Protocol::kLl ? 8 : 16; }

// How the collective's buffer goes through the busiest block.
struct Share {
  double of_bytes = 1;  // of the collective
  int threads = kThreads;
  double chunks = 1;
};

Share ShareOf(const FusedKernel& kernel) {
  Share share;
  const auto algorithm = NcclAlgorithmOf(kernel.algorithm);
  const auto kind = NcclKindOf(kernel.kind);
  if (kernel.launch == nullptr || !algorithm || !kind) {
    share.of_bytes = 1.0 / std::max(1, kernel.channels);
    const double slots = static_cast<double>(NcclStepBytes(kernel.protocol));
    share.chunks = static_cast<double>(kernel.bytes) * share.of_bytes / slots;
    return share;
  }
  NcclChoice choice = {*algorithm, kernel.protocol, 0, 1, 0};
  kernel.launch->SizeLaunch(kernel.bytes, &choice);
  int64_t most = 0;
  for (const NcclChannelPart& part :
       SplitOverChannels(kernel.launch->communicator(), *kind, choice, kernel.bytes)) {
    most = std::max(most, part.bytes);
  }
  const NcclChunking chunking = ChunkingOf(*kernel.launch, *kind, choice, most);
  share.of_bytes = static_cast<double>(most) / static_cast<double>(kernel.bytes);
  share.threads = std::max(1, choice.threads);
  share.chunks = static_cast<double>(chunking.loops) * chunking.chunks_per_loop;
  return share;
}

// On how many ranks' work the rank with the most of it computes.
int64_t RanksOnOne(const FusedWork& work, const FusedKernel& kernel) {
  if (!work.of_sum || kernel.kind != CollectiveKind::kAllReduce) return 1;
  if (kernel.algorithm == Algorithm::kTree) return kernel.members;
  return kernel.algorithm == Algorithm::kNvlsTree ? kernel.nodes : 1;
}

}  // namespace

double FusedSeconds(const FusedWork& work, const FusedKernel& kernel, const DeviceType& device) {
  if (work.empty() || kernel.bytes <= 0) return 0;
  const Share share = ShareOf(kernel);
  const double clock = (device.boost_mhz > 0 ? device.boost_mhz : kMhz) * 1e6;
  const double bytes =
      static_cast<double>(work.bytes) * static_cast<double>(RanksOnOne(work, kernel));
  const double traffic =
      bytes * static_cast<double>(work.traffic) / static_cast<double>(work.bytes);
  const double of_block = bytes * share.of_bytes;
  const double passes =
      std::ceil(of_block / static_cast<double>(share.threads * WordOf(kernel.protocol)));
  double all = (passes * kMemoryCycles + traffic * share.of_bytes / kSmBytesPerCycle) / clock;
  if (device.memory_bytes_per_s > 0 && RanksOnOne(work, kernel) == 1) {
    all = std::max(all, traffic / device.memory_bytes_per_s);
  }
  const bool in_step = kernel.algorithm == Algorithm::kRing &&
                       (work.of_sum || kernel.kind != CollectiveKind::kAllReduce);
  if (in_step || share.chunks <= 1) return all;
  const double first = all / share.chunks;
  const double behind = (all - first) - kernel.transfer_s * (1 - 1 / share.chunks);
  return first + std::max(0.0, behind);
}

}  // namespace plancast
