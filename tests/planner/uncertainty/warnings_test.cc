#include "planner/uncertainty/warnings.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class WarningsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    result_.makespan_ps = 1'000'000'000'000;
    result_.factors["A100-SXM-80GB/gemm/bf16"] = {.seconds = 0.7, .sigma = 0.1};
    profile_.name = "some";
    MeasuredSoftware runs;
    runs.profile = "some";
    runs.devices = {"A100-SXM-80GB"};
    runs.most_devices = 64;
    runs.most_tp = runs.most_pp = 8;
    runs.most_cp = runs.most_ep = 1;
    runs.longest_sequence = 2048;
    uncertainty_.software.push_back(runs);
  }
  std::vector<std::string> Warnings(int64_t seq = 2048,
                                    const std::string& machine = "dgx-a100-80g:8") {
    absl::StatusOr<Machine> made = MachineFromPreset(machine);
    EXPECT_TRUE(made.ok()) << made.status();
    return ExtrapolationWarnings(uncertainty_, profile_, plan_, seq, *made, result_);
  }

  Uncertainty uncertainty_;
  SoftwareProfile profile_;
  PlanOptions plan_;
  SimResult result_;
};

TEST_F(WarningsTest, NothingToSayWithinWhatWasMeasured) { EXPECT_THAT(Warnings(), IsEmpty()); }

TEST_F(WarningsTest, KernelsOfOtherGpus) {
  result_.factors["A100-SXM-80GB/gemm/bf16"].extrapolated = true;
  EXPECT_THAT(Warnings(),
              ElementsAre("70 % of the critical path is extrapolated from other GPUs or links: "
                          "`A100-SXM-80GB/gemm/bf16`"));
  result_.factors["A100-SXM-80GB/gemm/bf16"].seconds = 0.01;
  EXPECT_THAT(Warnings(), IsEmpty());
}

TEST_F(WarningsTest, WhereTheTopologyOfPcieHostsDecides) {
  uncertainty_.software[0].devices = {"L40S"};
  result_.factors["pcie4/ring"] = {.seconds = 0.2, .sigma = 0.1};
  EXPECT_THAT(Warnings(2048, "l40s-pcie:1"),
              ElementsAre(AllOf(HasSubstr("20 % of the critical path is traffic inside PCIe hosts"),
                                HasSubstr("as switches carry it"))));
  EXPECT_THAT(Warnings(2048, "l40s-host-bridge:1"),
              ElementsAre(HasSubstr("as measured on one box")));
  result_.factors["pcie4/ring"].seconds = 0.01;
  EXPECT_THAT(Warnings(2048, "l40s-pcie:1"), IsEmpty());
}

TEST_F(WarningsTest, PlansBeyondTheMeasuredOnes) {
  plan_.tp = 16;
  plan_.zero = 1;
  EXPECT_THAT(Warnings(8192, "dgx-a100-80g:16"),
              ElementsAre("beyond the measured runs of `some`: devices=128 (at most 64), tp=16 "
                          "(at most 8), zero=1 (at most 0), sequence=8192 (at most 2048)"));
}

TEST_F(WarningsTest, OtherDevices) {
  EXPECT_THAT(Warnings(2048, "dgx-h100:1"),
              ElementsAre("no measured run of `some` is on H100-SXM-80GB; there are on "
                          "A100-SXM-80GB"));
}

TEST_F(WarningsTest, SoftwareInOutlineOrWithoutRuns) {
  profile_.from_documentation = true;
  EXPECT_THAT(Warnings(), ElementsAre(HasSubstr("known from documentation only")));
  profile_.from_documentation = false;
  uncertainty_.software.clear();
  EXPECT_THAT(Warnings(),
              ElementsAre(HasSubstr("has no run among those that intervals were fitted to")));
}

}  // namespace
}  // namespace plancast
