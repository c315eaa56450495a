#include "absl/strings/str_cat.h"
#include "cluster/catalogue.h"
#include "cluster/machine.h"
#include "cluster/machine_proto.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class EveryPresetTest : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryPresetTest, MakesAMachineWithSources) {
  for (const char* hosts : {":1", ":36"}) {
    ASSERT_OK_AND_ASSIGN(const Machine machine, MachineFromPreset(absl::StrCat(GetParam(), hosts)));
    EXPECT_OK(machine.Verify());
    EXPECT_THAT(machine.spec().source, Not(IsEmpty()));
    EXPECT_THAT(machine.device().source, Not(IsEmpty()));
    EXPECT_GT(machine.spec().nic_latency_s, 0);
    EXPECT_GT(machine.spec().intra_latency_s, 0);
    EXPECT_GT(machine.spec().pcie_bytes_per_s, 0);
  }
}

TEST_P(EveryPresetTest, SurvivesJson) {
  ASSERT_OK_AND_ASSIGN(const Machine machine, MachineFromPreset(absl::StrCat(GetParam(), ":36")));
  const std::string json = MachineToJson(machine);
  ASSERT_OK_AND_ASSIGN(const Machine again, MachineFromJson(json));
  EXPECT_EQ(MachineToJson(again), json);
  EXPECT_EQ(again.DebugString(), machine.DebugString());
  EXPECT_EQ(again.spec().nic_bytes_per_s, machine.spec().nic_bytes_per_s);
  EXPECT_EQ(again.spec().nic_latency_s, machine.spec().nic_latency_s);
  EXPECT_EQ(again.device().memory_bytes, machine.device().memory_bytes);
  EXPECT_EQ(again.device().bf16_flops, machine.device().bf16_flops);
}

INSTANTIATE_TEST_SUITE_P(Presets, EveryPresetTest, ::testing::ValuesIn(MachinePresetNames()),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

TEST(MachinePresetTest, EveryGpuIsComplete) {
  for (const std::string& name : GpuNames()) {
    ASSERT_OK_AND_ASSIGN(const proto::Gpu gpu, FindGpu(name));
    EXPECT_EQ(gpu.name(), name);
    EXPECT_GT(gpu.memory_gb_per_s(), 0) << name;
    EXPECT_THAT(gpu.source(), Not(IsEmpty())) << name;
  }
}

TEST(MachinePresetTest, DgxH100HasTheFiguresOfItsDataSheet) {
  ASSERT_OK_AND_ASSIGN(const Machine machine, MachineFromPreset("dgx-h100:16"));
  EXPECT_EQ(machine.num_devices(), 128);
  EXPECT_EQ(machine.device().name, "H100-SXM-80GB");
  EXPECT_EQ(machine.device().bf16_flops, 989e12);
  EXPECT_EQ(machine.device().memory_bytes, 80.0 * (1 << 30));
  EXPECT_EQ(machine.DebugString(),
            "dgx-h100: 16 x 8 H100-SXM-80GB, nvswitch\n"
            "  pcie: 128 x 64 GB/s, 1 us, reaches device\n"
            "  nvlink: 128 x 450 GB/s, 0.6 us, reaches host\n"
            "  nic: 128 x 50 GB/s, 2.7 us, reaches cluster\n"
            "  host-memory: 16 x 614.4 GB/s, 0 us, reaches device\n");
}

TEST(MachinePresetTest, PartOfAHostTakesItsShareOfNics) {
  ASSERT_OK_AND_ASSIGN(const Machine machine, MachineFromPreset("p5-h100:2x4"));
  EXPECT_EQ(machine.num_devices(), 8);
  EXPECT_EQ(machine.spec().nics_per_host, 16);
  ASSERT_OK_AND_ASSIGN(const Machine mesh, MachineFromPreset("dgx1-v100-16g:1x4"));
  EXPECT_DOUBLE_EQ(mesh.spec().intra_bytes_per_s, 100e9);
}

TEST(MachinePresetTest, Nvl72IsOneDomainOf18Hosts) {
  ASSERT_OK_AND_ASSIGN(const Machine machine, MachineFromPreset("gb200-nvl72:36"));
  EXPECT_EQ(machine.gpus_per_domain(), 72);
  EXPECT_EQ(machine.CommonLevel(0, 71), Level::kDomain);
  EXPECT_EQ(machine.CommonLevel(0, 72), Level::kPod);
}

TEST(MachinePresetTest, VariantsKnowTheirChip) {
  ASSERT_OK_AND_ASSIGN(const Machine machine, MachineFromPreset("deepseek-h800:1"));
  EXPECT_EQ(machine.device().name, "H800-SXM-80GB");
  EXPECT_EQ(machine.device().like, "H100-SXM-80GB");
}

TEST(MachinePresetTest, NamesWhatIsWrong) {
  EXPECT_THAT(MachineFromPreset("dgx-h10:2"),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("no machine `dgx-h10:2`. Did you mean `dgx-h100:2`?")));
  EXPECT_THAT(MachineFromPreset("h100:2x4"),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("no machine `h100:2x4`. Did you mean `dgx-h100:2x4`? Like it")));
  EXPECT_THAT(MachineFromPreset("a100:1"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("Did you mean `dgx-a100-80g:1`?")));
  EXPECT_THAT(MachineFromPreset("tpu-v5p:1"),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("no machine `tpu-v5p:1`. There are `dgx-"),
                             HasSubstr("more. One of your own is a YAML file"))));
  EXPECT_THAT(MachineFromPreset("dgx-h100"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("does not say how many hosts. For one write `dgx-h100:1`.")));
  for (const char* text : {"dgx-h100:0", "dgx-h100:-3", "dgx-h100:99999999999999999999999",
                           "dgx-h100:1000001", "dgx-h100:2x0"}) {
    EXPECT_THAT(MachineFromPreset(text), StatusIs(absl::StatusCode::kInvalidArgument,
                                                  HasSubstr("it has to be between 1 and 1000000")))
        << text;
  }
  for (const char* text : {"", ":", ":2", "dgx-h100:", "dgx-h100:two", "dgx-h100:2x4x2",
                           "dgx-h100:2:4", "dgx-h100:2x", "dgx-h100:1.5"}) {
    EXPECT_THAT(MachineFromPreset(text),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is no machine. Write")))
        << text;
  }
  EXPECT_THAT(MachineFromPreset("dgx-h100:2x16"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("asks for 16 GPUs per host; a `dgx-h100` host has 8.")));
}

}  // namespace
}  // namespace plancast
