#include "cluster/machine.h"

#include <limits>
#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Machine::Spec TwoHosts() {
  Machine::Spec spec;
  spec.name = "toy";
  spec.device.name = "toy-gpu";
  spec.device.memory_bytes = 80e9;
  spec.device.memory_bytes_per_s = 2e12;
  spec.device.bf16_flops = 300e12;
  spec.hosts = 2;
  spec.gpus_per_host = 8;
  spec.intra_bytes_per_s = 300e9;
  spec.intra_latency_s = 1e-6;
  spec.nics_per_host = 4;
  spec.nic_bytes_per_s = 25e9;
  spec.nic_latency_s = 3e-6;
  spec.pcie_bytes_per_s = 32e9;
  return spec;
}

Machine Made(Machine::Spec spec) {
  auto machine = Machine::Create(std::move(spec));
  EXPECT_TRUE(machine.ok()) << machine.status();
  return *std::move(machine);
}

std::vector<std::string> Names(const Machine& machine) {
  std::vector<std::string> names;
  for (const LinkClass& link : machine.link_classes()) names.push_back(link.name);
  return names;
}

TEST(MachineTest, ListsLinksInnermostFirst) {
  const Machine machine = Made(TwoHosts());
  EXPECT_THAT(Names(machine), ElementsAre("pcie", "nvlink", "nic"));
  EXPECT_EQ(machine.link_classes()[0].reaches, Level::kDevice);
  EXPECT_EQ(machine.link_classes()[machine.intra_class()].reaches, Level::kHost);
  EXPECT_EQ(machine.FindLinkClass(LinkKind::kSpine), -1);
}

// What is known of a host's memory lies behind the other links.
TEST(MachineTest, DevicesShareUplinksAndTheMemoryOfTheirHost) {
  Machine::Spec spec = TwoHosts();
  spec.gpus_per_host_uplink = 3;
  spec.host_memory_bytes_per_s = 400e9;
  const Machine machine = Made(spec);
  EXPECT_THAT(Names(machine), ElementsAre("pcie", "nvlink", "nic", "host-uplink", "host-memory"));
  const int uplink = machine.FindLinkClass(LinkKind::kHostUplink);
  EXPECT_EQ(machine.NumLinkInstances(uplink), 6);
  EXPECT_EQ(machine.link_classes()[uplink].bytes_per_s, 32e9);
  EXPECT_EQ(machine.LinkInstance(uplink, 8), 3);
  const int memory = machine.FindLinkClass(LinkKind::kHostMemory);
  EXPECT_EQ(machine.NumLinkInstances(memory), 2);
  EXPECT_FALSE(machine.link_classes()[memory].duplex);

  // A link of the chips' own takes the place of PCIe and its uplinks.
  spec.c2c_bytes_per_s = 450e9;
  EXPECT_THAT(Names(Made(spec)), ElementsAre("c2c", "nvlink", "nic", "host-memory"));
}

TEST(MachineTest, NeighboursShareANic) {
  const Machine machine = Made(TwoHosts());
  const int nic = machine.FindLinkClass(LinkKind::kNic);
  EXPECT_EQ(machine.NumLinkInstances(nic), 8);
  EXPECT_EQ(machine.LinkInstance(nic, 0), 0);
  EXPECT_EQ(machine.LinkInstance(nic, 1), 0);
  EXPECT_EQ(machine.LinkInstance(nic, 2), 1);
  EXPECT_EQ(machine.LinkInstance(nic, 7), 3);
  EXPECT_EQ(machine.LinkInstance(nic, 8), 4);
}

TEST(MachineTest, NicsOfOneDeviceWorkAsOne) {
  Machine::Spec spec = TwoHosts();
  spec.nics_per_host = 32;
  const Machine machine = Made(spec);
  const int nic = machine.FindLinkClass(LinkKind::kNic);
  EXPECT_EQ(machine.NumLinkInstances(nic), 16);
  EXPECT_DOUBLE_EQ(machine.link_classes()[nic].bytes_per_s, 100e9);
  EXPECT_EQ(machine.LinkInstance(nic, 11), 11);
}

