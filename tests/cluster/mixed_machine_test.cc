#include "cluster/mixed_machine.h"

#include <string>
#include <vector>

#include "cluster/machine_proto.h"
#include "cluster/named_links.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Machine Made(const std::string& preset) {
  absl::StatusOr<Machine> machine = MachineFromPreset(preset);
  EXPECT_TRUE(machine.ok()) << machine.status();
  return *std::move(machine);
}

Machine FromJson(const std::string& json) {
  absl::StatusOr<Machine> machine = MachineFromJson(json);
  EXPECT_TRUE(machine.ok()) << machine.status();
  return *std::move(machine);
}

std::string ErrorOf(const std::string& json) {
  return std::string(MachineFromJson(json).status().message());
}

// Two A100 hosts with pods of one, then four H100 hosts.
Machine Mixed() {
  return FromJson(R"({"sections": [
    {"preset": "dgx-a100-80g", "hosts": 2, "hosts_per_pod": 1, "oversubscription": 2},
    {"preset": "hgx4-h100", "hosts": 4}]})");
}

TEST(MixedMachineTest, CountsHostsDevicesAndPodsOnFromSectionToSection) {
  const Machine machine = Mixed();
  ASSERT_TRUE(machine.mixed());
  EXPECT_EQ(machine.num_sections(), 2);
  EXPECT_EQ(machine.num_devices(), 2 * 8 + 4 * 4);
  EXPECT_EQ(machine.spec().hosts, 6);
  EXPECT_EQ(machine.spec().gpus_per_host, 0);  // not all alike
  EXPECT_EQ(machine.gpus_per_domain(), 4);
  EXPECT_EQ(machine.DeviceOf(15).name, "A100-SXM-80GB");
  EXPECT_EQ(machine.DeviceOf(16).name, machine.section(1).device().name);
  EXPECT_EQ(machine.SectionOf(15), 0);
  EXPECT_EQ(machine.SectionOf(16), 1);
  EXPECT_EQ(machine.HostOf(15), 1);
  EXPECT_EQ(machine.HostOf(16), 2);
  EXPECT_EQ(machine.HostOf(31), 5);
  EXPECT_EQ(machine.DomainOf(16), 2);
  EXPECT_EQ(machine.PodOf(15), 1);
  EXPECT_EQ(machine.PodOf(16), 2);
  EXPECT_EQ(machine.PodOf(31), 2);
  EXPECT_EQ(machine.CommonLevel(0, 7), Level::kHost);
  EXPECT_EQ(machine.CommonLevel(0, 8), Level::kCluster);
  EXPECT_EQ(machine.CommonLevel(15, 16), Level::kCluster);
  EXPECT_EQ(machine.CommonLevel(16, 31), Level::kPod);
}

TEST(MixedMachineTest, EverySectionHasLinkClassesOfItsOwn) {
  const Machine machine = Mixed();
  EXPECT_EQ(machine.link_classes().size(),
            machine.section(0).link_classes().size() + machine.section(1).link_classes().size());
  for (int c = 0; c < static_cast<int>(machine.link_classes().size()); ++c) {
    const int s = machine.link_classes()[c].section;
    const Machine& section = machine.section(s);
    const int own = c - machine.FirstLinkClass(s);
    EXPECT_EQ(machine.NumLinkInstances(c), section.NumLinkInstances(own));
    for (int64_t device = 0; device < machine.num_devices(); ++device) {
      ASSERT_EQ(machine.Serves(c, device), machine.SectionOf(device) == s);
      if (!machine.Serves(c, device)) continue;
      const int64_t local = device - machine.FirstDevice(s);
      EXPECT_EQ(machine.LinkInstance(c, device), section.LinkInstance(own, local));
      const auto [begin, end] = machine.BlockOf(c, device);
      EXPECT_LE(begin, device);
      EXPECT_GT(end, device);
      EXPECT_EQ(machine.SectionOf(begin), s);
      EXPECT_EQ(machine.SectionOf(end - 1), s);
    }
  }
}

TEST(MixedMachineTest, EqualNeighboursAreOneSection) {
  EXPECT_EQ(MachineToJson(Made("dgx-h100:2+dgx-h100:2")), MachineToJson(Made("dgx-h100:4")));
  const Machine machine = Made("dgx-h100:2+dgx-h100:1+dgx-a100-80g:1+dgx-h100:1");
  EXPECT_EQ(machine.num_sections(), 3);
  EXPECT_EQ(machine.spec().name, "dgx-h100:3+dgx-a100-80g:1+dgx-h100:1");
  // A pod that is not full is not continued.
  const Machine pods = FromJson(R"({"sections": [
    {"preset": "dgx-h100", "hosts": 3, "hosts_per_pod": 2},
    {"preset": "dgx-h100", "hosts": 2, "hosts_per_pod": 2}]})");
  EXPECT_EQ(pods.num_sections(), 2);
  // Nor is a domain that gives other segments; what they give stays as it is.
  EXPECT_EQ(Made("gb200-nvl72:36+gb200-nvl72:20").num_sections(), 2);
  EXPECT_EQ(Made("gb200-nvl72:36+gb200-nvl72:2").gpus_per_domain(), 72);
}

