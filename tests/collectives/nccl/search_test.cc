#include "collectives/nccl/search.h"

#include <set>

#include "cluster/topology/machine_topology.h"
#include "collectives/nccl/connect.h"
#include "gtest/gtest.h"
#include "tests/cluster/topology/boxes.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

constexpr NcclVersion kVersions[] = {NcclVersion::k2_17, NcclVersion::k2_27, NcclVersion::k2_30};

void ExpectVisitsAll(const NcclGraph& graph, int gpus, bool inter) {
  ASSERT_EQ(static_cast<int>(graph.channels.size()), graph.num_channels);
  for (const NcclChannel& channel : graph.channels) {
    const std::set<int> visited(channel.gpus.begin(), channel.gpus.end());
    EXPECT_EQ(static_cast<int>(visited.size()), gpus);
    EXPECT_EQ(static_cast<int>(channel.gpus.size()), gpus);
    EXPECT_EQ(channel.nets[0] >= 0, inter);
  }
}

// Two PCIe switches of 24 GB/s: a ring crosses each uplink once in each direction,
// and Intel's root complex makes a sixth more of it.
TEST(SearchTest, PcieBoxHasOneChannel) {
  ASSERT_OK_AND_ASSIGN(const NcclSearchResult one, SearchGraphs(FourGpuBox(), 1, kLatestNccl));
  EXPECT_EQ(one.communicator.ring.num_channels, 1);
  EXPECT_EQ(one.communicator.ring.type_intra, PathType::kPhb);
  EXPECT_EQ(one.communicator.ring.bw_intra, 20);
  EXPECT_EQ(one.communicator.channels, 2);
  EXPECT_FALSE(one.communicator.nvls_supported);
  EXPECT_FALSE(one.communicator.all_nvlink);

  ASSERT_OK_AND_ASSIGN(const NcclSearchResult two, SearchGraphs(FourGpuBox(), 2, kLatestNccl));
  EXPECT_EQ(two.communicator.ranks, 8);
  EXPECT_EQ(two.communicator.ring.bw_inter, 12);  // of 12.5
}

TEST(SearchTest, ChannelsVisitEveryGpuOnce) {
  for (NcclVersion version : kVersions) {
    for (int nvlinks : {0, 4, 12}) {
      for (int hosts : {1, 3}) {
        BoxOptions options;
        options.nvlinks = nvlinks;
        ASSERT_OK_AND_ASSIGN(const NcclSearchResult search,
                             SearchGraphs(FourGpuBox(options), hosts, version));
        ExpectVisitsAll(search.communicator.ring, 4, hosts > 1);
        ExpectVisitsAll(search.communicator.tree, 4, hosts > 1);
        EXPECT_EQ(search.communicator.all_nvlink, nvlinks > 0);
        EXPECT_LE(search.communicator.ring.num_channels * search.communicator.ring.bw_intra,
                  search.gpu_gb_per_s + 1e-3);
      }
    }
  }
}

TEST(SearchTest, RingsAndTreesSpanAllHosts) {
  for (NcclVersion version : kVersions) {
    for (int hosts : {1, 2, 3, 6}) {
      BoxOptions options;
      options.nvlinks = 12;
      ASSERT_OK_AND_ASSIGN(const NcclSearchResult search,
                           SearchGraphs(FourGpuBox(options), hosts, version));
      const NcclConnections connections = ConnectChannels(search);
      const int ranks = 4 * hosts;
      ASSERT_EQ(static_cast<int>(connections.rings.size()), search.communicator.channels);
      for (const std::vector<int>& ring : connections.rings) {
        EXPECT_EQ(ring[0], 0);
        EXPECT_EQ(std::set<int>(ring.begin(), ring.end()).size(), static_cast<size_t>(ranks));
        // A ring enters and leaves every host once.
        int borders = 0;
        for (int i = 0; i < ranks; ++i) borders += ring[i] / 4 != ring[(i + 1) % ranks] / 4;
        EXPECT_EQ(borders, hosts == 1 ? 0 : hosts);
      }
      ASSERT_EQ(static_cast<int>(connections.trees.size()), ranks);
      for (int channel = 0; channel < search.communicator.channels; ++channel) {
        int roots = 0, edges = 0;
        for (int rank = 0; rank < ranks; ++rank) {
          const ChannelTree& tree = connections.trees[rank][channel];
          roots += tree.up < 0;
          for (int down : tree.down) {
            if (down < 0) continue;
            ++edges;
            EXPECT_EQ(connections.trees[down][channel].up, rank);
          }
        }
        EXPECT_EQ(roots, 1);
        EXPECT_EQ(edges, ranks - 1);
      }
    }
  }
}

