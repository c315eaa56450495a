#include "planner/fit/stage_memory.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "planner/forecast/model_source.h"
#include "planner/forecast/plan_graph.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

class StageMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    TransformerConfig config;
    config.name = "small";
    config.layers = 8;
    config.hidden = 1024;
    config.heads = 8;
    config.ffn = 4096;
    config.vocab = 32000;
    config.seq = 1024;
    ASSERT_OK_AND_ASSIGN(job_.model, TransformerSource(config));
    ASSERT_OK_AND_ASSIGN(job_.profile, FindSoftwareProfile("megatron-core"));
    job_.global_batch = 32;
  }

  // Of all stages of a plan, placed and not.
  std::vector<int64_t> DeviceBytes(const std::string& text, StageMemory* memory) {
    const ShortForm form = *ParseShortForm(text);
    job_.strategy = StrategyTree::FromShortForm(form);
    const Machine machine = *MachineFromPreset("dgx-a100-80g:1");
    const PlanGraph plan = *SettlePlan(job_, machine, session_);
    const PlanOptions& options = plan.chosen.options;
    const SoftwareProfile profile = job_.profile.For(job_.dtype, options.schedule);
    CompileRequest request;
    request.graph = plan.graph.get();
    request.tree = &job_.strategy;
    request.options = &options;
    request.profile = &profile;
    request.dtype = job_.dtype;
    request.graph_key = plan.graph_key;
    const ProgramPlan programs = *PlanPrograms(request, session_, nullptr);
    memory->Begin(programs);
    std::vector<int64_t> bytes;
    for (int64_t stage = 0; stage < options.pp; ++stage) {
      Footprint footprint = memory->Of(stage);
      bytes.push_back(footprint.memory.device);
      memory->Place(stage, &footprint);
      bytes.push_back(footprint.memory.device);
    }
    return bytes;
  }

  MemoryOverhead Overhead() const {
    MemoryOverhead overhead = job_.profile.memory;
    overhead.capacity_bytes = int64_t{80} << 30;
    return overhead;
  }

  Job job_;
  Session session_;
};

TEST_F(StageMemoryTest, WhatIsForgottenIsWorkedOutAgain) {
  StageMemory keeps(Overhead()), forgets(Overhead(), /*most_bodies=*/1);
  for (int times = 0; times < 2; ++times) {
    for (const char* plan : {"tp=2,pp=2,mb=1", "tp=2,pp=2,vpp=2,mb=2", "pp=4,mb=1,zero=1",
                             "tp=4,sp,mb=4,recompute=full", "mb=1,zero=3"}) {
      StageMemory fresh(Overhead());
      const std::vector<int64_t> bytes = DeviceBytes(plan, &fresh);
      EXPECT_EQ(DeviceBytes(plan, &keeps), bytes) << plan;
      EXPECT_EQ(DeviceBytes(plan, &forgets), bytes) << plan;
    }
  }
}

}  // namespace
}  // namespace plancast
