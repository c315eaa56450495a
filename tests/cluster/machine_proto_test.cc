#include "cluster/machine_proto.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

TEST(MachineProtoTest, ReadsAGpuByName) {
  ASSERT_OK_AND_ASSIGN(const Machine machine, MachineFromJson(R"({
    "name": "mine", "gpu": "H100-SXM-80GB", "hosts": 4, "gpus_per_host": 8,
    "intra_link": "nvlink4", "intra_gb_per_s": 450, "nics_per_host": 8, "nic_gbit_per_s": 400,
    "fabric": "roce", "hosts_per_pod": 2, "oversubscription": 2})"));
  EXPECT_EQ(machine.DebugString(),
            "mine: 4 x 8 H100-SXM-80GB, nvswitch\n"
            "  pcie: 32 x 64 GB/s, 1 us, reaches device\n"
            "  nvlink: 32 x 450 GB/s, 0.6 us, reaches host\n"
            "  nic: 32 x 50 GB/s, 2.7 us, reaches pod\n"
            "  spine: 16 x 50 GB/s, 2.7 us, reaches cluster\n"
            "  host-memory: 4 x 614.4 GB/s, 0 us, reaches device\n");
}

TEST(MachineProtoTest, AmendsAPreset) {
  ASSERT_OK_AND_ASSIGN(const Machine machine, MachineFromJson(R"({
    "preset": "dgx-h100", "name": "slow", "hosts": 2, "nic_gbit_per_s": 200,
    "gpu": {"memory_gb": 96},
    "device_overrides": [{"device": 3, "compute_scale": 0.9}],
    "link_overrides": [{"link": "nic", "instance": 1, "capacity_scale": 0.5}]})"));
  EXPECT_EQ(machine.device().name, "H100-SXM-80GB");
  EXPECT_EQ(machine.device().memory_bytes, 96.0 * (1 << 30));
  EXPECT_EQ(machine.device().bf16_flops, 989e12);
  EXPECT_EQ(machine.spec().nic_bytes_per_s, 25e9);
  EXPECT_EQ(machine.LinkScale(machine.FindLinkClass(LinkKind::kNic), 1), 0.5);
  ASSERT_OK_AND_ASSIGN(const Machine again, MachineFromJson(MachineToJson(machine)));
  EXPECT_EQ(again.DebugString(), machine.DebugString());
}

TEST(MachineProtoTest, ReplacesTheGpuOfAPreset) {
  ASSERT_OK_AND_ASSIGN(const Machine machine, MachineFromJson(R"({
    "preset": "mi100-pcie", "gpu": "A30"})"));
  EXPECT_EQ(machine.device().name, "A30");
  EXPECT_EQ(machine.device().fp32_flops, 10.3e12);
}

TEST(MachineProtoTest, SpellsOutAGpu) {
  ASSERT_OK_AND_ASSIGN(const Machine machine, MachineFromJson(R"({
    "gpu": {"name": "X1", "sms": 200, "memory_gb": 256, "memory_gb_per_s": 9000,
            "bf16_tflops": 3000}, "gpus_per_host": 1, "pcie_gb_per_s": 128})"));
  EXPECT_EQ(machine.device().bf16_flops, 3000e12);
  EXPECT_EQ(machine.DebugString(),
            "machine: 1 x 1 X1, nvswitch\n"
            "  pcie: 1 x 128 GB/s, 1 us, reaches device\n");
}

// Such a file is printed again where its `gpu` is a name.
TEST(MachineProtoTest, AnswersWhateverTheDepth) {
  for (int levels = 1; levels < 120; ++levels) {
    for (const auto& [open, close] :
         {std::pair<std::string, std::string>{"[", "]"}, {R"({"a":)", "}"}}) {
      std::string deep;
      for (int i = 0; i < levels; ++i) deep += open;
      deep += "1";
      for (int i = 0; i < levels; ++i) deep += close;
      const std::string json = absl::StrCat(R"({"gpu": "A30", "hosts": )", deep, "}");
      EXPECT_THAT(MachineFromJson(json, "`m.yaml`"),
                  StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("`m.yaml`")))
          << levels;
    }
  }
}

TEST(MachineProtoTest, NamesWhatIsWrong) {
  const auto error = [](absl::string_view json) {
    return std::string(MachineFromJson(json, "`m.yaml`").status().message());
  };
  EXPECT_THAT(error(R"({"preset": "dgx-h100", "hostss": 2})"),
              HasSubstr("`m.yaml` has no field `hostss`. Did you mean `hosts`?"));
  EXPECT_THAT(error(R"({"gpu": {"name": "X", "memory_gbb": 2}})"),
              HasSubstr("`m.yaml` has no field `memory_gbb` in `gpu`."));
  EXPECT_THAT(error(R"({"gpu": "H100"})"),
              AllOf(HasSubstr("`gpu`: no GPU `H100`. Did you mean"), HasSubstr("`H100-SXM-80GB`")));
  EXPECT_THAT(error(R"({"preset": "dgx-h1000"})"), HasSubstr("Did you mean `dgx-h100`?"));
  EXPECT_THAT(error(R"({"hosts": 2})"), HasSubstr("the machine has no `gpu`."));
  EXPECT_THAT(error(R"({"gpu": {"memory_gb": 2}})"), HasSubstr("`gpu` has no `name`."));
  EXPECT_THAT(error(R"({"preset": "dgx-h100", "hosts": "many"})"),
              HasSubstr("`hosts` cannot be `many`"));
  EXPECT_THAT(error(R"({"preset": "dgx-h100", "hosts": 99999999999})"),
              HasSubstr("`hosts` cannot be `99999999999`; a whole number of at most 2147483647"));
  EXPECT_THAT(error(R"({"preset": "dgx-h100", "hosts": -1})"),
              HasSubstr("`m.yaml`: `hosts` is -1"));
  EXPECT_THAT(error(R"({"preset": "dgx-h100", "host_launch_factor": 0})"),
              HasSubstr("`host_launch_factor` is 0"));
  EXPECT_THAT(error(R"({"preset": "dgx-h100", "link_overrides": [{"link": "nvlnk"}]})"),
              HasSubstr("Did you mean `nvlink`?"));
  EXPECT_THAT(error("{\"preset\":"), HasSubstr("is not valid JSON"));
  for (const char* text :
       {"[]", "", "null", "7", R"({"gpu": 5})", R"({"gpu": ["A30"]})",
        R"({"gpu": "A30", "nic_gbit_per_s": 1e999})", R"({"gpu": "A30", "hosts": 2.5})",
        R"({"gpu": {"like": "A30", "memory_gb": "NaN"}})",
        R"({"gpu": "A30", "device_overrides": [{"device": -1}]})"}) {
    EXPECT_FALSE(MachineFromJson(text, "`m.yaml`").ok()) << text;
  }
}

}  // namespace
}  // namespace plancast
