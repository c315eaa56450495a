#include "executor/fold/fold.h"

#include <optional>
#include <set>

#include "executor/fold/colour_refinement.h"
#include "executor/fold/mixed_radix.h"
#include "executor/fold/orbits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/executor/graph_builder.h"
#include "tests/executor/random_plan.h"
#include "tests/executor/simulation.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

DeviceMesh Mesh(std::vector<MeshAxis> axes) { return *DeviceMesh::Create(std::move(axes)); }

std::vector<int64_t> SizesOf(const MixedRadix& radix) {
  std::vector<int64_t> sizes;
  for (const Digit& digit : radix.digits) sizes.push_back(digit.size);
  return sizes;
}

TEST(MixedRadixTest, CutsAxesAtHosts) {
  const Machine machine = *Machine::Create(UnitMachine(4, 4));
  const auto radix = MixedRadix::Split(Mesh({{"pp", 2}, {"tp", 8}}), machine);
  ASSERT_TRUE(radix.has_value());
  EXPECT_THAT(SizesOf(*radix), ElementsAre(4, 2, 2));
  EXPECT_EQ(radix->digits[1].axis, 1);
  EXPECT_EQ(radix->digits[2].axis, 0);
}

TEST(MixedRadixTest, LinksAreDigits) {
  // Two devices share a NIC.
  const Machine machine = *Machine::Create(UnitMachine(2, 4, 2));
  const auto radix = MixedRadix::Split(Mesh({{"dp", 2}, {"tp", 4}}), machine);
  ASSERT_TRUE(radix.has_value());
  EXPECT_THAT(SizesOf(*radix), ElementsAre(2, 2, 2));
  EXPECT_EQ(radix->link_digits[machine.FindLinkClass(LinkKind::kNvlink)], 0b111u);
  EXPECT_EQ(radix->link_digits[machine.FindLinkClass(LinkKind::kNic)], 0b110u);
}

TEST(MixedRadixTest, RefusesHostsThatCutAcrossAnAxis) {
  const Machine machine = *Machine::Create(UnitMachine(4, 6));
  EXPECT_FALSE(MixedRadix::Split(Mesh({{"dp", 3}, {"tp", 4}}), machine).has_value());
  EXPECT_TRUE(MixedRadix::Split(Mesh({{"dp", 4}, {"tp", 3}}), machine).has_value());
  // A mesh inside one host is cut by nothing.
  EXPECT_TRUE(MixedRadix::Split(Mesh({{"tp", 5}}), machine).has_value());
}

TEST(ColourRefinementTest, TellsAPathFromItsMiddle) {
  LabelledGraph path(5);
  for (int i = 0; i < 4; ++i) path.AddEdge(i, i + 1, 0);
  path.Index();
  EXPECT_THAT(RefineColours(path, std::vector<int32_t>(5, 0)), ElementsAre(0, 1, 2, 1, 0));
}

TEST(ColourRefinementTest, KeepsWhatIsAlikeAndMindsLabels) {
  LabelledGraph ring(4);
  for (int i = 0; i < 4; ++i) ring.AddEdge(i, (i + 1) % 4, 0);
  ring.Index();
  EXPECT_THAT(RefineColours(ring, std::vector<int32_t>(4, 0)), ElementsAre(0, 0, 0, 0));
  LabelledGraph labelled(4);
  for (int i = 0; i < 4; ++i) labelled.AddEdge(i, (i + 1) % 4, i == 0 ? 1 : 0);
  labelled.Index();
  EXPECT_THAT(RefineColours(labelled, std::vector<int32_t>(4, 0)), ElementsAre(0, 0, 1, 1));
}

