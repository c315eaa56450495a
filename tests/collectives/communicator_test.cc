#include "collectives/communicator.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "cluster/topology/machine_topology.h"
#include "collectives/nccl/search.h"
#include "gtest/gtest.h"

namespace plancast {
namespace {

NcclCommunicator Of(const std::string& preset, const GroupPattern& group) {
  const Machine machine = *MachineFromPreset(preset);
  return CommunicatorOf(machine, *ShapeOf(machine, group), NcclVersion::k2_30);
}

std::string Line(const NcclGraph& graph) {
  return absl::StrCat(graph.num_channels, "@", graph.bw_intra, "/", graph.bw_inter);
}

// NCCL 2.30.7's own search of these hosts, from oracles/nccl.
TEST(CommunicatorTest, OneHostIsSearchedAsNcclDoes) {
  const GroupPattern all = {0, {{8, 1}}};
  EXPECT_EQ(Line(Of("dgx-a100-80g:1", all).ring), "12@20/20");
  EXPECT_EQ(Of("dgx-a100-80g:1", all).channels, 24);
  EXPECT_EQ(Line(Of("dgx-h100:1", all).ring), "12@30/30");
  EXPECT_EQ(Line(Of("dgx-h100:1", all).nvls), "8@40/60");
  EXPECT_EQ(Of("dgx-h100:1", all).channels, 24);
  EXPECT_EQ(Line(Of("dgx-b200:1", all).ring), "16@45/45");
  EXPECT_EQ(Line(Of("dgx-b200:1", all).nvls), "8@80/90");
  EXPECT_EQ(Of("dgx-b200:1", all).channels, 32);
  EXPECT_EQ(Line(Of("deepseek-h800:1", all).ring), "8@20/20");
  EXPECT_EQ(Line(Of("deepseek-h800:1", all).nvls), "8@15/30");
  EXPECT_EQ(Line(Of("dgx2-v100-32g:1", {0, {{16, 1}}}).ring), "6@20/20");
}

TEST(CommunicatorTest, SeveralHostsAreSearchedAsNcclDoes) {
  const GroupPattern two = {0, {{16, 1}}};
  EXPECT_EQ(Line(Of("dgx-a100-80g:2", two).ring), "8@24/24");
  EXPECT_EQ(Line(Of("dgx-a100-80g:2", two).tree), "8@30/24");
  EXPECT_EQ(Of("dgx-a100-80g:2", two).channels, 16);
  EXPECT_EQ(Line(Of("dgx-h100:2", two).ring), "8@48/48");
  EXPECT_EQ(Line(Of("dgx-h100:2", two).tree), "8@48/48");
  EXPECT_EQ(Of("dgx-h100:2", two).tree.pattern, NcclPattern::kTree);
  EXPECT_EQ(Line(Of("dgx-h100:2", two).nvls), "8@40/48");
  EXPECT_EQ(Of("dgx-h100:2", two).channels, 16);
  EXPECT_EQ(Line(Of("dgx-b200:2", two).ring), "8@48/48");
  EXPECT_EQ(Line(Of("dgx-b200:2", two).tree), "8@96/48");
  EXPECT_EQ(Line(Of("dgx-b200:2", two).nvls), "8@48/48");
  EXPECT_EQ(Line(Of("deepseek-h800:2", two).ring), "8@22/22");
  EXPECT_EQ(Line(Of("deepseek-h800:2", two).nvls), "8@17.5/40");
  EXPECT_EQ(Line(Of("p4d-a100-40g:2", two).ring), "4@12/12");
  EXPECT_EQ(Line(Of("p4d-a100-40g:2", two).tree), "4@24/12");
  EXPECT_EQ(Of("p4d-a100-40g:2", two).channels, 8);
}

// The rules against the search itself, on machines as NCCL would see them.
TEST(CommunicatorTest, RulesAndSearchAgree) {
  for (const char* preset : {"dgx-a100-80g", "dgx-h100", "dgx-b200", "dgx2-v100-32g"}) {
    for (const int hosts : {1, 2, 4}) {
      const Machine machine = *MachineFromPreset(absl::StrCat(preset, ":", hosts));
      const int64_t devices = machine.num_devices();
      const NcclCommunicator ours =
          CommunicatorOf(machine, *ShapeOf(machine, {0, {{devices, 1}}}), NcclVersion::k2_30);
      const MachineTopology topology = TopologyOf(machine);
      const auto found = SearchGraphs(topology.system, topology.hosts, NcclVersion::k2_30);
      ASSERT_TRUE(found.ok()) << found.status();
      const NcclCommunicator& theirs = found->communicator;
      const std::string place = absl::StrCat(preset, ":", hosts);
      EXPECT_EQ(Line(ours.ring), Line(theirs.ring)) << place;
      EXPECT_EQ(Line(ours.tree), Line(theirs.tree)) << place;
      EXPECT_EQ(ours.tree.pattern, theirs.tree.pattern) << place;
      EXPECT_EQ(Line(ours.nvls), Line(theirs.nvls)) << place;
      EXPECT_EQ(ours.channels, theirs.channels) << place;
    }
  }
}

TEST(CommunicatorTest, OneGpuPerHostSplitsItsInterface) {
  const NcclCommunicator rail = Of("dgx-h100:4", {3, {{4, 8}}});
  EXPECT_EQ(Line(rail.ring), "2@24/24");
  EXPECT_EQ(Line(rail.tree), "2@48/24");
  EXPECT_EQ(rail.channels, 4);
  EXPECT_EQ(rail.ring.type_intra, PathType::kLoc);
  EXPECT_FALSE(rail.nvls_supported);
}

TEST(CommunicatorTest, SlowFabricsAddToTheTablesLatency) {
  EXPECT_EQ(Of("dgx-h100:2", {0, {{16, 1}}}).ring.latency_inter, 0);
  EXPECT_NEAR(Of("p4d-a100-40g:2", {0, {{16, 1}}}).ring.latency_inter, 15 - 2.7, 1e-9);
}

TEST(CommunicatorTest, TunersAreRemembered) {
  const Machine machine = *MachineFromPreset("dgx-h100:2");
  const GroupShape shape = *ShapeOf(machine, {0, {{16, 1}}});
  const GroupTuners* first = TunersOf(machine, shape);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(TunersOf(machine, shape), first);
  EXPECT_EQ(first->choice.communicator().version, NcclVersion::k2_27);
  EXPECT_EQ(first->time.communicator().version, NcclVersion::k2_30);
  EXPECT_EQ(TunersOf(machine, *ShapeOf(machine, {0, {}})), nullptr);
}

}  // namespace
}  // namespace plancast