TEST(MachineTest, NicCountNeedNotDivideTheDevices) {
  Machine::Spec spec = TwoHosts();
  spec.nics_per_host = 3;
  const Machine machine = Made(spec);
  const int nic = machine.FindLinkClass(LinkKind::kNic);
  std::vector<int64_t> users(machine.NumLinkInstances(nic));
  for (int64_t d = 0; d < machine.num_devices(); ++d) ++users[machine.LinkInstance(nic, d)];
  EXPECT_THAT(users, ElementsAre(3, 3, 2, 3, 3, 2));
}

TEST(MachineTest, PodsHaveAnUplinkPerRail) {
  Machine::Spec spec = TwoHosts();
  spec.hosts = 5;
  spec.hosts_per_pod = 2;
  spec.oversubscription = 4;
  const Machine machine = Made(spec);
  const int spine = machine.FindLinkClass(LinkKind::kSpine);
  const LinkClass& link = machine.link_classes()[spine];
  EXPECT_DOUBLE_EQ(link.bytes_per_s, 25e9 * 2 / 4);
  EXPECT_EQ(link.reaches, Level::kCluster);
  EXPECT_EQ(machine.NumLinkInstances(spine), 3 * 4);  // the last pod is half full
  EXPECT_EQ(machine.LinkInstance(spine, 0), 0);
  EXPECT_EQ(machine.LinkInstance(spine, 8), 0);
  EXPECT_EQ(machine.LinkInstance(spine, 15), 3);
  EXPECT_EQ(machine.LinkInstance(spine, 16), 4);
  EXPECT_EQ(machine.PodOf(39), 2);

  spec.rail_optimized = false;
  const Machine mixed = Made(spec);
  EXPECT_EQ(mixed.NumLinkInstances(spine), 3);
  EXPECT_DOUBLE_EQ(mixed.link_classes()[spine].bytes_per_s, 4 * 25e9 * 2 / 4);
}

TEST(MachineTest, HostBridgeIsSharedByTheHost) {
  Machine::Spec spec = TwoHosts();
  spec.topology = "host-bridge";
  spec.intra_link = "pcie4";
  spec.intra_bytes_per_s = 32e9;
  const Machine machine = Made(spec);
  EXPECT_THAT(Names(machine), ElementsAre("pcie", "pcie-switch", "host-bridge", "nic"));
  EXPECT_EQ(machine.link_classes()[0].reaches, Level::kHost);
  EXPECT_EQ(machine.NumLinkInstances(2), 2);
  EXPECT_EQ(machine.LinkInstance(2, 7), 0);
  EXPECT_EQ(machine.LinkInstance(2, 8), 1);
}

TEST(MachineTest, APcieSwitchHasOneUplinkForItsDevices) {
  Machine::Spec spec = TwoHosts();
  spec.topology = "host-bridge";
  spec.intra_link = "pcie4";
  spec.intra_bytes_per_s = 32e9;
  spec.gpus_per_switch = 4;
  Machine machine = Made(spec);
  const int uplink = machine.FindLinkClass(LinkKind::kPcieSwitch);
  EXPECT_EQ(machine.NumLinkInstances(uplink), 4);
  EXPECT_EQ(machine.LinkInstance(uplink, 3), 0);
  EXPECT_EQ(machine.LinkInstance(uplink, 4), 1);
  EXPECT_EQ(machine.LinkInstance(uplink, 11), 2);
  EXPECT_DOUBLE_EQ(machine.link_classes()[uplink].bytes_per_s, 32e9);
  spec.switch_bytes_per_s = 16e9;
  EXPECT_DOUBLE_EQ(Made(spec).link_classes()[uplink].bytes_per_s, 16e9);
  // Three switches for eight devices.
  spec.gpus_per_switch = 3;
  EXPECT_EQ(Made(spec).NumLinkInstances(uplink), 6);
  // One switch holds them all: nothing leaves it.
  spec.gpus_per_switch = 8;
  EXPECT_EQ(Made(spec).FindLinkClass(LinkKind::kPcieSwitch), -1);
}

TEST(MachineTest, RailsWithNarrowUplinksHaveASpineWithoutPods) {
  Machine::Spec spec = TwoHosts();
  spec.nics_per_host = 4;
  spec.nic_bytes_per_s = 25e9;
  EXPECT_EQ(Made(spec).FindLinkClass(LinkKind::kSpine), -1);
  spec.oversubscription = 2;
  const Machine machine = Made(spec);
  const int spine = machine.FindLinkClass(LinkKind::kSpine);
  // One uplink per rail, of two hosts' interfaces, halved.
  EXPECT_EQ(machine.NumLinkInstances(spine), 4);
  EXPECT_DOUBLE_EQ(machine.link_classes()[spine].bytes_per_s, 2 * 25e9 / 2);
  EXPECT_EQ(machine.LinkInstance(spine, 1), machine.LinkInstance(spine, 8));
  spec.rail_optimized = false;
  EXPECT_EQ(Made(spec).FindLinkClass(LinkKind::kSpine), -1);
}

