#include "cluster/topology/topology_machine.h"

#include "absl/strings/str_cat.h"
#include "cluster/topology/machine_topology.h"
#include "gtest/gtest.h"
#include "tests/cluster/topology/boxes.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

TEST(TopologyMachineTest, MachinesComeBack) {
  for (const char* preset : {"dgx-h100", "dgx-a100-80g", "dgx-b200", "deepseek-h800",
                             "jeanzay-v100-32g", "gb200-nvl72", "l40s-pcie"}) {
    ASSERT_OK_AND_ASSIGN(const Machine machine, MachineFromPreset(absl::StrCat(preset, ":36")));
    const MachineTopology topology = TopologyOf(machine);
    ASSERT_OK_AND_ASSIGN(const TopologyMachine back,
                         MachineOf(topology.system, topology.hosts, "", "back"));
    const Machine::Spec& was = machine.spec();
    const Machine::Spec& is = back.machine.spec();
    EXPECT_EQ(is.hosts, was.hosts) << preset;
    EXPECT_EQ(is.gpus_per_host, was.gpus_per_host) << preset;
    EXPECT_EQ(is.hosts_per_domain, was.hosts_per_domain) << preset;
    EXPECT_EQ(is.topology, was.topology) << preset;
    EXPECT_EQ(is.intra_link, was.intra_link) << preset;
    EXPECT_DOUBLE_EQ(is.intra_bytes_per_s, was.intra_bytes_per_s) << preset;
    EXPECT_EQ(is.nics_per_host, was.nics_per_host) << preset;
    EXPECT_DOUBLE_EQ(is.nic_bytes_per_s, was.nic_bytes_per_s) << preset;
    EXPECT_EQ(is.fabric, "infiniband") << preset;
    EXPECT_FALSE(back.assumptions.empty());
  }
}

TEST(TopologyMachineTest, DeviceIdsNameTheGpu) {
  BoxOptions options;
  options.sm = 89;
  SystemElement system = FourGpuBox(options);
  ForEachElement(system, [](SystemElement& element) {
    const std::string* pci_class = element.Find("class");
    if (pci_class != nullptr && *pci_class == "0x030200") element.Set("device", "0x26b9");
  });
  ASSERT_OK_AND_ASSIGN(const TopologyMachine made, MachineOf(system, 2, "roce", "x"));
  EXPECT_EQ(made.machine.device().name, "L40S");
  EXPECT_EQ(made.machine.spec().fabric, "roce");
  EXPECT_EQ(made.machine.spec().topology, "host-bridge");
  EXPECT_EQ(made.machine.spec().gpus_per_switch, 2);
  EXPECT_DOUBLE_EQ(made.machine.spec().intra_bytes_per_s, 32e9);
  EXPECT_THAT(made.assumptions[0], HasSubstr("L40S"));
}

TEST(TopologyMachineTest, FilesOfRcclAreMachinesOfAmd) {
  ASSERT_OK_AND_ASSIGN(const TopologyMachine made, MachineOf(XgmiBox(), 2, "roce", "x"));
  EXPECT_EQ(made.machine.device().name, "MI300X");
  EXPECT_EQ(made.machine.spec().intra_link, "xgmi");
  EXPECT_EQ(made.machine.spec().topology, "cube-mesh");
  EXPECT_DOUBLE_EQ(made.machine.spec().intra_bytes_per_s, 3 * 64e9);
}

TEST(TopologyMachineTest, RefusesWhatIsNoMachine) {
  EXPECT_FALSE(MachineOf(FourGpuBox(), 0, "", "x").ok());
  EXPECT_FALSE(MachineOf(FourGpuBox(), 2, "carrier-pigeon", "x").ok());
  SystemElement empty;
  empty.name = "system";
  EXPECT_FALSE(MachineOf(empty, 1, "", "x").ok());
}

}  // namespace
}  // namespace plancast
