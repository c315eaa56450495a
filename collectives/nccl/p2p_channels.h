#ifndef PLANCAST_COLLECTIVES_NCCL_P2P_CHANNELS_H_
#define PLANCAST_COLLECTIVES_NCCL_P2P_CHANNELS_H_

#include "cluster/topology/paths.h"
#include "cluster/topology/topology.h"
#include "collectives/nccl/graphs.h"

// Channels of sends and receives.

namespace plancast {

// The channels that the least connected pair of ranks may use; `inter`: some peers
// are reached over the network.
int P2pChannelsOfPeers(const Topology& topology, const TopologyPaths& paths, bool inter);

// Sets `p2p_channels` from `channels`, and bounds `p2p_channels_per_peer`, which holds
// what P2pChannelsOfPeers says: both are powers of two, and all peers fit into one
// round where there are several nodes.
void SetP2pChannels(NcclCommunicator& communicator);

}  // namespace plancast

#endif  // PLANCAST_COLLECTIVES_NCCL_P2P_CHANNELS_H_