TEST(FoldTest, AMeshLargerThanTheMachineIsAnError) {
  GraphBuilder b({{"dp", 4}, {"tp", 4}});
  b.Block("F").Kernel(1);
  b.Program("all").Run("F");
  const Machine machine = *Machine::Create(UnitMachine(2, 4));
  const auto s = Simulation::Run(b.Build(), machine, UnitComm(machine));
  ASSERT_FALSE(s.ok());
  EXPECT_THAT(std::string(s.status().message()),
              HasSubstr("needs 16 devices (dp=4 tp=4) and the machine has 8"));
}

// tp groups of 4 on hosts of 6: the second group lies across two hosts, and NICs
// carry different numbers of groups.
TEST(FoldTest, AGroupAcrossHostsIsAClassOfItsOwn) {
  GraphBuilder b({{"dp", 3}, {"tp", 4}});
  b.Block("F").Kernel(1).Comm(CollectiveKind::kAllReduce, 10'000'000'000, {1}, {0});
  b.Program("all").Run("F");
  const Machine machine = *Machine::Create(UnitMachine(2, 6));
  const auto s = Simulation::Run(b.Build(), machine, UnitComm(machine));
  ASSERT_TRUE(s.ok()) << s.status();
  ASSERT_EQ((*s)->sim().entities.size(), 2);
  EXPECT_EQ((*s)->sim().entities[0].devices, 8);
  EXPECT_EQ((*s)->sim().entities[1].devices, 4);
  EXPECT_EQ((*s)->sim().entities[1].representative, 4);
  EXPECT_DOUBLE_EQ((*s)->End(0, 1), 1.1);
  EXPECT_DOUBLE_EQ((*s)->End(1, 1), 2);
}

TEST(FoldTest, ClassesDoNotGrowWithReplicas) {
  for (const int64_t replicas : {2, 16, 128}) {
    GraphBuilder b({{"pp", 2}, {"dp", replicas}, {"tp", 8}});
    b.Block("F")
        .Comm(CollectiveKind::kAllReduce, 1000, {2})
        .Comm(CollectiveKind::kAllReduce, 1000, {1}, {}, Purpose::kDp, StreamKind::kGradComm);
    b.Program("stage 0", {{0, 0}}).Run("F");
    b.Program("stage 1", {{0, 1}}).Run("F");
    const Machine machine = *Machine::Create(UnitMachine(2 * replicas, 8));
    const auto s = Simulation::Run(b.Build(), machine, UnitComm(machine));
    ASSERT_TRUE(s.ok()) << s.status();
    EXPECT_EQ((*s)->sim().entities.size(), 2);
    EXPECT_EQ((*s)->sim().groups.size(), 4);
  }
}

TEST(FoldTest, ASlowLinkSplitsWhatCrossesIt) {
  GraphBuilder b({{"dp", 4}, {"tp", 2}});
  b.Block("F").Comm(CollectiveKind::kAllReduce, 1000, {1});
  b.Program("all").Run("F");
  Machine::Spec spec = UnitMachine(1, 8);
  spec.link_overrides.push_back({0, 5, 0.5});
  const Machine machine = *Machine::Create(spec);
  const auto s = Simulation::Run(b.Build(), machine, UnitComm(machine));
  ASSERT_TRUE(s.ok()) << s.status();
  // The pair {4, 5} against the other three; its members are alike to one another.
  ASSERT_EQ((*s)->sim().entities.size(), 2);
  EXPECT_EQ((*s)->sim().entities[1].representative, 4);
  EXPECT_EQ((*s)->sim().entities[1].devices, 2);
}

// Orbits are classes that one finds by looking at every device.
TEST(OrbitsTest, OneSlowDeviceTellsItsCoordinatesApart) {
  GraphBuilder b({{"dp", 16}, {"tp", 8}});
  b.Block("F").Kernel(1);
  b.Program("all").Run("F");
  Machine::Spec spec = UnitMachine(16, 8);
  EXPECT_EQ(DeviceOrbits(b.Build(), *Machine::Create(spec), false).size(), 1);
  EXPECT_EQ(DeviceOrbits(b.Build(), *Machine::Create(spec), true).size(), 128);
  spec.device_overrides.push_back({17, 0.8});
  const DeviceOrbits orbits(b.Build(), *Machine::Create(spec), false);
  ASSERT_EQ(orbits.size(), 4);
  int64_t devices = 0;
  for (int32_t orbit = 0; orbit < 4; ++orbit) {
    EXPECT_EQ(orbits.OrbitOf(orbits.Representative(orbit)), orbit);
    devices += orbits.Count(orbit);
  }
  EXPECT_EQ(devices, 128);
  EXPECT_EQ(orbits.Count(orbits.OrbitOf(17)), 1);
  EXPECT_EQ(orbits.OrbitOf(16), orbits.OrbitOf(18));
  EXPECT_EQ(orbits.OrbitOf(1), orbits.OrbitOf(9));
  EXPECT_NE(orbits.OrbitOf(1), orbits.OrbitOf(0));
}

// Pods of 24 GPUs cut dp groups of 8: the pods' parts are orbits.
TEST(OrbitsTest, PodsThatCutAnAxisKeepItsValuesApart) {
  GraphBuilder b({{"dp", 10}, {"tp", 8}});
  b.Block("F").Kernel(1);
  b.Program("all").Run("F");
  Machine::Spec spec = UnitMachine(12, 8);
  spec.hosts_per_pod = 3;
  const DeviceOrbits orbits(b.Build(), *Machine::Create(spec), false);
  ASSERT_EQ(orbits.size(), 4);
  EXPECT_EQ(orbits.Count(0), 24);
  EXPECT_EQ(orbits.Count(3), 8);
}

// The closed form gives what colour refinement of all devices gives.
TEST(FoldTest, ClosedFormEqualsColourRefinement) {
  int closed = 0;
  for (uint32_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomPlan plan = DrawPlan(seed);
    plan.machine.device_overrides.clear();
    plan.machine.link_overrides.clear();
    const Machine machine = *Machine::Create(plan.machine);
    if (!MixedRadix::Split(plan.graph.mesh, machine).has_value()) continue;
    ++closed;
    const auto folded =
        Simulation::Run(plan.graph, machine, MadeUpComm(machine, seed), Form::kFolded);
    const auto refined =
        Simulation::Run(plan.graph, machine, MadeUpComm(machine, seed), Form::kRefined);
    ASSERT_EQ(folded.ok(), refined.ok());
    if (!folded.ok()) continue;
    const SimGraph& a = (*folded)->sim();
    const SimGraph& b = (*refined)->sim();
    ASSERT_EQ(a.entities.size(), b.entities.size());
    for (size_t e = 0; e < a.entities.size(); ++e) {
      EXPECT_EQ(a.entities[e].program, b.entities[e].program);
      EXPECT_EQ(a.entities[e].devices, b.entities[e].devices);
      EXPECT_EQ(a.entities[e].representative, b.entities[e].representative);
    }
    ASSERT_EQ(a.groups.size(), b.groups.size());
    for (size_t u = 0; u < a.uses.size(); ++u) {
      const SimGraph::Group& x = a.groups[a.uses[u].first_group];
      const SimGraph::Group& y = b.groups[b.uses[u].first_group];
      EXPECT_EQ(x.groups, y.groups);
      // Links of different programs may be alike to refinement.
      std::set<std::pair<int, int64_t>> loads_x, loads_y;
      for (const Fluid::Use& load : a.LoadsOf(x)) {
        loads_x.insert({a.resources[load.resource].link_class, load.coefficient_q20});
      }
      for (const Fluid::Use& load : b.LoadsOf(y)) {
        loads_y.insert({b.resources[load.resource].link_class, load.coefficient_q20});
      }
      EXPECT_EQ(loads_x, loads_y);
    }
    EXPECT_EQ((*folded)->trace().makespan_ps, (*refined)->trace().makespan_ps);
  }
  EXPECT_GT(closed, 100);
}

}  // namespace
}  // namespace plancast
