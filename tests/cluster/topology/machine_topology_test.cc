#include "cluster/topology/machine_topology.h"

#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cluster/topology/paths.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

struct Seen {
  explicit Seen(const std::string& preset)
      : described(TopologyOf(*MachineFromPreset(preset))),
        topology(*Topology::Create(described.system, kLatestNccl)),
        paths(topology) {}

  MachineTopology described;
  Topology topology;
  TopologyPaths paths;
};

TEST(MachineTopologyTest, EveryPresetIsAHost) {
  for (const std::string& name : MachinePresetNames()) {
    ASSERT_OK_AND_ASSIGN(const Machine machine, MachineFromPreset(absl::StrCat(name, ":36")));
    const MachineTopology described = TopologyOf(machine);
    ASSERT_OK_AND_ASSIGN(const Topology topology, Topology::Create(described.system, kLatestNccl));
    EXPECT_EQ(topology.Count(NodeKind::kGpu) * described.hosts, machine.num_devices()) << name;
    EXPECT_EQ(topology.hosts(), machine.spec().hosts_per_domain) << name;
    EXPECT_FALSE(described.assumptions.empty());
    std::set<int> ranks;
    for (int gpu : topology.Of(NodeKind::kGpu)) ranks.insert(topology.node(gpu).rank);
    EXPECT_EQ(static_cast<int>(ranks.size()), topology.Count(NodeKind::kGpu)) << name;
  }
}

TEST(MachineTopologyTest, DgxH100HasEighteenLinksAndItsInterfaces) {
  const Seen seen("dgx-h100:4");
  EXPECT_EQ(seen.described.hosts, 4);
  const int gpu = seen.topology.Of(NodeKind::kGpu)[0];
  const TopologyPath& peer = seen.paths.Between(gpu, seen.topology.Of(NodeKind::kGpu)[7]);
  EXPECT_EQ(peer.type, PathType::kNvl);
  EXPECT_FLOAT_EQ(peer.gb_per_s, 18 * 20.6);
  const TopologyPath& net = seen.paths.Between(gpu, seen.topology.Of(NodeKind::kNet)[0]);
  EXPECT_EQ(net.type, PathType::kPix);
  EXPECT_FLOAT_EQ(net.gb_per_s, 48);  // its PCIe link, not its 50
}

TEST(MachineTopologyTest, TheHybridMeshHasPairsTwoLinksAway) {
  const Seen seen("dgx1-v100-16g:1");
  int relayed = 0;
  for (int a : seen.topology.Of(NodeKind::kGpu)) {
    for (int b : seen.topology.Of(NodeKind::kGpu)) {
      const PathType type = seen.paths.Between(a, b).type;
      EXPECT_LE(type, PathType::kNvb);
      relayed += type == PathType::kNvb;
    }
  }
  EXPECT_EQ(relayed, 8 * 3);  // four neighbours each of seven
}

TEST(MachineTopologyTest, AnNvlinkDomainIsOneNode) {
  const Seen seen("gb200-nvl72:36");
  EXPECT_EQ(seen.described.hosts, 2);
  EXPECT_EQ(seen.topology.hosts(), 18);
  EXPECT_EQ(seen.paths.Domains().size(), 1u);
  EXPECT_EQ(seen.paths.GreatestType(NodeKind::kGpu), PathType::kNvl);
  // Grace reaches the network over its chip-to-chip link.
  const int gpu = seen.topology.Of(NodeKind::kGpu)[0];
  EXPECT_EQ(seen.paths.Between(gpu, seen.paths.LocalNet(gpu, 0)).type, PathType::kP2c);
}

TEST(MachineTopologyTest, InterfacesOfPcieHostsMayBeFar) {
  const Seen seen("l40s-host-bridge:2");  // four switches, one interface
  for (int gpu : seen.topology.Of(NodeKind::kGpu)) {
    EXPECT_GE(seen.paths.Between(gpu, seen.topology.Of(NodeKind::kNet)[0]).type, PathType::kPhb);
  }
}

TEST(MachineTopologyTest, OtherVendorsStandForAGeneration) {
  const MachineTopology described = TopologyOf(*MachineFromPreset("mi300x-oam:1"));
  EXPECT_TRUE(absl::StrContains(described.assumptions[0], "MI300X"));
}

}  // namespace
}  // namespace plancast
