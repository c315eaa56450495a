#ifndef PLANCAST_COLLECTIVES_NCCL_CONNECT_H_
#define PLANCAST_COLLECTIVES_NCCL_CONNECT_H_

#include <array>
#include <vector>

#include "collectives/nccl/search.h"

namespace plancast {

// A rank's place in the tree of a channel; -1: nobody.
struct ChannelTree {
  int up = -1;
  std::array<int, 3> down = {-1, -1, -1};
};

// The channels of a communicator, over all hosts. Rank = host * ranks per host + rank
// in the host.
struct NcclConnections {
  std::vector<std::vector<int>> rings;          // [channel]: ranks in order, from 0
  std::vector<std::vector<ChannelTree>> trees;  // [rank][channel]
  std::vector<std::vector<int>> nvls_heads;     // [head][node]: its rank
  // [head][tree][node]: of the trees between nodes that reduce in NVSwitches, which
  // even and odd channels follow.
  std::vector<std::array<std::vector<ChannelTree>, 2>> nvls_trees;
  int tree_depth = 0;  // as NCCL estimates it
};

// Joins what the search found on every node into rings and trees over all.
NcclConnections ConnectChannels(const NcclSearchResult& search);

}  // namespace plancast

#endif  // PLANCAST_COLLECTIVES_NCCL_CONNECT_H_
