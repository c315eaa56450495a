#include "strategy/nodes/choose_stages.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

// Hosts of eight.
absl::StatusOr<std::pair<int64_t, int64_t>> EightEach(int64_t host) {
  if (host > 5) return absl::InvalidArgumentError("there are 6 hosts");
  return std::make_pair(host * 8, host * 8 + 8);
}

StageMeshSpec Stage(std::map<std::string, int64_t> mesh, const std::string& devices = "") {
  StageMeshSpec spec;
  spec.mesh = std::move(mesh);
  if (!devices.empty()) spec.devices = *DeviceRange::Parse(devices);
  return spec;
}

absl::StatusOr<ChosenPlan> Choose(const std::string& plan, const std::vector<StageMeshSpec>& specs,
                                  int64_t devices) {
  PlanContext context;
  context.devices = devices;
  context.layers = 32;
  context.heads = context.kv_heads = 32;
  context.ffn = 11008;
  context.hidden = 4096;
  context.global_batch = 64;
  return ChooseStages(*ParseShortForm(plan), specs, context, EightEach,
                      *FindSoftwareProfile("megatron-core"));
}

TEST(ChooseStagesTest, RangesOfDevicesAreReadAndPrinted) {
  for (const char* text : {"hosts 0-1", "host 2", "gpus 8-15", "gpu 3"}) {
    ASSERT_OK_AND_ASSIGN(const DeviceRange range, DeviceRange::Parse(text));
    EXPECT_EQ(range.DebugString(), text);
  }
  for (const char* text : {"", "hosts", "0-1", "hosts 1-0", "gpus -1", "gpus 1-2-3", "racks 1"}) {
    EXPECT_THAT(DeviceRange::Parse(text),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("names no devices")));
  }
}

TEST(ChooseStagesTest, EachStageHasItsMeshAndAsManySamples) {
  ASSERT_OK_AND_ASSIGN(
      const ChosenPlan plan,
      Choose("mb=1,zero=1", {Stage({{"dp", 4}, {"tp", 4}}), Stage({{"tp", 8}}, "hosts 2-5")}, 48));
  const PlanOptions& o = plan.options;
  ASSERT_EQ(o.stages.size(), 2);
  EXPECT_EQ(o.pp, 2);
  EXPECT_EQ(o.stages[0].dp, 4);
  EXPECT_EQ(o.stages[0].micro_batch, 1);
  EXPECT_EQ(o.stages[1].dp, 4);
  EXPECT_EQ(o.stages[1].first_device, 16);
  EXPECT_EQ(o.micro_batches, 16);
  EXPECT_EQ(plan.chosen.at("meshes"), "dp=4,tp=4,mb=1; dp=4,tp=8,mb=1");
}

TEST(ChooseStagesTest, MicroBatchesFollowTheFirstStage) {
  ASSERT_OK_AND_ASSIGN(
      const ChosenPlan plan,
      Choose("mb=1", {Stage({{"dp", 8}, {"tp", 1}}), Stage({{"dp", 2}, {"tp", 4}})}, 16));
  EXPECT_EQ(plan.options.stages[1].micro_batch, 4);
  EXPECT_EQ(plan.options.OfStage(1).tp, 4);
  EXPECT_EQ(plan.options.OfStage(1).micro_batch, 4);
}

TEST(ChooseStagesTest, WhatIsWrongNamesTheStage) {
  const auto refused = [](const std::string& plan, const std::vector<StageMeshSpec>& specs,
                          int64_t devices) {
    return std::string(Choose(plan, specs, devices).status().message());
  };
  const StageMeshSpec four = Stage({{"dp", 1}, {"tp", 4}});
  EXPECT_THAT(refused("pp=4,mb=1", {four, four}, 8), HasSubstr("`stages` lists 2 stages"));
  EXPECT_THAT(refused("mb=1", {four, Stage({{"dp", 1}, {"tp", 4}}, "gpus 2-5")}, 8),
              HasSubstr("stages[0] and stages[1] both have GPU 2"));
  EXPECT_THAT(refused("mb=1", {four, Stage({{"dp", 1}, {"tp", 4}}, "gpus 8-11")}, 12),
              HasSubstr("no stage has GPUs 4 to 7"));
  EXPECT_THAT(refused("mb=1", {four, four}, 16), HasSubstr("take 8 devices, and the machine has"));
  EXPECT_THAT(refused("mb=1", {four, Stage({{"tq", 4}})}, 8),
              HasSubstr("stages[1]: no mesh axis `tq`"));
  EXPECT_THAT(refused("mb=1", {four, Stage({{"dp", 3}, {"tp", 1}})}, 7),
              HasSubstr("stages[1]: takes micro-batches of 1 samples"));
  EXPECT_THAT(refused("mb=1", {four, Stage({{"dp", 2}, {"tp", 4}}, "host 1")}, 12),
              HasSubstr("takes micro-batches of 1 samples"));
  EXPECT_THAT(refused("mb=1", {four, Stage({{"dp", 1}, {"tp", 4}}, "host 1")}, 12),
              HasSubstr("has 8 devices (host 1), and its mesh of dp=1, tp=4, cp=1 takes 4"));
  EXPECT_THAT(refused("mb=1", {four, Stage({{"tp", 3}})}, 7), HasSubstr("stages[1]"));
}

}  // namespace
}  // namespace plancast
