#include "executor/jobs/placement.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/executor/graph_builder.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Machine Made(int64_t hosts, int64_t gpus, int64_t hosts_per_pod = 0) {
  Machine::Spec spec = UnitMachine(hosts, gpus);
  spec.hosts_per_pod = hosts_per_pod;
  return *Machine::Create(spec);
}

std::vector<int64_t> Parsed(absl::string_view text, const Machine& machine) {
  const auto devices = ParsePlacement(text, machine);
  EXPECT_TRUE(devices.ok()) << devices.status();
  return devices.value_or(std::vector<int64_t>());
}

TEST(PlacementTest, ReadsHostsGpusAndDevices) {
  const Machine machine = Made(4, 4);
  EXPECT_THAT(Parsed("hosts 1", machine), ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(Parsed("hosts 0,2-3 gpus 0-1", machine), ElementsAre(0, 1, 8, 9, 12, 13));
  EXPECT_THAT(Parsed("gpus 3", machine), ElementsAre(3, 7, 11, 15));
  EXPECT_THAT(Parsed("devices 5,0-2", machine), ElementsAre(0, 1, 2, 5));
}

TEST(PlacementTest, SaysWhatIsWrong) {
  const Machine machine = Made(4, 4);
  const auto error = [&](absl::string_view text) {
    return std::string(ParsePlacement(text, machine).status().message());
  };
  EXPECT_THAT(error("hosts 2-4"), HasSubstr("`hosts 2-4` leaves the machine, which has 4 hosts"));
  EXPECT_THAT(error("hosts 3-1"), HasSubstr("`3-1` is no range of hosts"));
  EXPECT_THAT(error("racks 1"), HasSubstr("`racks 1` is no placement"));
  EXPECT_THAT(error("devices 1,1"), HasSubstr("names 1 twice"));
  EXPECT_THAT(error("devices 1 gpus 0"), HasSubstr("say `devices`, or `hosts` and `gpus`"));
  EXPECT_THAT(error("hosts 1 hosts 2"), HasSubstr("says `hosts` twice"));
}

ExecutionGraph Plan(int64_t devices) {
  GraphBuilder b({{"dp", devices}});
  b.Block("F").Kernel(1);
  b.Program("all").Run("F");
  return b.Build();
}

TEST(PlacementTest, ChecksSizesAndOverlap) {
  const Machine machine = Made(4, 4);
  const ExecutionGraph four = Plan(4);
  const auto error = [&](const std::vector<PlacedJob>& jobs) {
    return std::string(CheckPlacements(jobs, machine).message());
  };
  EXPECT_EQ(error({{"a", &four, {0, 1, 2, 3}}, {"b", &four, {4, 6, 8, 9}}}), "");
  EXPECT_THAT(error({{"a", &four, {0, 1, 2}}}),
              HasSubstr("job `a` is placed on 3 devices and its plan (dp=4) runs on 4."));
  EXPECT_THAT(error({{"a", &four, {13, 14, 15, 16}}}),
              HasSubstr("job `a` is placed on device 16; the machine has 16"));
  EXPECT_THAT(error({{"a", &four, {0, 1, 2, 2}}}), HasSubstr("lists device 2 twice"));
  EXPECT_THAT(error({{"a", &four, {0, 1, 2, 3}}, {"b", &four, {3, 4, 5, 6}}}),
              HasSubstr("jobs `a` and `b` are both placed on device 3."));
  EXPECT_THAT(error({{"a", &four, {0, 1, 2, 3}, -1}}), HasSubstr("arrives before time 0"));
}

TEST(PlacementTest, JobsShareTheLinksThatTheirMessagesMayCross) {
  const ExecutionGraph four = Plan(4);
  const auto sets = [&](const Machine& machine, const std::vector<PlacedJob>& jobs) {
    return SetsThatShareLinks(jobs, machine);
  };
  using Sets = std::vector<std::vector<int>>;
  const PlacedJob a{"a", &four, {0, 1, 4, 5}}, b{"b", &four, {2, 3, 6, 7}},
      c{"c", &four, {8, 9, 10, 11}}, d{"d", &four, {12, 13, 14, 15}};
  // Every device has an interface of its own.
  EXPECT_EQ(sets(Made(4, 4), {a, b, c, d}), (Sets{{0}, {1}, {2}, {3}}));
  Machine::Spec one_nic = UnitMachine(4, 4, 4);
  EXPECT_EQ(sets(*Machine::Create(one_nic), {c, a, d, b}), (Sets{{0}, {1, 3}, {2}}));
  // Below one uplink each, those of a pod do not meet.
  one_nic.hosts_per_pod = 2;
  EXPECT_EQ(sets(*Machine::Create(one_nic), {c, d}), (Sets{{0}, {1}}));
  const PlacedJob e{"e", &four, {0, 8, 1, 9}}, f{"f", &four, {4, 12, 5, 13}};
  one_nic.rail_optimized = false;
  EXPECT_EQ(sets(*Machine::Create(one_nic), {e, f}), (Sets{{0, 1}}));
}

TEST(PlacementTest, WholeBlocksCanBeRenumbered) {
  Machine::Spec spec = UnitMachine(4, 4, 2);
  spec.device_overrides = {{0, 0.5}, {13, 0.8}};
  spec.link_overrides = {{1, 7, 0.25}};  // the second interface of host 3
  const Machine machine = *Machine::Create(spec);
  const auto there = Renumbered(machine, {12, 13, 14, 15, 4, 5});
  ASSERT_TRUE(there.has_value());
  EXPECT_EQ(there->ComputeScale(1), 0.8);
  EXPECT_EQ(there->ComputeScale(0), 1.0);
  EXPECT_EQ(there->LinkScale(1, 1), 0.25);
  EXPECT_FALSE(Renumbered(machine, {0, 1, 4, 5}).has_value());
  EXPECT_FALSE(Renumbered(machine, {2, 3, 4, 5}).has_value());
  // Half a pod, but all in it.
  const Machine pods = Made(4, 4, 4);
  EXPECT_TRUE(Renumbered(pods, {8, 9, 10, 11}).has_value());
  EXPECT_FALSE(Renumbered(Made(4, 4, 2), {4, 5, 6, 7, 8, 9, 10, 11}).has_value());
}

}  // namespace
}  // namespace plancast
