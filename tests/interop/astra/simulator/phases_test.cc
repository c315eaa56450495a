#include "interop/astra/simulator/phases.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/interop/astra/simulator/astra_builder.h"

namespace plancast::astra {
namespace {

using Kind = AstraAlgorithm::Kind;
using ::testing::ElementsAre;

AstraNetwork TwoDims(int queues) {
  return {
      {{AstraWiring::kSwitch, 8, 400, 936.25}, {AstraWiring::kRing, 4, 50, 1000}}, false, queues};
}

std::vector<int64_t> Bytes(const std::vector<Phase>& phases) {
  std::vector<int64_t> bytes;
  for (const Phase& phase : phases) bytes.push_back(phase.bytes);
  return bytes;
}

TEST(PhasesTest, AnAllReduceGoesDownTheDimensionsAndBackUp) {
  const AstraSystem system = SystemOf({Kind::kRing, Kind::kRing});
  const Circles circles(TwoDims(2), system, {});
  Turns turns = circles.NewTurns();
  const auto phases = circles.PhasesOf(AstraCollective::kAllReduce, -1, 3200, nullptr, turns);
  ASSERT_EQ(phases.size(), 3);
  EXPECT_THAT(Bytes(phases), ElementsAre(3200, 400, 400));
  EXPECT_EQ(phases[0].kind, AstraCollective::kReduceScatter);
  EXPECT_EQ(phases[1].kind, AstraCollective::kAllReduce);
  EXPECT_EQ(phases[2].kind, AstraCollective::kAllGather);
  EXPECT_EQ(phases[2].message, 400);
  EXPECT_EQ(phases[0].queue, 0);
  EXPECT_EQ(phases[1].queue, 2);
  EXPECT_EQ(phases[2].queue, 1);
  EXPECT_TRUE(phases[2].backwards);
}

TEST(PhasesTest, BaselineTakesTheWholeDataThroughEveryDimension) {
  AstraSystem system = SystemOf({Kind::kRing, Kind::kRing});
  system.local_bw_aware = false;
  const Circles circles(TwoDims(1), system, {});
  Turns turns = circles.NewTurns();
  EXPECT_THAT(Bytes(circles.PhasesOf(AstraCollective::kAllReduce, -1, 3200, nullptr, turns)),
              ElementsAre(3200, 3200));
  // An all-gather starts with the last dimension.
  const auto gather = circles.PhasesOf(AstraCollective::kAllGather, -1, 100, nullptr, turns);
  EXPECT_THAT(Bytes(gather), ElementsAre(100, 400));
  EXPECT_EQ(gather[0].circle, 1);
  const std::vector<bool> only_first = {true, false};
  EXPECT_EQ(circles.PhasesOf(AstraCollective::kAllGather, -1, 100, &only_first, turns).size(), 1);
}

TEST(PhasesTest, GroupsAreOneRingUnlessTheyAreAll) {
  const AstraSystem system = SystemOf({Kind::kDirect, Kind::kDirect});
  AstraGroup some{1, {4, 0, 9}}, all{2, {}};
  for (int64_t r = 0; r < 32; ++r) all.ranks.push_back(r);
  const Circles circles(TwoDims(1), system, {some, all});
  const Route& route = circles.RouteOf(AstraCollective::kAllReduce, 0);
  ASSERT_EQ(route.circles.size(), 1);
  EXPECT_EQ(route.algorithms[0].kind, Kind::kRing);
  const Circle& circle = circles.at(route.circles[0]);
  EXPECT_TRUE(circle.local());
  EXPECT_EQ(circle.After(9, 1), 4);  // in the order of the file
  EXPECT_EQ(circle.After(4, -1), 9);
  EXPECT_EQ(circles.RouteOf(AstraCollective::kAllReduce, 1).circles.size(), 2);
}

TEST(PhasesTest, CirclesOfADimension) {
  const Circle circle(4, 8);  // ranks 8 apart
  EXPECT_EQ(circle.PlaceOf(19), 2);
  EXPECT_EQ(circle.After(19, 1), 27);
  EXPECT_EQ(circle.After(19, 2), 3);
  EXPECT_EQ(circle.After(3, -1), 27);
}

}  // namespace
}  // namespace plancast::astra
