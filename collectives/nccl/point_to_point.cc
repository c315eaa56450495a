#include "collectives/nccl/point_to_point.h"

#include <algorithm>
#include <cmath>

namespace plancast {
namespace {

constexpr int64_t kKiB = 1024;
constexpr int kPerBatch = 8;  // sends and receives that one channel works on at once
constexpr int64_t kLowLatencyBytes = 16 * kKiB;  // of a channel

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

int PowerOfTwoUp(int value) {
  int power = 1;
  while (power < value) power *= 2;
  return power;
}

int Log2Up(int value) {
  int log = 0;
  while ((1 << log) < value) ++log;
  return log;
}

int ReverseBits(int value, int bits) {
  int reversed = 0;
  for (int i = 0; i < bits; ++i) reversed |= ((value >> i) & 1) << (bits - 1 - i);
  return reversed;
}

// The largest group of up to 8 into which the ranks of a node divide.
int GroupSize(const NcclCommunicator& comm) {
  int local = std::max(1, comm.max_local_ranks);
  if (comm.ranks != local * comm.nodes) local = 1;  // uneven nodes
  for (int size = std::min(local, kPerBatch); size > 1; --size) {
    if (local % size == 0) return size;
  }
  return 1;
}

}  // namespace

int NvlinkChannelsPerPeer(double path_bw, double link_bw) {
  return 2 * std::max(1, static_cast<int>(path_bw / link_bw));
}

int NetworkChannelsPerPeer(int nics, double net_bw) {
  if (nics < 1) return 2;
  // A channel moves about 14 GB/s to the network.
  return std::max(nics, static_cast<int>(std::ceil(net_bw / 14)));
}

int64_t P2pSlotBytes(const NcclCommunicator& communicator) {
  const bool network = communicator.nodes > 1;
  if (!network) return (communicator.all_nvlink ? 512 : 128) * kKiB;
  const bool wide =
      communicator.cpu_arch == CpuArch::kArm && communicator.min_compute_capability >= 100;
  return (wide ? 256 : 128) * kKiB;
}

NcclMessage CutMessage(const NcclCommunicator& communicator, int64_t bytes, bool over_network,
                       int messages) {
  const int most = std::max(1, communicator.p2p_channels_per_peer);
  int least = most;
  while (static_cast<int64_t>(least) * messages > communicator.p2p_channels && least > 1) {
    least /= 2;
  }
  const int64_t slot = P2pSlotBytes(communicator);
  NcclMessage message;
  if (!over_network && bytes <= most * kLowLatencyBytes) {
    message.protocol = Protocol::kLl;
  }
  const bool low_latency = message.protocol == Protocol::kLl;
  // LL keeps its own small slots, half flags.
  const int64_t step = low_latency ? 64 * kKiB : slot;
  message.chunk_bytes = step;
  if (over_network) {
    if (bytes < step) {
      message.chunk_bytes /= 4;
    } else if (bytes < 8 * step) {
      message.chunk_bytes /= 2;
    }
  }
  if (low_latency) message.chunk_bytes /= 2;
  const int64_t min_part = communicator.nodes > 1 ? step / 2 : step / 8;
  const int64_t max_part = communicator.nodes > 1 ? step : step * 32;
  message.channels = static_cast<int>(std::clamp<int64_t>(CeilDiv(bytes, min_part), 1, least));
  message.part_bytes = std::max(min_part, CeilDiv(bytes, message.channels));
  while (message.part_bytes > max_part && message.channels <= most / 2) {
    message.channels *= 2;
    message.part_bytes = CeilDiv(bytes, message.channels);
  }
  message.part_bytes = std::min(message.part_bytes, bytes);
  return message;
}

std::vector<P2pRound> P2pSchedule(const NcclCommunicator& communicator, int rank) {
  const int size = GroupSize(communicator);
  const int groups = communicator.ranks / size;
  const int group = rank / size, local = rank % size;
  const int channels = std::max(1, communicator.p2p_channels);
  std::vector<P2pRound> rounds;
  rounds.reserve(communicator.ranks);
  const int power = PowerOfTwoUp(groups);
  for (int64_t x = 0; x < power; ++x) {
    // Of a power of two the triangle numbers meet every distance once.
    const int delta = static_cast<int>((x * x + x) / 2 % power);
    if (delta >= groups) continue;
    const int to = (group + delta) % groups, from = (group - delta + groups) % groups;
    for (int step = 0; step < size; ++step) {
      P2pRound round;
      round.send_rank = to * size + (local + step) % size;
      round.recv_rank = from * size + (local - step + size) % size;
      const int index = static_cast<int>(rounds.size());
      round.channel_base =
          communicator.nodes > 1
              ? ReverseBits(delta * static_cast<int>(CeilDiv(size, kPerBatch)) + step / kPerBatch,
                            Log2Up(channels))
              : index;
      round.channel_base %= channels;
      rounds.push_back(round);
    }
  }
  return rounds;
}

int P2pChannelOfPart(int p2p_channels, int channel_base, int part) {
  const int delta = ReverseBits(part, Log2Up(p2p_channels));
  return (channel_base + delta) % p2p_channels;
}

}  // namespace plancast
