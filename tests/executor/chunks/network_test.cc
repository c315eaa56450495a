#include "executor/chunks/network.h"

#include <cmath>
#include <string>
#include <vector>

#include "cluster/machine.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> Names(const ChunkNetwork& network, int64_t from, int64_t to) {
  const absl::StatusOr<Route> route = network.RouteOf(from, to);
  EXPECT_OK(route.status());
  std::vector<std::string> names;
  for (const Route::Hop& hop : route->hops) names.push_back(network.LinkName(hop.link));
  return names;
}

TEST(ChunkNetworkTest, RoutesInsideAndBetweenHosts) {
  const Machine machine = *MachineFromPreset("dgx-h100:2");
  const ChunkNetwork network = ChunkNetwork::OfMachine(machine);
  EXPECT_EQ(network.num_places(), 18);
  EXPECT_THAT(Names(network, 0, 5),
              ElementsAre("nvlink of device 0, outward", "nvlink of device 5, inward"));
  EXPECT_THAT(Names(network, 3, 8),
              ElementsAre("nic of device 3, outward", "nic of device 8, inward"));
  EXPECT_FALSE(network.RouteOf(0, 5)->network);
  EXPECT_TRUE(network.RouteOf(3, 8)->network);
  const int nic = machine.FindLinkClass(LinkKind::kNic);
  EXPECT_EQ(network.RouteOf(3, 8)->latency_ps,
            std::llround(machine.link_classes()[nic].latency_s * 1e12));
  const Route route = *network.RouteOf(3, 8);
  for (const Route::Hop& hop : route.hops) {
    EXPECT_EQ(network.LinkBytesPerSecond(hop.link), 50'000'000'000);
  }
}

TEST(ChunkNetworkTest, SwitchesArePlaces) {
  const Machine machine = *MachineFromPreset("dgx-h100:2");
  const ChunkNetwork network = ChunkNetwork::OfMachine(machine);
  const int64_t switches = *network.SwitchesOf(9);
  EXPECT_EQ(switches, 17);
  EXPECT_THAT(Names(network, 9, switches), ElementsAre("nvlink of device 9, outward"));
  EXPECT_THAT(Names(network, switches, 15), ElementsAre("nvlink of device 15, inward"));
  EXPECT_TRUE(network.RouteOf(9, switches)->to_switch);
  EXPECT_THAT(network.RouteOf(0, switches),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no links between them")));
  const Machine mesh = *MachineFromPreset("dgx1-v100-32g:1");
  EXPECT_THAT(
      ChunkNetwork::OfMachine(mesh).SwitchesOf(0),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("need a machine with NVLink")));
}

// Where rails meet only at a narrow spine, NVLink hosts hand over to the receiver's
// rail first; what leaves the pod crosses the spine.
TEST(ChunkNetworkTest, RailsAndPods) {
  Machine::Spec spec = MachineFromPreset("dgx-h100:4")->spec();
  spec.hosts_per_pod = 2;
  spec.oversubscription = 2;
  const Machine machine = *Machine::Create(spec);
  const ChunkNetwork network = ChunkNetwork::OfMachine(machine);
  EXPECT_THAT(Names(network, 0, 13),
              ElementsAre("nvlink of device 0, outward", "nvlink of device 5, inward",
                          "nic of device 5, outward", "nic of device 13, inward"));
  const std::vector<std::string> far = Names(network, 0, 16);
  ASSERT_EQ(far.size(), 4u);
  EXPECT_THAT(far[1], HasSubstr("spine"));
  EXPECT_THAT(far[2], HasSubstr("spine"));
  EXPECT_FALSE(network.DomainsTurn());
}

TEST(ChunkNetworkTest, DomainsTurnWhereEveryDeviceHasItsLinks) {
  const Machine even = *MachineFromPreset("dgx-h100:2");
  const ChunkNetwork network = ChunkNetwork::OfMachine(even);
  EXPECT_TRUE(network.DomainsTurn());
  const int64_t link = network.RouteOf(13, 0)->hops[0].link;  // the interface of device 13
  EXPECT_EQ(network.LinkName(network.TurnedToFirst(link)), "nic of device 8, outward");
  const Machine shared = *MachineFromPreset("p4d-a100-40g:2");  // four interfaces for eight
  EXPECT_FALSE(ChunkNetwork::OfMachine(shared).DomainsTurn());
  Machine::Spec spec = even.spec();
  spec.device_overrides = {{3, 0.9}};
  const Machine uneven = *Machine::Create(spec);
  EXPECT_FALSE(ChunkNetwork::OfMachine(uneven).DomainsTurn());
}

TEST(ChunkNetworkTest, WiresTakeTheFewestHops) {
  // 0 to 1 directly, and over switch 3; 2 is attached to the switch alone.
  const auto network = ChunkNetwork::OfWires(
      3, 4,
      {{0, 1, 10, 5}, {0, 3, 10, 1}, {3, 1, 10, 1}, {3, 2, 10, 2}, {0, 1, 20, 3}, {1, 0, 10, 5}});
  ASSERT_OK(network.status());
  EXPECT_EQ(network->RouteOf(0, 1)->latency_ps, 3);  // of two wires the faster
  EXPECT_EQ(network->RouteOf(0, 2)->latency_ps, 3);
  EXPECT_EQ(network->RouteOf(0, 2)->hops.size(), 2u);
  // Places pass nothing on.
  EXPECT_THAT(network->RouteOf(1, 2), StatusIs(absl::StatusCode::kInvalidArgument,
                                               HasSubstr("no wires lead from place 1")));
  EXPECT_THAT(network->RouteOf(0, 3),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("places 0 to 2")));
  EXPECT_THAT(ChunkNetwork::OfWires(2, 2, {{0, 5, 1, 0}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("wire 0 leads from")));
}

}  // namespace
}  // namespace plancast
