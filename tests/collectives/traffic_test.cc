#include "collectives/traffic.h"

#include <cmath>
#include <optional>

#include "gtest/gtest.h"

namespace plancast {
namespace {

GroupShape InOneHost(int64_t members) {
  GroupShape shape;
  shape.members = shape.per_node = shape.nics = members;
  return shape;
}

// `nodes` hosts of `per_node` members, each next to its own interface.
GroupShape OverHosts(int64_t nodes, int64_t per_node) {
  GroupShape shape = InOneHost(per_node);
  shape.members = nodes * per_node;
  shape.nodes = nodes;
  return shape;
}

TEST(RingTrafficTest, AllReduceSendsTwiceAllButOnesOwnPart) {
  const auto traffic = RingTraffic(InOneHost(8), CollectiveKind::kAllReduce);
  ASSERT_TRUE(traffic);
  EXPECT_DOUBLE_EQ(traffic->port, 2 * 7 / 8.0);
  EXPECT_DOUBLE_EQ(traffic->node_hops, 14);
  EXPECT_EQ(traffic->nic, 0);
}

TEST(RingTrafficTest, GatherAndScatterAreHalfOfIt) {
  for (const CollectiveKind kind : {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter}) {
    const auto traffic = RingTraffic(InOneHost(4), kind);
    EXPECT_DOUBLE_EQ(traffic->port, 3 / 4.0);
    EXPECT_DOUBLE_EQ(traffic->node_hops, 3);
  }
}

TEST(RingTrafficTest, BroadcastSendsTheWholeBuffer) {
  EXPECT_DOUBLE_EQ(RingTraffic(InOneHost(4), CollectiveKind::kBroadcast)->port, 1);
}

TEST(RingTrafficTest, CrossesEachHostsBorderOnceOnAllItsInterfaces) {
  const auto traffic = RingTraffic(OverHosts(2, 8), CollectiveKind::kAllReduce);
  EXPECT_DOUBLE_EQ(traffic->nic * 8, 2 * 15 / 16.0);
  EXPECT_DOUBLE_EQ(traffic->port, 2 * 15 / 16.0 * 7 / 8);
  EXPECT_DOUBLE_EQ(traffic->network_hops, 2);
  EXPECT_DOUBLE_EQ(traffic->node_hops, 28);
}

TEST(RingTrafficTest, OneMemberPerHostUsesItsInterfaceAlone) {
  const auto traffic = RingTraffic(OverHosts(16, 1), CollectiveKind::kAllReduce);
  EXPECT_DOUBLE_EQ(traffic->nic, 2 * 15 / 16.0);
  EXPECT_EQ(traffic->port, 0);
  EXPECT_DOUBLE_EQ(traffic->network_hops, 30);
  EXPECT_EQ(traffic->node_hops, 0);
}

TEST(RingTrafficTest, CrossesEachPodsBorderOnce) {
  GroupShape shape = OverHosts(16, 8);
  shape.pods = 4;
  shape.per_pod = 32;
  shape.pod_uplinks = 8;
  const auto traffic = RingTraffic(shape, CollectiveKind::kAllGather);
  EXPECT_DOUBLE_EQ(traffic->spine * 8, 127 / 128.0);
  EXPECT_DOUBLE_EQ(traffic->spine_hops, 3);
}

TEST(RingTrafficTest, EverySwitchBorderPassesTheHostBridge) {
  GroupShape shape = InOneHost(8);
  shape.switches = 4;
  EXPECT_DOUBLE_EQ(RingTraffic(shape, CollectiveKind::kAllReduce)->bridge, 4 * 2 * 7 / 8.0);
  EXPECT_DOUBLE_EQ(RingTraffic(shape, CollectiveKind::kAllReduce)->uplink, 2 * 7 / 8.0);
  // Two members per switch send three quarters of what they have to others.
  EXPECT_DOUBLE_EQ(PairwiseTraffic(shape, CollectiveKind::kAllToAll)->uplink, 2 * 6 / 8.0);
}

TEST(TrafficTest, NetworkTrafficCrossesUplinksBelowTheInterfaces) {
  GroupShape shape = OverHosts(4, 1);
  EXPECT_EQ(RingTraffic(shape, CollectiveKind::kAllGather)->uplink, 0);
  shape.nics_above_switches = true;
  EXPECT_DOUBLE_EQ(RingTraffic(shape, CollectiveKind::kAllGather)->uplink, 3 / 4.0);
  EXPECT_DOUBLE_EQ(PairwiseTraffic(shape, CollectiveKind::kAllToAll)->uplink, 3 / 4.0);
  EXPECT_DOUBLE_EQ(DirectTraffic(shape, CollectiveKind::kPermute)->uplink, 1);
}

TEST(TrafficTest, ChangesOfRailCrossTheSpineInsideAPod) {
  GroupShape shape = OverHosts(2, 2);
  shape.pod_uplinks = 4;
  shape.per_pod = 4;
  EXPECT_EQ(RingTraffic(shape, CollectiveKind::kAllGather)->spine, 0);
  shape.rail_change = shape.exchange_rail_change = 1;
  // What both hosts send, over four uplinks.
  EXPECT_DOUBLE_EQ(RingTraffic(shape, CollectiveKind::kAllGather)->spine, 3 / 4.0 * 2 / 4);
  EXPECT_DOUBLE_EQ(PairwiseTraffic(shape, CollectiveKind::kAllToAll)->spine, 4 * 2 / 4.0 / 4);
  shape.pod_uplinks = 2;
  EXPECT_DOUBLE_EQ(DirectTraffic(shape, CollectiveKind::kSendRecv)->spine, 1);
}

TEST(TreeTrafficTest, TakesLogarithmicallyManyHops) {
  const auto traffic = TreeTraffic(OverHosts(16, 8), CollectiveKind::kAllReduce);
  EXPECT_DOUBLE_EQ(traffic->network_hops, 8);
  EXPECT_DOUBLE_EQ(traffic->node_hops, 14);
  EXPECT_DOUBLE_EQ(traffic->nic * 8, 2);
}

TEST(TreeTrafficTest, TwoHostsExchangeTheBufferOnce) {
  // Root and leaf change places in the second tree, so half goes up and half down.
  EXPECT_DOUBLE_EQ(TreeTraffic(OverHosts(2, 8), CollectiveKind::kAllReduce)->nic * 8, 1);
}

TEST(TreeTrafficTest, DoesAllReduceOnly) {
  EXPECT_FALSE(TreeTraffic(OverHosts(2, 8), CollectiveKind::kAllGather));
}

TEST(NvlsTrafficTest, SendsTheBufferOnceAndOnesPart) {
  EXPECT_DOUBLE_EQ(NvlsTraffic(InOneHost(8), CollectiveKind::kAllReduce)->port, 9 / 8.0);
  EXPECT_FALSE(NvlsTraffic(OverHosts(2, 8), CollectiveKind::kAllReduce));
  EXPECT_FALSE(NvlsTraffic(InOneHost(2), CollectiveKind::kAllReduce));
}

TEST(NvlsTreeTrafficTest, IsSwitchesInsideAndATreeOutside) {
  const auto traffic = NvlsTreeTraffic(OverHosts(4, 8), CollectiveKind::kAllReduce);
  EXPECT_DOUBLE_EQ(traffic->port, 9 / 8.0);
  EXPECT_DOUBLE_EQ(traffic->nic * 8, 2);
  EXPECT_DOUBLE_EQ(traffic->network_hops, 4);
  EXPECT_FALSE(NvlsTreeTraffic(OverHosts(4, 1), CollectiveKind::kAllReduce));
}

TEST(PairwiseTrafficTest, SendsAnEqualPartToEveryMember) {
  const auto inside = PairwiseTraffic(InOneHost(8), CollectiveKind::kAllToAll);
  EXPECT_DOUBLE_EQ(inside->port, 7 / 8.0);
  const auto over = PairwiseTraffic(OverHosts(4, 8), CollectiveKind::kAllToAll);
  EXPECT_DOUBLE_EQ(over->port, 7 / 32.0);
  EXPECT_DOUBLE_EQ(over->nic, 24 / 32.0);  // 8 members on 8 interfaces
}

TEST(PairwiseTrafficTest, CopiesForOneNodeGoOnce) {
  // Eight copies over 4 nodes of 8: 4 (1 - (3/4)^8) nodes want one.
  Traffic over = *PairwiseTraffic(OverHosts(4, 8), CollectiveKind::kAllToAll);
  SendCopiesOnce(OverHosts(4, 8), {8}, &over);
  EXPECT_NEAR(over.nic, 24 / 32.0 * 3.599548 / 8, 1e-6);
  EXPECT_NEAR(over.port, 32 * (1 - std::pow(31 / 32.0, 8)) / 8 * 7 / 8, 1e-12);
  // Two copies over two devices: three of four go, for one in four pairs is one device's twice.
  Traffic inside = *PairwiseTraffic(InOneHost(2), CollectiveKind::kAllToAll);
  SendCopiesOnce(InOneHost(2), {2}, &inside);
  EXPECT_DOUBLE_EQ(inside.port, 0.5 * 0.75);
  Traffic one = *PairwiseTraffic(InOneHost(2), CollectiveKind::kAllToAll);
  SendCopiesOnce(InOneHost(2), {1}, &one);
  EXPECT_DOUBLE_EQ(one.port, 0.5);
  // DeepSeek-V3's eight experts come from four of eight hosts.
  Traffic groups = *PairwiseTraffic(OverHosts(8, 8), CollectiveKind::kAllToAll);
  const double all = groups.nic;
  SendCopiesOnce(OverHosts(8, 8), {8, 8, 4}, &groups);
  EXPECT_NEAR(groups.nic, all * 4 * (1 - std::pow(3 / 4.0, 8)) / 8, 1e-12);
}

TEST(DirectTrafficTest, AllPairsInsideOneHost) {
  const auto reduced = DirectTraffic(InOneHost(4), CollectiveKind::kAllReduce);
  EXPECT_DOUBLE_EQ(reduced->port, 1.5);  // a quarter to each of three, twice
  EXPECT_EQ(reduced->node_hops, 2);
  const auto gathered = DirectTraffic(InOneHost(4), CollectiveKind::kAllGather);
  EXPECT_DOUBLE_EQ(gathered->port, 0.75);
  EXPECT_EQ(gathered->node_hops, 1);
  EXPECT_EQ(DirectTraffic(OverHosts(2, 4), CollectiveKind::kAllReduce), std::nullopt);
  EXPECT_EQ(DirectTraffic(InOneHost(4), CollectiveKind::kBroadcast), std::nullopt);
  EXPECT_EQ(CopyTraffic(InOneHost(4), CollectiveKind::kAllReduce), std::nullopt);
}

TEST(DirectTrafficTest, OneMessagePerMember) {
  EXPECT_DOUBLE_EQ(DirectTraffic(InOneHost(4), CollectiveKind::kPermute)->port, 1);
  const auto rail = DirectTraffic(OverHosts(2, 1), CollectiveKind::kSendRecv);
  EXPECT_DOUBLE_EQ(rail->nic, 1);
  EXPECT_EQ(rail->port, 0);
  // A ring of several members per host leaves the host once, on one interface.
  const auto ring = DirectTraffic(OverHosts(2, 4), CollectiveKind::kPermute);
  EXPECT_DOUBLE_EQ(ring->nic * 4, 1);
  EXPECT_DOUBLE_EQ(ring->nic_flow, 1);
}

}  // namespace
}  // namespace plancast
