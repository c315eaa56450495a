#include "executor/memory/communicators.h"

#include "gtest/gtest.h"
#include "tests/executor/graph_builder.h"

namespace plancast {
namespace {

constexpr int64_t kMiB = 1 << 20;

// As the shipped profiles have it.
CommunicatorParams Nccl() {
  CommunicatorParams params;
  params.fixed_bytes = 328 * kMiB;
  params.channels = 16;
  params.simple_bytes = 4 * kMiB;
  params.ll_bytes = 512 << 10;
  params.ll128_bytes = 4915200;
  params.multiple_bytes = 2 * kMiB;
  params.send_bytes = 2 * kMiB;
  params.ring_peers = 2;
  params.all_to_all_peers = 7;
  params.all_to_all_channels = 32;
  return params;
}

TEST(CommunicatorsTest, AGroupHasOneWhateverItDoes) {
  GraphBuilder b({{"pp", 2}, {"dp", 4}, {"tp", 8}, {"cp", 1}});
  b.Block("F").Comm(CollectiveKind::kAllReduce, 8, {2}).Comm(CollectiveKind::kAllGather, 9, {2});
  b.Comm(CollectiveKind::kAllReduce, 8, {1}).Comm(CollectiveKind::kAllReduce, 8, {1, 2});
  b.Comm(CollectiveKind::kAllReduce, 8, {3});
  const std::vector<Communicator> found =
      CommunicatorsOf(b.Build(), std::vector<int32_t>{0, 1, 2, 3, 4}, Nccl());
  ASSERT_EQ(found.size(), 3u) << "a group of one has none";
  EXPECT_EQ(found[0].size, 8);
  EXPECT_EQ(found[1].size, 4);
  EXPECT_EQ(found[2].size, 32);
  for (const Communicator& communicator : found) EXPECT_EQ(communicator.peers, 2);
}

TEST(CommunicatorsTest, PeersAndChannelsFollowTheAlgorithms) {
  GraphBuilder b({{"dp", 2}, {"tp", 8}});
  b.Block("F").Comm(CollectiveKind::kAllReduce, 8, {0}).Comm(CollectiveKind::kAllToAll, 8, {1});
  const std::vector<Communicator> found =
      CommunicatorsOf(b.Build(), std::vector<int32_t>{0, 1}, Nccl());
  EXPECT_EQ(found[0].peers, 1);
  EXPECT_EQ(found[0].channels, 16);
  EXPECT_EQ(found[1].peers, 7);
  EXPECT_EQ(found[1].channels, 32);
}

// NCCL issue 964 measured 544 and 688 MiB on four A100s.
TEST(CommunicatorsTest, AreAsLargeAsMeasured) {
  Communicator two, more;
  two.peers = 1;
  more.peers = 2;
  two.channels = more.channels = 16;
  EXPECT_EQ(CommunicatorBytes(Nccl(), two), 520 * kMiB);
  EXPECT_EQ(CommunicatorBytes(Nccl(), more), 712 * kMiB);
}

}  // namespace
}  // namespace plancast