TEST(MachineTest, FindsTheInnermostCommonLevel) {
  Machine::Spec spec = TwoHosts();
  spec.hosts = 8;
  spec.hosts_per_domain = 2;
  spec.hosts_per_pod = 4;
  const Machine machine = Made(spec);
  EXPECT_EQ(machine.CommonLevel(3, 3), Level::kDevice);
  EXPECT_EQ(machine.CommonLevel(0, 7), Level::kHost);
  EXPECT_EQ(machine.CommonLevel(7, 8), Level::kDomain);
  EXPECT_EQ(machine.CommonLevel(15, 16), Level::kPod);
  EXPECT_EQ(machine.CommonLevel(31, 32), Level::kCluster);
}

// A domain of 18 hosts gives as many whole segments as it holds.
TEST(MachineTest, DomainsGiveWholeSegments) {
  const auto hosts_of_domain = [](int64_t hosts, int64_t segment) {
    Machine::Spec spec = TwoHosts();
    spec.hosts = hosts;
    spec.hosts_per_domain = 18;
    spec.segment = segment;
    return Made(spec).hosts_per_domain();
  };
  // The largest divisor that a domain holds, as long as one domain is not enough.
  for (const auto& [hosts, taken] : std::map<int64_t, int64_t>{
           {2, 18}, {18, 18}, {19, 18}, {20, 10}, {27, 18}, {36, 18}, {38, 18}, {64, 16}}) {
    EXPECT_EQ(hosts_of_domain(hosts, 0), taken) << hosts;
  }
  EXPECT_EQ(hosts_of_domain(64, 18), 18);
  EXPECT_EQ(hosts_of_domain(64, 8), 16);
  EXPECT_EQ(hosts_of_domain(64, 1), 18);
  EXPECT_EQ(hosts_of_domain(8, 4), 16);
}

TEST(MachineTest, PodsHaveTheSegmentsOfTheirDomains) {
  Machine::Spec spec = TwoHosts();
  spec.hosts = 64;
  spec.hosts_per_domain = 18;
  spec.hosts_per_pod = 36;
  spec.oversubscription = 2;
  const Machine machine = Made(spec);
  EXPECT_EQ(machine.hosts_per_pod(), 32);
  EXPECT_EQ(machine.CommonLevel(0, 16 * 8 - 1), Level::kDomain);
  EXPECT_EQ(machine.CommonLevel(0, 16 * 8), Level::kPod);
  EXPECT_EQ(machine.CommonLevel(0, 32 * 8), Level::kCluster);
  const int spine = machine.FindLinkClass(LinkKind::kSpine);
  EXPECT_EQ(machine.NumLinkInstances(spine), 2 * machine.link_classes()[spine].instances_per_block);
}

TEST(MachineTest, MeshLinksLeadToSinglePeers) {
  Machine::Spec spec = TwoHosts();
  EXPECT_EQ(Made(spec).MeshShare(2), 1.0);
  spec.topology = "cube-mesh";
  spec.gpus_per_host = 4;
  EXPECT_DOUBLE_EQ(Made(spec).MeshShare(2), 1.0 / 3);
  EXPECT_EQ(Made(spec).MeshShare(4), 1.0);
  spec.gpus_per_host = 8;  // the hybrid cube mesh of the DGX-1
  EXPECT_DOUBLE_EQ(Made(spec).MeshShare(4), 4.0 / 6);
}

TEST(MachineTest, OverridesMakeItUneven) {
  Machine::Spec spec = TwoHosts();
  EXPECT_TRUE(Made(spec).uniform());
  spec.device_overrides = {{5, 0.8}};
  spec.link_overrides = {{2, 3, 0.5}};
  const Machine machine = Made(spec);
  EXPECT_FALSE(machine.uniform());
  EXPECT_EQ(machine.ComputeScale(5), 0.8);
  EXPECT_EQ(machine.ComputeScale(4), 1.0);
  EXPECT_EQ(machine.LinkScale(2, 3), 0.5);
  EXPECT_EQ(machine.LinkScale(1, 3), 1.0);
}

