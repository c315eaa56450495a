#include "collectives/group_shape.h"

#include <map>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

Machine Made(const char* preset) {
  auto machine = MachineFromPreset(preset);
  EXPECT_TRUE(machine.ok()) << machine.status();
  return *std::move(machine);
}

GroupShape Shape(const Machine& machine, const GroupPattern& group) {
  auto shape = ShapeOf(machine, group);
  EXPECT_TRUE(shape.ok()) << shape.status();
  return *shape;
}

TEST(GroupShapeTest, TensorParallelStaysInOneHost) {
  const GroupShape shape = Shape(Made("dgx-h100:4"), {8, {{8, 1}}});
  EXPECT_EQ(shape.members, 8);
  EXPECT_EQ(shape.nodes, 1);
  EXPECT_EQ(shape.per_node, 8);
  EXPECT_EQ(shape.nics, 8);
}

Machine OnRails(double oversubscription, const char* intra = "nvlink4") {
  Machine::Spec spec = Made("dgx-h100:4").spec();
  spec.intra_link = intra;
  spec.gpus_per_host = 6;
  spec.nics_per_host = 6;
  spec.oversubscription = oversubscription;
  return *Machine::Create(spec);
}

TEST(GroupShapeTest, MembersOnTheSameRailsOfEveryHostStayOnThem) {
  const Machine machine = OnRails(2);
  for (const GroupPattern& group : {GroupPattern{1, {{4, 6}}}, GroupPattern{0, {{6, 1}, {4, 6}}}}) {
    EXPECT_EQ(Shape(machine, group).rail_change, 0);
    EXPECT_EQ(Shape(machine, group).exchange_rail_change, 0);
  }
  // Without NVLink nothing hands on: of six rails five are others.
  EXPECT_DOUBLE_EQ(Shape(OnRails(2, "pcie5"), {0, {{6, 1}, {4, 6}}}).exchange_rail_change, 5.0 / 6);
}

TEST(GroupShapeTest, MembersOnOtherRailsCrossTheSpine) {
  // Devices 4 to 7: rails 4 and 5 of the first host, 0 and 1 of the second.
  const GroupShape shape = Shape(OnRails(2), {4, {{4, 1}}});
  EXPECT_EQ(shape.nodes, 2);
  EXPECT_EQ(shape.pods, 1);
  EXPECT_EQ(shape.rail_change, 1);
  EXPECT_EQ(shape.pod_uplinks, 4);
  // Full bisection: no spine to mind.
  EXPECT_EQ(Shape(OnRails(1), {4, {{4, 1}}}).rail_change, 0);
}

TEST(GroupShapeTest, FewInterfacesHangAboveThePcieSwitches) {
  EXPECT_TRUE(Shape(Made("l40s-host-bridge:2"), {0, {{16, 1}}}).nics_above_switches);
  Machine::Spec spec = Made("l40s-host-bridge:2").spec();
  spec.nics_per_host = 4;
  EXPECT_FALSE(Shape(*Machine::Create(spec), {0, {{16, 1}}}).nics_above_switches);
}

TEST(GroupShapeTest, RailAlignedDataParallelHasOneMemberPerHost) {
  const GroupShape shape = Shape(Made("dgx-h100:16"), {3, {{16, 8}}});
  EXPECT_EQ(shape.nodes, 16);
  EXPECT_EQ(shape.per_node, 1);
  EXPECT_EQ(shape.nics, 1);
}

TEST(GroupShapeTest, DataParallelWithSeveralMembersPerHost) {
  // tp=2, dp=8 on two hosts with 4 NICs: 4 members a host, on 4 NICs.
  const GroupShape shape = Shape(Made("vtrain-a100-80g:2"), {1, {{8, 2}}});
  EXPECT_EQ(shape.nodes, 2);
  EXPECT_EQ(shape.per_node, 4);
  EXPECT_EQ(shape.nics, 4);
  // The same with tp innermost of size 1: neighbours share NICs.
  EXPECT_EQ(Shape(Made("vtrain-a100-80g:2"), {0, {{2, 1}, {2, 8}}}).nics, 1);
}

TEST(GroupShapeTest, TensorParallelAcrossHosts) {
  const GroupShape shape = Shape(Made("dgx-h100:4"), {16, {{16, 1}}});
  EXPECT_EQ(shape.nodes, 2);
  EXPECT_EQ(shape.per_node, 8);
}

TEST(GroupShapeTest, Nvl72DomainIsOneNode) {
  const Machine machine = Made("gb200-nvl72:36");
  EXPECT_EQ(Shape(machine, {0, {{72, 1}}}).nodes, 1);
  EXPECT_EQ(Shape(machine, {0, {{144, 1}}}).nodes, 2);
  EXPECT_EQ(Shape(machine, {0, {{2, 72}}}).per_node, 1);
}