// NCCL 2.30's, as its own search found it on the vendor's block diagram.
TEST(SearchTest, DgxH100) {
  const MachineTopology machine = TopologyOf(*MachineFromPreset("dgx-h100:2"));
  ASSERT_OK_AND_ASSIGN(const NcclSearchResult search,
                       SearchGraphs(machine.system, machine.hosts, kLatestNccl));
  const NcclCommunicator& comm = search.communicator;
  EXPECT_EQ(comm.ring.num_channels, 8);
  EXPECT_EQ(comm.ring.bw_intra, 48);
  EXPECT_EQ(comm.ring.cross_nic, 2);
  EXPECT_EQ(comm.tree.pattern, NcclPattern::kTree);
  EXPECT_EQ(comm.nvls.num_channels, 8);
  EXPECT_EQ(comm.nvls.bw_intra, 40);
  EXPECT_EQ(comm.nvls_heads, 8);
  EXPECT_EQ(comm.channels, 16);
  EXPECT_EQ(comm.p2p_channels, 16);
  EXPECT_EQ(comm.p2p_channels_per_peer, 4);
}

TEST(SearchTest, XgmiBoxUsesAllItsLinks) {
  ASSERT_OK_AND_ASSIGN(const NcclSearchResult search, SearchGraphs(XgmiBox(), 1, kLatestNccl));
  const NcclGraph& ring = search.communicator.ring;
  ExpectVisitsAll(ring, 4, false);
  EXPECT_EQ(ring.type_intra, PathType::kNvl);
  EXPECT_FALSE(search.communicator.nvls_supported);
  // Four GPUs in a full mesh have two rings that share no link; two directions each.
  EXPECT_GE(ring.num_channels * ring.bw_intra, 2 * 40);
  EXPECT_LE(ring.num_channels * ring.bw_intra, 3 * 48);
}

TEST(SearchTest, HostsThatTheNetworkJoinsBetterAreSeveralNodes) {
  // Two sockets of AMD's, 16 GB/s between them, and interfaces of 24 at each.
  const MachineTopology machine = TopologyOf(*MachineFromPreset("l40s-host-bridge:1"));
  SystemElement system = machine.system;
  for (SystemElement& cpu : system.children) {
    cpu.children.resize(2);  // without interfaces of their own
    for (SystemElement& pci : cpu.children) {
      SystemElement& net =
          AddPciTo(pci, absl::StrCat("0900:", pci.attributes[0].second.substr(5)), "0x020700")
              .Add("nic")
              .Add("net");
      net.Set("dev",
              absl::StrCat(100 + (&pci - &cpu.children[0]) + 2 * (&cpu - &system.children[0])));
      net.Set("speed", "200000");
      net.Set("guid", *net.Find("dev"));
      net.Set("gdr", "1");
    }
  }
  ASSERT_OK_AND_ASSIGN(const NcclSearchResult search, SearchGraphs(system, 2, kLatestNccl));
  EXPECT_GT(search.communicator.nodes, 2);
  EXPECT_EQ(search.communicator.ranks, 16);
  const NcclConnections connections = ConnectChannels(search);
  EXPECT_EQ(std::set<int>(connections.rings[0].begin(), connections.rings[0].end()).size(), 16u);
}

TEST(SearchTest, SeveralHostsNeedANetwork) {
  BoxOptions options;
  options.net = false;
  EXPECT_OK(SearchGraphs(FourGpuBox(options), 1, kLatestNccl).status());
  EXPECT_THAT(SearchGraphs(FourGpuBox(options), 2, kLatestNccl),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no <net> elements")));
  EXPECT_THAT(SearchGraphs(FourGpuBox(), 0, kLatestNccl),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("0 hosts")));
}

}  // namespace
}  // namespace plancast
