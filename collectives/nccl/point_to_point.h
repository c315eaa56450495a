#ifndef PLANCAST_COLLECTIVES_NCCL_POINT_TO_POINT_H_
#define PLANCAST_COLLECTIVES_NCCL_POINT_TO_POINT_H_

#include <cstdint>
#include <vector>

#include "collectives/nccl/graphs.h"
#include "collectives/nccl/tuner.h"

// How NCCL cuts sends and receives, and in which order a group of them (an
// all-to-all) runs (src/enqueue.cc and src/init.cc). NCCL has no forecast of
// their time.

namespace plancast {

// Channels that one peer may get: what NVLink, PCIe or the network interfaces
// between the two ranks feed, before the communicator takes the least over its
// peers. `path_bw` and `link_bw` in GB/s; of the network, `nics` interfaces near
// the rank.
int NvlinkChannelsPerPeer(double path_bw, double link_bw);
int NetworkChannelsPerPeer(int nics, double net_bw);
inline constexpr int kPcieChannelsPerPeer = 2;

// One message between two ranks.
struct NcclMessage {
  Protocol protocol = Protocol::kSimple;
  int channels = 1;
  int64_t part_bytes = 0;   // of a channel; the last may be smaller
  int64_t chunk_bytes = 0;  // payload of one slot
};

// `messages` to different peers are launched together, at least one channel each.
NcclMessage CutMessage(const NcclCommunicator& communicator, int64_t bytes, bool over_network,
                       int messages);

// Slot of the queue of sends and receives: 512 KiB inside NVLink domains, else
// 128 KiB.
int64_t P2pSlotBytes(const NcclCommunicator& communicator);

struct P2pRound {
  int send_rank = 0, recv_rank = 0;
  int channel_base = 0;  // of the message's first part
};

// The rounds in which a rank meets every rank, itself first. Ranks come in groups
// of up to 8 of one node; group distances follow the triangle numbers, distances
// inside the group ascend. In every round all ranks send and receive once.
std::vector<P2pRound> P2pSchedule(const NcclCommunicator& communicator, int rank);

// The channel of a part of a message: parts lie as far apart as they can.
int P2pChannelOfPart(int p2p_channels, int channel_base, int part);

}  // namespace plancast

#endif  // PLANCAST_COLLECTIVES_NCCL_POINT_TO_POINT_H_