TEST(GroupShapeTest, CountsPods) {
  const Machine machine = Made("grandteton-h100-80g:1536");  // pods of 384 hosts
  const GroupShape shape = Shape(machine, {5, {{1536, 8}}});
  EXPECT_EQ(shape.pods, 4);
  EXPECT_EQ(shape.per_pod, 384);
  EXPECT_EQ(shape.pod_uplinks, 1);
  EXPECT_EQ(Shape(machine, {0, {{8, 1}, {384, 8}}}).pods, 1);
  EXPECT_EQ(Shape(machine, {0, {{8, 1}, {768, 8}}}).pod_uplinks, 8);
}

TEST(GroupShapeTest, CountsPcieSwitches) {
  const Machine machine = Made("l40s-host-bridge:1");
  EXPECT_EQ(Shape(machine, {0, {{2, 1}}}).switches, 1);
  EXPECT_EQ(Shape(machine, {0, {{4, 1}}}).switches, 2);
  EXPECT_EQ(Shape(machine, {0, {{4, 2}}}).switches, 4);
}

TEST(GroupShapeTest, EqualsCountingOneByOne) {
  std::mt19937 random(20261121);
  const std::vector<Machine> machines = {Made("dgx-h100:8"), Made("vtrain-a100-80g:8"),
                                         Made("gb200-nvl72:36"), Made("dgx-h100:12x6"),
                                         Made("grandteton-h100-80g:400")};
  int even = 0;
  for (int trial = 0; trial < 4000; ++trial) {
    const Machine& machine = machines[random() % machines.size()];
    GroupPattern group;
    int64_t stride = 1 + random() % 4;
    for (int d = 0, dims = 1 + random() % 3; d < dims; ++d) {
      const auto extent = static_cast<int64_t>(1 + random() % 8);
      group.dims.push_back({extent, stride});
      stride *= extent * (1 + random() % 3);
    }
    const int64_t last = group.Members().back();
    if (last >= machine.num_devices()) continue;
    group.base = random() % (machine.num_devices() - last);
    std::map<int64_t, std::vector<int64_t>> nodes;
    for (const int64_t d : group.Members()) nodes[machine.DomainOf(d)].push_back(d);
    bool uneven = false;
    size_t most = 0;
    for (const auto& [node, members] : nodes) {
      uneven |= members.size() != nodes.begin()->second.size();
      most = std::max(most, members.size());
    }
    EXPECT_TRUE(GroupPattern::Of(group.Members()).devices.empty());
    const GroupShape shape = Shape(machine, group);
    SCOPED_TRACE(absl::StrCat(machine.spec().name, " trial ", trial, " base ", group.base));
    EXPECT_EQ(shape.members, group.size());
    EXPECT_EQ(shape.per_node, most);
    EXPECT_EQ(shape.nodes, nodes.size());
    std::set<int64_t> pods;
    for (const int64_t d : group.Members()) pods.insert(machine.PodOf(d));
    EXPECT_EQ(shape.pods, pods.size());
    if (uneven) continue;
    ++even;
    std::set<int64_t> nics;
    const int nic = machine.FindLinkClass(LinkKind::kNic);
    for (const int64_t d : nodes.begin()->second) nics.insert(machine.LinkInstance(nic, d));
    EXPECT_EQ(shape.nics, nics.size());
  }
  EXPECT_GT(even, 500);
}

TEST(GroupShapeTest, CountsListsOfDevices) {
  const GroupPattern list = GroupPattern::Of({0, 1, 2, 9, 40});
  ASSERT_EQ(list.size(), 5);
  EXPECT_EQ(list.Members(), (std::vector<int64_t>{0, 1, 2, 9, 40}));
  const GroupShape shape = Shape(Made("dgx-h100:6"), list);
  EXPECT_EQ(shape.members, 5);
  EXPECT_EQ(shape.nodes, 3);
  EXPECT_EQ(shape.per_node, 3);
  EXPECT_EQ(shape.nics, 3);
  EXPECT_THAT(ShapeOf(Made("dgx-h100:5"), list),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("covers devices 0 to 40; the machine has 40.")));
}

TEST(GroupShapeTest, RefusesWhatLeavesTheMachine) {
  const Machine machine = Made("dgx-h100:2");
  EXPECT_THAT(ShapeOf(machine, {0, {{3, 8}}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("a group covers devices 0 to 16; the machine has 16.")));
  EXPECT_THAT(ShapeOf(machine, {-1, {{2, 1}}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("-1")));
  EXPECT_THAT(ShapeOf(machine, {0, {{0, 1}}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("have to be positive")));
}

}  // namespace
}  // namespace plancast
