#include "cluster/topology/topology.h"

#include "gtest/gtest.h"
#include "tests/cluster/topology/boxes.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

SystemElement& FirstGpu(SystemElement& system) {
  return system.children[0].children[0].children[0].children[0];
}

TEST(TopologyTest, HasTheNodesOfTheDescription) {
  ASSERT_OK_AND_ASSIGN(const Topology topology, Topology::Create(FourGpuBox(), kLatestNccl));
  EXPECT_EQ(topology.Count(NodeKind::kGpu), 4);
  EXPECT_EQ(topology.Count(NodeKind::kDevice), 4);
  EXPECT_EQ(topology.Count(NodeKind::kPci), 2);
  EXPECT_EQ(topology.Count(NodeKind::kCpu), 1);
  EXPECT_EQ(topology.Count(NodeKind::kNet), 1);
  EXPECT_EQ(topology.Count(NodeKind::kNvs), 0);
  EXPECT_EQ(topology.hosts(), 1);
}

TEST(TopologyTest, OlderReleasesKnowNoDevices) {
  ASSERT_OK_AND_ASSIGN(const Topology topology, Topology::Create(FourGpuBox(), NcclVersion::k2_17));
  EXPECT_EQ(topology.Count(NodeKind::kDevice), 0);
}

TEST(TopologyTest, EveryLinkHasOneBack) {
  BoxOptions options;
  options.nvlinks = 12;
  ASSERT_OK_AND_ASSIGN(const Topology topology, Topology::Create(FourGpuBox(options), kLatestNccl));
  for (const TopologyLink& link : topology.links()) {
    bool found = false;
    for (const TopologyLink& back : topology.links()) {
      found = found || (back.from == link.to && back.to == link.from && back.type == link.type &&
                        back.gb_per_s == link.gb_per_s);
    }
    EXPECT_TRUE(found) << topology.DebugString();
  }
}

TEST(TopologyTest, AllSwitchesAreOne) {
  SystemElement system = FourGpuBox();
  for (const char* target : {"0000:b0:00.0", "0000:b1:00.0"}) {
    SystemElement& nvlink = FirstGpu(system).Add("nvlink");
    nvlink.Set("target", target);
    nvlink.Set("count", "2");
    nvlink.Set("tclass", "0x068000");
  }
  ASSERT_OK_AND_ASSIGN(const Topology topology, Topology::Create(system, kLatestNccl));
  ASSERT_EQ(topology.Count(NodeKind::kNvs), 1);
  const TopologyNode& nvs = topology.node(topology.Of(NodeKind::kNvs)[0]);
  ASSERT_EQ(nvs.links.size(), 1u);
  EXPECT_FLOAT_EQ(topology.links()[nvs.links[0]].gb_per_s, 80);
}

TEST(TopologyTest, RanksCountFromZero) {
  SystemElement system = FourGpuBox();
  FirstGpu(system).Set("rank", "17");
  ASSERT_OK_AND_ASSIGN(const Topology topology, Topology::Create(system, kLatestNccl));
  EXPECT_EQ(topology.node(topology.Of(NodeKind::kGpu)[0]).rank, 3);
  EXPECT_EQ(topology.node(topology.Of(NodeKind::kGpu)[1]).rank, 0);
}

// Broadcom's: two levels of switches with vendor 0x1000 and device 0xc010.
TEST(TopologyTest, SwitchesOfTwoLevelsAreOne) {
  SystemElement system = FourGpuBox();
  SystemElement& cpu = system.children[0];
  auto name = [](SystemElement& pci) {
    pci.Set("vendor", "0x1000");
    pci.Set("device", "0xc010");
    pci.Set("subsystem_vendor", "0x1000");
    pci.Set("subsystem_device", "0xa096");
  };
  SystemElement top;
  top.name = "pci";
  top.attributes = cpu.children[0].attributes;
  top.Set("busid", "0000:0f:00.0");
  name(top);
  for (SystemElement& pci : cpu.children) {
    name(pci);
    top.children.push_back(pci);
  }
  cpu.children = {top};
  for (NcclVersion version : {NcclVersion::k2_17, kLatestNccl}) {
    ASSERT_OK_AND_ASSIGN(const Topology topology, Topology::Create(system, version));
    EXPECT_EQ(topology.Count(NodeKind::kPci), 1) << topology.DebugString();
  }
}

TEST(TopologyTest, SeveralHostsOfADomain) {
  SystemElement system = FourGpuBox();
  SystemElement second = system.children[0];
  system.children[0].Set("host_hash", "0x1");
  second.Set("host_hash", "0x2");
  ForEachElement(second, [](SystemElement& element) {
    if (element.name == "gpu") element.Set("rank", absl::StrCat("1", *element.Find("rank")));
  });
  system.children.push_back(second);
  ASSERT_OK_AND_ASSIGN(const Topology topology, Topology::Create(system, kLatestNccl));
  EXPECT_EQ(topology.hosts(), 2);
  EXPECT_EQ(topology.Count(NodeKind::kGpu), 8);
}

TEST(TopologyTest, HasSoManyGpus) {
  SystemElement system = FourGpuBox();
  for (int i = 4; i < 145; ++i) {
    EXPECT_OK(Topology::Create(system, kLatestNccl).status());
    SystemElement& gpu =
        AddPciTo(system.children[0], absl::StrCat("0001:", absl::Hex(i, absl::kZeroPad2), ":00.0"),
                 "0x030200")
            .Add("gpu");
    gpu.Set("dev", absl::StrCat(i));
    gpu.Set("sm", "80");
    gpu.Set("rank", absl::StrCat(i));
  }
  EXPECT_THAT(Topology::Create(system, kLatestNccl),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("145 GPUs")));
}

TEST(TopologyTest, HasSoManyProcessors) {
  SystemElement system = FourGpuBox();
  SystemElement empty = system.children[0];
  empty.children.clear();
  while (system.children.size() < 256) system.children.push_back(empty);
  EXPECT_OK(Topology::Create(system, kLatestNccl).status());
  system.children.push_back(empty);
  EXPECT_THAT(Topology::Create(system, kLatestNccl),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("more than 256 processors")));
}

TEST(TopologyTest, RefusesWhatNcclCannotUse) {
  SystemElement twice = FourGpuBox();
  FirstGpu(twice).Set("rank", "1");
  EXPECT_THAT(Topology::Create(twice, kLatestNccl),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("two <gpu>s have rank 1")));

  SystemElement one_way = FourGpuBox();
  SystemElement& nvlink = FirstGpu(one_way).Add("nvlink");
  nvlink.Set("target", "0000:43:00.0");
  nvlink.Set("count", "1");
  nvlink.Set("tclass", "0x030200");
  EXPECT_THAT(Topology::Create(one_way, kLatestNccl),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("none back")));

  SystemElement empty;
  empty.name = "system";
  EXPECT_THAT(Topology::Create(empty, kLatestNccl),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("NCCL_TOPO_DUMP_FILE")));

  SystemElement no_sm = FourGpuBox();
  FirstGpu(no_sm).attributes.clear();
  FirstGpu(no_sm).Set("rank", "0");
  EXPECT_THAT(Topology::Create(no_sm, kLatestNccl),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("has no `sm`")));
}

}  // namespace
}  // namespace plancast
