#include "executor/cluster/fabric.h"

#include <cstdint>
#include <vector>

#include "executor/cluster/free_gpus.h"
#include "executor/cluster/routes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Four hosts of four GPUs below two leaves of two uplinks.
Fabric Clos(int32_t width = 2, bool by_rail = false) {
  Fabric::Spec spec;
  spec.hosts = 4;
  spec.gpus_per_host = 4;
  spec.nics_per_host = 2;
  spec.nic_bytes_per_s = 100;
  spec.tiers.push_back({"leaf", {0, 0, 1, 1}, width, 100, by_rail});
  return *Fabric::Create(spec);
}

int32_t First(const FabricFlow&, int, int32_t, int32_t, int32_t) { return 0; }

std::vector<std::string> NamesOn(const Fabric& fabric, const FabricFlow& flow) {
  std::vector<int32_t> links;
  fabric.Route(flow, First, &links);
  std::vector<std::string> names;
  for (int32_t link : links) names.push_back(fabric.LinkName(link));
  return names;
}

TEST(Fabric, PathsClimbAsFarAsTheyMust) {
  const Fabric fabric = Clos();
  EXPECT_THAT(NamesOn(fabric, {0, 0, 1, 1}),
              ElementsAre("nic 0 of host 0, out", "nic 1 of host 1, in"));
  EXPECT_THAT(NamesOn(fabric, {0, 0, 2, 0}),
              ElementsAre("nic 0 of host 0, out", "uplink 0 of leaf 0, out",
                          "uplink 0 of leaf 1, in", "nic 0 of host 2, in"));
  // Rails meet above their switches.
  EXPECT_THAT(NamesOn(Clos(2, true), {0, 0, 1, 1}),
              ElementsAre("nic 0 of host 0, out", "uplink 0 of leaf 0 rail 0, out",
                          "uplink 0 of leaf 0 rail 1, in", "nic 1 of host 1, in"));
}

TEST(Fabric, RingsUseTheInterfacesBesideTheirGpus) {
  const Fabric fabric = Clos();
  int64_t per_hop = 0;
  EXPECT_EQ(fabric.RingOf({0, 1, 2, 3, 4, 5, 6, 7}, &per_hop).size(), 4);
  EXPECT_EQ(per_hop, 2);
  // GPU 0 is beside interface 0 and GPU 6 beside interface 1 of its host.
  const std::vector<FabricFlow> flows = fabric.RingOf({0, 6}, &per_hop);
  EXPECT_EQ(per_hop, 1);
  ASSERT_EQ(flows.size(), 2);
  EXPECT_EQ(flows[0].from_nic, 0);
  EXPECT_EQ(flows[0].to_nic, 1);
  EXPECT_TRUE(fabric.RingOf({0, 1, 2}, &per_hop).empty());
}

TEST(Fabric, OfAMachine) {
  Machine::Spec spec = MachineFromPreset("dgx-h100:4")->spec();
  spec.hosts_per_pod = 2;
  spec.oversubscription = 2;
  ASSERT_OK_AND_ASSIGN(const Machine machine, Machine::Create(spec));
  ASSERT_OK_AND_ASSIGN(const Fabric fabric, Fabric::Of(machine, 4));
  EXPECT_EQ(fabric.spec().hosts, 4);
  ASSERT_EQ(fabric.spec().tiers.size(), 1);
  // Two hosts' interfaces of a rail, half of it, in four links.
  EXPECT_EQ(fabric.spec().tiers[0].bytes_per_s, 50'000'000'000 * 2 / 2 / 4);
  EXPECT_THAT(Fabric::Of(*MachineFromPreset("dgx-a100-80g:1+dgx-h100:1"), 1),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("of equal hosts")));
}

TEST(Fabric, WhatCannotBeIsRefused) {
  Fabric::Spec spec;
  spec.hosts = 2;
  spec.nic_bytes_per_s = 1;
  spec.tiers.push_back({"leaf", {0}, 1, 1, false});
  EXPECT_THAT(Fabric::Create(spec),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("places 1 nodes")));
}

TEST(FreeGpus, PackedStaysTogetherAndSpreadDoesNot) {
  const Fabric fabric = Clos();
  FreeGpus free(fabric);
  EXPECT_THAT(free.Find(2, GpuPlacement::kPacked), ElementsAre(0, 1));
  free.Take({0, 1}, 0);
  // The fullest host that has room; then the fullest leaf.
  EXPECT_THAT(free.Find(2, GpuPlacement::kPacked), ElementsAre(2, 3));
  EXPECT_THAT(free.Find(5, GpuPlacement::kPacked), ElementsAre(2, 4, 5, 6, 7));
  EXPECT_THAT(free.Find(2, GpuPlacement::kSpread), ElementsAre(4, 5));
  EXPECT_THAT(free.Find(8, GpuPlacement::kSpread), ElementsAre(4, 5, 6, 7, 8, 9, 10, 11));
  EXPECT_TRUE(free.Find(15, GpuPlacement::kPacked).empty());
  free.Release({0, 1});
  EXPECT_EQ(free.free(), 16);
}

// A job on hosts 0 and 2 has four flows over uplinks.
PlacedLoop Placed(Routes& routes, bool by_load) {
  ClusterJob job;
  job.gpus = 8;
  job.phases = {{1'000'000'000'000, 1'000'000'000'000, 0}};
  PlacedLoop placed = routes.Place(job, {0, 1, 2, 3, 8, 9, 10, 11}, 1);
  routes.Choose(job, 0, by_load, &placed);
  return placed;
}

TEST(Routes, ByLoadAJobKeepsOutOfItsOwnWay) {
  const Fabric fabric = Clos();
  Routes routes(fabric, 1);
  const PlacedLoop placed = Placed(routes, true);
  for (const Fluid::Use& use : placed.loop.uses) {
    EXPECT_EQ(use.coefficient_q20, int64_t{1} << 20) << fabric.LinkName(use.resource);
  }
  EXPECT_EQ(placed.loop.IterationPs(), 1'000'000'000'000);
  // What is said in time takes that time whatever the path.
  const Fabric narrow = Clos(1);
  Routes others(narrow, 1);
  EXPECT_EQ(Placed(others, true).loop.IterationPs(), 1'000'000'000'000);
}

}  // namespace
}  // namespace plancast
