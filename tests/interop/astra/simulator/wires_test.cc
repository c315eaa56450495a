#include "interop/astra/simulator/wires.h"

#include "gtest/gtest.h"

namespace plancast::astra {
namespace {

constexpr int64_t kMiB = 1 << 20;

AstraNetwork One(AstraWiring wiring, int64_t npus) { return {{{wiring, npus, 50, 500}}, false, 1}; }

// The examples of astra-network-analytical, 1 MiB.
TEST(WiresTest, DelaysWithoutCongestion) {
  EXPECT_EQ(Wires(One(AstraWiring::kRing, 16)).Delay(1, 4, kMiB), 21031);
  EXPECT_EQ(Wires(One(AstraWiring::kFullyConnected, 16)).Delay(1, 4, kMiB), 20031);
  EXPECT_EQ(Wires(One(AstraWiring::kSwitch, 16)).Delay(1, 4, kMiB), 20531);
  EXPECT_EQ(Wires(One(AstraWiring::kRing, 16)).Delay(15, 0, kMiB), 20031);
}

TEST(WiresTest, ThreeDimensionsChargeTheFirstThatDiffers) {
  const Wires wires({{{AstraWiring::kRing, 2, 200, 50},
                      {AstraWiring::kFullyConnected, 8, 100, 500},
                      {AstraWiring::kSwitch, 4, 50, 2000}},
                     false,
                     1});
  EXPECT_EQ(wires.Delay(0, 1, kMiB), 4932);
  EXPECT_EQ(wires.Delay(0, 2 * 5, kMiB), 10265);
  EXPECT_EQ(wires.Delay(0, 16 * 3, kMiB), 23531);
  EXPECT_EQ(wires.Delay(0, 1 + 16 * 3, kMiB), 4932);
}

TEST(WiresTest, HopsWithCongestion) {
  Wires ring(One(AstraWiring::kRing, 8));
  const Wires::Hop back = ring.NextHop({0, -1}, 6);
  EXPECT_EQ(back.next.npu, 7);
  // The other way round is a link of its own; halfway it goes forward.
  const Wires::Hop forward = ring.NextHop({0, -1}, 4);
  EXPECT_EQ(forward.next.npu, 1);
  EXPECT_NE(forward.link, back.link);
  EXPECT_EQ(ring.ArrivalTime(forward.link, kMiB), 20031);
  EXPECT_EQ(ring.SerialisationTime(forward.link, kMiB), 19531);

  Wires both({{{AstraWiring::kSwitch, 2, 100, 10}, {AstraWiring::kFullyConnected, 3, 50, 20}}});
  Wires::Hop hop = both.NextHop({0, -1}, 5);
  EXPECT_EQ(hop.next.npu, 0);
  EXPECT_EQ(hop.next.through, 0);
  hop = both.NextHop(hop.next, 5);
  EXPECT_EQ(hop.next.npu, 1);
  EXPECT_EQ(hop.next.through, -1);
  hop = both.NextHop(hop.next, 5);
  EXPECT_EQ(hop.next.npu, 5);
}

}  // namespace
}  // namespace plancast::astra
