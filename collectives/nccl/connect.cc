#include "collectives/nccl/connect.h"

#include <algorithm>

#include "base/floor_log2.h"
#include "collectives/nccl/double_tree.h"

namespace plancast {
namespace {

// A node and where its ranks begin.
struct PlacedNode {
  const NcclNode* node;
  int offset;

  int First() const { return offset + node->ranks[0]; }
};

std::vector<PlacedNode> PlaceNodes(const NcclSearchResult& search) {
  std::vector<PlacedNode> placed;
  for (int host = 0; host < search.hosts; ++host) {
    for (const NcclNode& node : search.nodes) {
      placed.push_back({&node, host * search.ranks_per_host});
    }
  }
  std::stable_sort(placed.begin(), placed.end(),
                   [](const PlacedNode& a, const PlacedNode& b) { return a.First() < b.First(); });
  return placed;
}

// Rings that change interface between hosts go in pairs: every other node swaps them.
const NcclChannel& RingChannel(const NcclNode& node, size_t index, int channel, int channels) {
  const bool swapped = node.ring.cross_nic == 2 && channels % 2 == 0 && index % 2 == 1;
  return node.ring.channels[swapped ? channel ^ 1 : channel];
}

std::vector<std::vector<int>> ConnectRings(const std::vector<PlacedNode>& nodes, int channels) {
  std::vector<std::vector<int>> rings;
  for (int channel = 0; channel < channels; ++channel) {
    std::vector<int> ring;
    for (size_t n = 0; n < nodes.size(); ++n) {
      for (int rank : RingChannel(*nodes[n].node, n, channel, channels).gpus) {
        ring.push_back(nodes[n].offset + rank);
      }
    }
    std::rotate(ring.begin(), std::find(ring.begin(), ring.end(), 0), ring.end());
    rings.push_back(std::move(ring));
  }
  return rings;
}

void AddChild(ChannelTree& tree, int child) {
  for (int& down : tree.down) {
    if (down >= 0) continue;
    down = child;
    return;
  }
}

// The ranks by which a node's tree is joined to its parent's and children's.
struct TreeEnds {
  int to_parent;
  std::array<int, 2> to_child;
};

TreeEnds EndsOf(const PlacedNode& placed, int channel) {
  const NcclGraph& tree = placed.node->tree;
  const std::vector<int>& gpus = tree.channels[channel].gpus;
  auto rank = [&](size_t index) { return placed.offset + gpus[std::min(index, gpus.size() - 1)]; };
  return {rank(0),
          {rank(tree.pattern == NcclPattern::kTree ? 0 : 1),
           rank(tree.pattern == NcclPattern::kSplitTree ? 1 : 0)}};
}

// Channel c follows the first tree between nodes, channel c + channels the second.
void ConnectTrees(const std::vector<PlacedNode>& nodes, int channels,
                  std::vector<std::vector<ChannelTree>>& trees) {
  const int count = static_cast<int>(nodes.size());
  std::vector<std::array<TreePlace, 2>> places;
  for (int n = 0; n < count; ++n) places.push_back(DoubleTree(count, n));
  for (int channel = 0; channel < channels; ++channel) {
    std::vector<TreeEnds> ends;
    for (const PlacedNode& placed : nodes) {
      ends.push_back(EndsOf(placed, channel));
      const std::vector<int>& gpus = placed.node->tree.channels[channel].gpus;
      for (size_t i = 0; i < gpus.size(); ++i) {
        for (int half : {channel, channel + channels}) {
          ChannelTree& tree = trees[placed.offset + gpus[i]][half];
          if (i > 0) tree.up = placed.offset + gpus[i - 1];
          if (i + 1 < gpus.size()) tree.down[0] = placed.offset + gpus[i + 1];
        }
      }
    }
    for (int n = 0; n < count; ++n) {
      for (int half = 0; half < 2; ++half) {
        const TreePlace& place = places[n][half];
        const int at = channel + half * channels;
        if (place.up >= 0) trees[ends[n].to_parent][at].up = ends[place.up].to_child[place.child];
        for (int child = 0; child < 2; ++child) {
          if (place.down[child] < 0) continue;
          AddChild(trees[ends[n].to_child[child]][at], ends[place.down[child]].to_parent);
        }
      }
    }
  }
}

std::vector<int> Heads(const NcclNode& node) {
  std::vector<int> heads;
  for (const NcclChannel& channel : node.nvls.channels) {
    const int head = channel.gpus[0];
    if (std::find(heads.begin(), heads.end(), head) == heads.end()) heads.push_back(head);
  }
  return heads;
}

void ConnectNvls(const std::vector<PlacedNode>& nodes, int heads, NcclConnections& connections) {
  const int count = static_cast<int>(nodes.size());
  for (int head = 0; head < heads; ++head) {
    std::vector<int> ranks;
    for (const PlacedNode& placed : nodes) {
      ranks.push_back(placed.offset + Heads(*placed.node)[head]);
    }
    std::array<std::vector<ChannelTree>, 2> trees;
    for (int n = 0; n < count && count > 1; ++n) {
      const std::array<TreePlace, 2> places = DoubleTree(count, n);
      for (int half = 0; half < 2; ++half) {
        ChannelTree tree;
        if (places[half].up >= 0) tree.up = ranks[places[half].up];
        for (int child : places[half].down) {
          if (child >= 0) AddChild(tree, ranks[child]);
        }
        trees[half].push_back(tree);
      }
    }
    connections.nvls_heads.push_back(std::move(ranks));
    connections.nvls_trees.push_back(std::move(trees));
  }
}

}  // namespace

NcclConnections ConnectChannels(const NcclSearchResult& search) {
  const NcclCommunicator& comm = search.communicator;
  const std::vector<PlacedNode> nodes = PlaceNodes(search);
  const int channels = search.search_channels;
  NcclConnections connections;
  connections.rings = ConnectRings(nodes, channels);
  connections.trees.assign(comm.ranks, std::vector<ChannelTree>(2 * channels));
  ConnectTrees(nodes, channels, connections.trees);
  // Channels beyond are the first ones again.
  for (int channel = channels; channel < comm.channels; ++channel) {
    connections.rings.push_back(std::vector<int>(connections.rings[channel - channels]));
  }
  for (std::vector<ChannelTree>& rank : connections.trees) {
    while (static_cast<int>(rank.size()) < comm.channels) {
      rank.push_back(rank[rank.size() - 2 * channels]);
    }
    rank.resize(comm.channels);
  }
  ConnectNvls(nodes, comm.nvls_heads, connections);
  connections.tree_depth = comm.ranks / comm.nodes - 1 + FloorLog2(comm.nodes);
  return connections;
}

}  // namespace plancast