TEST(MixedMachineTest, OverridesOfThePartsMoveWithThem) {
  const Machine slow = FromJson(R"({"preset": "dgx-h100", "hosts": 2,
    "device_overrides": [{"device": 3, "compute_scale": 0.5}],
    "link_overrides": [{"link": "nic", "instance": 9, "capacity_scale": 0.25}]})");
  ASSERT_OK_AND_ASSIGN(const Machine machine, CombineMachines({Made("dgx-a100-80g:2"), slow}));
  EXPECT_EQ(machine.ComputeScale(16 + 3), 0.5);
  const LinkPlace at = FindLink(machine, "nic", 16 + 9);
  EXPECT_EQ(machine.link_classes()[at.link_class].section, 1);
  EXPECT_EQ(at.instance, 9);
  EXPECT_EQ(machine.LinkScale(at.link_class, at.instance), 0.25);
  EXPECT_EQ(LinkNumber(machine, at.link_class, at.instance), 25);
  // Equal hosts stay a section of their own where links are named.
  ASSERT_OK_AND_ASSIGN(const Machine both, CombineMachines({Made("dgx-h100:1"), slow}));
  EXPECT_EQ(both.num_sections(), 2);
  EXPECT_EQ(NumLinksNamed(both, "nic"), 24);
}

TEST(MixedMachineTest, ReadsBackWhatItWrites) {
  const Machine machine = FromJson(R"({"name": "old and new", "between_gbit_per_s": 800,
    "between_latency_us": 2, "source": "made up",
    "sections": [
      {"preset": "dgx-a100-80g", "hosts": 2},
      {"gpu": "H100-SXM-80GB", "hosts": 4, "intra_link": "nvlink4", "intra_gb_per_s": 450,
       "nics_per_host": 8, "nic_gbit_per_s": 400}],
    "device_overrides": [{"device": 40, "compute_scale": 0.9}],
    "link_overrides": [{"link": "nic", "instance": 20, "capacity_scale": 0.5},
                       {"link": "between", "instance": 1, "capacity_scale": 0.5}]})");
  EXPECT_EQ(machine.link_classes().back().kind, LinkKind::kBetween);
  EXPECT_EQ(machine.link_classes().back().bytes_per_s, 100e9);
  EXPECT_EQ(NumLinksNamed(machine, "between"), 2);
  const std::string json = MachineToJson(machine);
  EXPECT_EQ(MachineToJson(FromJson(json)), json);
  EXPECT_THAT(machine.DebugString(),
              AllOf(HasSubstr("hosts 0-1, devices 0-15: 2 x 8 A100-SXM-80GB, nvswitch"),
                    HasSubstr("hosts 2-5, devices 16-47: 4 x 8 H100-SXM-80GB, nvswitch"),
                    HasSubstr("between: 1 x 100 GB/s, 2 us, reaches cluster"),
                    HasSubstr("nic 20 has 0.5 of the capacity")));
}

TEST(MixedMachineTest, RefusesWhatIsNoMachineWithTheWayOut) {
  EXPECT_THAT(ErrorOf(R"({"sections": [{"preset": "dgx-h100"}], "hosts": 2})"),
              HasSubstr("has no hosts of its own"));
  EXPECT_THAT(ErrorOf(R"({"preset": "dgx-h100", "between_gbit_per_s": 1})"),
              HasSubstr("are of links between `sections`"));
  EXPECT_THAT(ErrorOf(R"({"sections": [{"preset": "dgx-h100"},
                          {"preset": "dgx-a100-80g", "nics_per_host": 0, "nic_gbit_per_s": 0}]})"),
              HasSubstr("no way to the other sections"));
  EXPECT_THAT(ErrorOf(R"({"sections": [{"preset": "dgx-h100"},
                          {"preset": "dgx-h100", "gpu": {"bf16_tflops": 500}}]})"),
              HasSubstr("unlike GPUs of one name, `H100-SXM-80GB`"));
  EXPECT_THAT(ErrorOf(R"({"sections": [{"preset": "dgx-h100"}, {"preset": "dgx-a100-80g"}],
                          "link_overrides": [{"link": "nic", "instance": 16}]})"),
              HasSubstr("`nic` 16; the machine has 16 of them"));
  EXPECT_THAT(ErrorOf(R"({"sections": [{"preset": "dgx-h100"}, {"preset": "dgx-a100"}]})"),
              AllOf(HasSubstr("section 1"), HasSubstr("Did you mean")));
  EXPECT_THAT(MachineFromPreset("dgx-a100-80g:2+dgx-h10:4").status().message(),
              HasSubstr("Did you mean"));
  EXPECT_THAT(MachineFromPreset("dgx-a100-80g:2+").status().message(), HasSubstr("no machine"));
  EXPECT_THAT(CheckNotMixed(Made("dgx-a100-80g:2+dgx-h100:4"), "A run of traces").message(),
              HasSubstr("has 2 sections (A100-SXM-80GB+H100-SXM-80GB)"));
  EXPECT_TRUE(CheckNotMixed(Made("dgx-h100:4"), "A run of traces").ok());
}

}  // namespace
}  // namespace plancast