TEST(MachineTest, PrintsItself) {
  Machine::Spec spec = TwoHosts();
  spec.device_overrides = {{5, 0.8}};
  EXPECT_EQ(Made(spec).DebugString(),
            "toy: 2 x 8 toy-gpu, nvswitch\n"
            "  pcie: 16 x 32 GB/s, 1 us, reaches device\n"
            "  nvlink: 16 x 300 GB/s, 1 us, reaches host\n"
            "  nic: 8 x 25 GB/s, 3 us, reaches cluster\n"
            "  device 5 runs at 0.8 of the speed\n");
}

struct Mistake {
  const char* name;
  void (*make)(Machine::Spec&);
  const char* message;
};

class MachineMistakeTest : public ::testing::TestWithParam<Mistake> {};

TEST_P(MachineMistakeTest, IsNamed) {
  Machine::Spec spec = TwoHosts();
  GetParam().make(spec);
  EXPECT_THAT(Machine::Create(spec),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(GetParam().message)));
}

using S = Machine::Spec;
INSTANTIATE_TEST_SUITE_P(
    Mistakes, MachineMistakeTest,
    ::testing::Values(
        Mistake{"ZeroHosts", [](S& s) { s.hosts = 0; },
                "`hosts` is 0; it has to be between 1 and 1000000."},
        Mistake{"NegativeGpus", [](S& s) { s.gpus_per_host = -8; }, "`gpus_per_host` is -8"},
        Mistake{"HugeCluster",
                [](S& s) {
                  s.hosts = 1'000'000;
                  s.gpus_per_host = 1024;
                },
                "`hosts * gpus_per_host` is 1024000000; it has to be between 1 and 16777216."},
        Mistake{"NoMemory", [](S& s) { s.device.memory_bytes = 0; },
                "`gpu.memory_gb` is 0; it has to be a positive number"},
        Mistake{"NoPeak", [](S& s) { s.device.bf16_flops = 0; }, "GPU `toy-gpu` has no peak rate"},
        Mistake{"NegativePeak", [](S& s) { s.device.fp8_flops = -1e12; },
                "`gpu.fp8_tflops` is -1; it has to be zero (none or unknown) or a positive"},
        Mistake{"InfiniteLink",
                [](S& s) { s.intra_bytes_per_s = std::numeric_limits<double>::infinity(); },
                "`intra_gb_per_s` is inf"},
        Mistake{"NanLatency",
                [](S& s) { s.nic_latency_s = std::numeric_limits<double>::quiet_NaN(); },
                "`nic_latency_us` is nan"},
        Mistake{"NoNic", [](S& s) { s.nics_per_host = 0; }, "`nics_per_host` is 0"},
        Mistake{"SlowNic", [](S& s) { s.nic_bytes_per_s = 0; }, "`nic_gbit_per_s` is 0"},
        Mistake{"Topology", [](S& s) { s.topology = "nvswich"; }, "Did you mean `nvswitch`?"},
        Mistake{"Fabric", [](S& s) { s.fabric = "infinband"; }, "Did you mean `infiniband`?"},
        Mistake{"IntraLink", [](S& s) { s.intra_link = "wire"; },
                "`intra_link` is `wire`, whose kind is unknown."},
        Mistake{"Pods",
                [](S& s) {
                  s.hosts_per_domain = 2;
                  s.hosts_per_pod = 3;
                },
                "a pod holds whole domains"},
        Mistake{"Segment",
                [](S& s) {
                  s.hosts_per_domain = 2;
                  s.segment = 3;
                },
                "`segment` is 3 hosts, and an NVLink domain has 2"},
        Mistake{"Oversubscription", [](S& s) { s.oversubscription = 0; },
                "`oversubscription` is 0"},
        Mistake{"UnknownDevice",
                [](S& s) {
                  s.device_overrides = {{16, 0.5}};
                },
                "names device 16; the machine has 16, counted from 0."},
        Mistake{"Twice",
                [](S& s) {
                  s.device_overrides = {{1, 0.5}, {1, 0.6}};
                },
                "device 1 is overridden twice"},
        Mistake{"UnknownLink",
                [](S& s) {
                  s.link_overrides = {{2, 8, 0.5}};
                },
                "names `nic` 8; the machine has 8 of them"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace plancast
