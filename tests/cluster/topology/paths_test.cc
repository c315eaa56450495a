#include "cluster/topology/paths.h"

#include "gtest/gtest.h"
#include "tests/cluster/topology/boxes.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

struct Box {
  explicit Box(const BoxOptions& options, NcclVersion version = kLatestNccl)
      : topology(*Topology::Create(FourGpuBox(options), version)), paths(topology) {}

  const TopologyPath& Gpus(int a, int b) const {
    return paths.Between(topology.Of(NodeKind::kGpu)[a], topology.Of(NodeKind::kGpu)[b]);
  }
  const TopologyPath& Net(int gpu) const {
    return paths.Between(topology.Of(NodeKind::kGpu)[gpu], topology.Of(NodeKind::kNet)[0]);
  }

  Topology topology;
  TopologyPaths paths;
};

TEST(PathsTest, CrossWhatLiesBetween) {
  const Box box({});
  EXPECT_EQ(box.Gpus(0, 0).type, PathType::kLoc);
  EXPECT_EQ(box.Gpus(0, 1).type, PathType::kPix);
  EXPECT_FLOAT_EQ(box.Gpus(0, 1).gb_per_s, 24);
  EXPECT_EQ(box.Gpus(0, 2).type, PathType::kPhb);
  EXPECT_EQ(box.Net(0).type, PathType::kPix);
  EXPECT_FLOAT_EQ(box.Net(0).gb_per_s, 12.5);
  EXPECT_EQ(box.Net(2).type, PathType::kPhb);
}

TEST(PathsTest, LinksOfAPathFollowEachOther) {
  for (int nvlinks : {0, 12}) {
    for (NcclVersion version : {NcclVersion::k2_17, NcclVersion::k2_27, NcclVersion::k2_30}) {
      BoxOptions options;
      options.nvlinks = nvlinks;
      const Box box(options, version);
      for (int from : box.topology.Of(NodeKind::kGpu)) {
        for (NodeKind kind : {NodeKind::kGpu, NodeKind::kNet, NodeKind::kCpu}) {
          for (int to : box.topology.Of(kind)) {
            const TopologyPath& path = box.paths.Between(from, to);
            int at = from;
            float least = 5000;
            for (int index : path.links) {
              const TopologyLink& link = box.topology.links()[index];
              EXPECT_EQ(link.from, at);
              at = link.to;
              least = std::min(least, link.gb_per_s);
            }
            EXPECT_EQ(at, to);
            EXPECT_FLOAT_EQ(path.gb_per_s, least);
          }
        }
      }
    }
  }
}

TEST(PathsTest, NvlinkWinsOverPcie) {
  BoxOptions options;
  options.nvlinks = 12;
  const Box box(options);
  EXPECT_EQ(box.Gpus(0, 3).type, PathType::kNvl);
  EXPECT_FLOAT_EQ(box.Gpus(0, 3).gb_per_s, 240);
  EXPECT_EQ(box.Gpus(0, 3).hops(), 4);  // to the device, the switch, the device, the rank
}

TEST(PathsTest, XgmiJoinsPairs) {
  ASSERT_OK_AND_ASSIGN(const Topology topology, Topology::Create(XgmiBox(), kLatestNccl));
  const TopologyPaths paths(topology);
  for (int a : topology.Of(NodeKind::kGpu)) {
    EXPECT_EQ(topology.node(a).compute_capability, 90);
    for (int b : topology.Of(NodeKind::kGpu)) {
      if (a == b) continue;
      EXPECT_EQ(paths.Between(a, b).type, PathType::kNvl);
      EXPECT_FLOAT_EQ(paths.Between(a, b).gb_per_s, 48);
    }
  }
}

TEST(PathsTest, FarGpusReachTheNetworkThroughNearOnes) {
  BoxOptions options;
  options.nvlinks = 12;
  const Box box(options);
  EXPECT_EQ(box.Net(0).type, PathType::kPix);
  EXPECT_EQ(box.Net(2).type, PathType::kPxn);
  // The way back is not relayed.
  EXPECT_EQ(
      box.paths.Between(box.topology.Of(NodeKind::kNet)[0], box.topology.Of(NodeKind::kGpu)[2])
          .type,
      PathType::kPhb);
}

TEST(PathsTest, WithoutGpuDirectThroughTheCpu) {
  BoxOptions options;
  options.gdr = false;
  const Box box(options);
  EXPECT_EQ(box.Net(0).type, PathType::kPhb);
}

TEST(PathsTest, OldReleasesGoThroughAmdProcessors) {
  BoxOptions options;
  options.vendor = "AuthenticAMD";
  // 2.17 lets GPUs talk through AMD's root complex: the path is direct.
  const Box old(options, NcclVersion::k2_17);
  EXPECT_EQ(old.Gpus(0, 2).type, PathType::kPhb);
  EXPECT_EQ(old.Gpus(0, 2).hops(), 4);
}

TEST(PathsTest, OneHostIsOneNodeUnlessTheNetworkIsFaster) {
  const Box box({});
  EXPECT_EQ(box.paths.Domains().size(), 1u);
  // A network interface of 400 Gbit/s at each switch, and 24 GB/s or less between.
  SystemElement system = FourGpuBox();
  for (int s = 0; s < 2; ++s) {
    SystemElement& pci = system.children[0].children[s];
    pci.children.resize(2);
    for (SystemElement& gpu : pci.children) gpu.Set("link_speed", "32.0 GT/s PCIe");
    SystemElement& nic = AddPciTo(pci, absl::StrCat("0000:8", s, ":00.0"), "0x020700");
    nic.Set("link_speed", "32.0 GT/s PCIe");
    SystemElement& net = nic.Add("nic").Add("net");
    net.Set("dev", absl::StrCat(s));
    net.Set("speed", "400000");
    net.Set("gdr", "1");
  }
  ASSERT_OK_AND_ASSIGN(const Topology topology, Topology::Create(system, kLatestNccl));
  const TopologyPaths paths(topology);
  const std::vector<std::vector<int>> domains = paths.Domains();
  ASSERT_EQ(domains.size(), 2u);
  EXPECT_EQ(domains[0].size(), 2u);
}

}  // namespace
}  // namespace plancast
