#include "collectives/nccl/point_to_point.h"

#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "tests/collectives/nccl/communicators.h"

namespace plancast {
namespace {

constexpr int64_t kKiB = 1024, kMiB = 1024 * kKiB;

TEST(PointToPointTest, EveryRoundPairsAllRanks) {
  for (const int nodes : {1, 2, 3, 5, 16}) {
    NcclCommunicator comm = DgxH100(nodes);
    std::vector<std::vector<P2pRound>> schedules;
    for (int rank = 0; rank < comm.ranks; ++rank) schedules.push_back(P2pSchedule(comm, rank));
    for (int rank = 0; rank < comm.ranks; ++rank) {
      std::set<int> peers;
      ASSERT_EQ(schedules[rank].size(), static_cast<size_t>(comm.ranks));
      EXPECT_EQ(schedules[rank][0].send_rank, rank);
      for (size_t i = 0; i < schedules[rank].size(); ++i) {
        const P2pRound& round = schedules[rank][i];
        peers.insert(round.send_rank);
        EXPECT_EQ(schedules[round.send_rank][i].recv_rank, rank);
        EXPECT_EQ(schedules[round.send_rank][i].channel_base, round.channel_base);
        EXPECT_LT(round.channel_base, comm.p2p_channels);
      }
      EXPECT_EQ(peers.size(), static_cast<size_t>(comm.ranks));
    }
  }
}

TEST(PointToPointTest, NodesFollowTheTriangleNumbers) {
  const std::vector<P2pRound> rounds = P2pSchedule(DgxH100(4), 0);
  EXPECT_EQ(rounds[8].send_rank, 8);    // one node on
  EXPECT_EQ(rounds[16].send_rank, 24);  // three
  EXPECT_EQ(rounds[24].send_rank, 16);  // six, which is two
}

TEST(PointToPointTest, MessagesAreCutByTheirSize) {
  const NcclCommunicator node = DgxH100(1);
  NcclMessage small = CutMessage(node, 8 * kKiB, false, 8);
  EXPECT_EQ(small.protocol, Protocol::kLl);
  EXPECT_EQ(small.channels, 1);
  EXPECT_EQ(small.part_bytes, 8 * kKiB);
  EXPECT_EQ(small.chunk_bytes, 32 * kKiB);
  // 32 channels for 8 peers: 4 each, more where parts exceed 16 MiB.
  const NcclMessage large = CutMessage(node, 32 * kMiB, false, 8);
  EXPECT_EQ(large.protocol, Protocol::kSimple);
  EXPECT_EQ(large.channels, 4);
  EXPECT_EQ(large.chunk_bytes, 512 * kKiB);
  EXPECT_EQ(CutMessage(node, 128 * kMiB, false, 8).channels, 8);
  EXPECT_EQ(CutMessage(node, 128 * kMiB, false, 1).channels, 32);
}

TEST(PointToPointTest, TheNetworkTakesSmallerChunks) {
  const NcclCommunicator nodes = DgxH100(2);
  EXPECT_EQ(CutMessage(nodes, 64 * kKiB, true, 16).protocol, Protocol::kSimple);
  EXPECT_EQ(CutMessage(nodes, 64 * kKiB, true, 16).chunk_bytes, 32 * kKiB);
  EXPECT_EQ(CutMessage(nodes, 512 * kKiB, true, 16).chunk_bytes, 64 * kKiB);
  EXPECT_EQ(CutMessage(nodes, 2 * kMiB, true, 16).chunk_bytes, 128 * kKiB);
  EXPECT_EQ(CutMessage(nodes, 2 * kMiB, true, 16).channels, 4);
}

TEST(PointToPointTest, ChannelsOfAPeer) {
  EXPECT_EQ(NvlinkChannelsPerPeer(370.8, 20.6), 36);
  EXPECT_EQ(NvlinkChannelsPerPeer(20, 20), 2);
  EXPECT_EQ(NetworkChannelsPerPeer(1, 50), 4);
  EXPECT_EQ(NetworkChannelsPerPeer(0, 0), 2);
  std::set<int> channels;
  for (int part = 0; part < 4; ++part) channels.insert(P2pChannelOfPart(16, 3, part));
  EXPECT_EQ(channels, (std::set<int>{3, 7, 11, 15}));
}

}  // namespace
}  // namespace plancast
