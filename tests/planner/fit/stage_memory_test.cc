#include "planner/fit/stage_memory.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "planner/forecast/model_source.h"
#include "planner/forecast/plan_graph.h"
#include "planner/forecast/predict.h"
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
    job_.strategy = text[0] == '{' ? *StrategyTree::FromJson(text, "a tree")
                                   : StrategyTree::FromShortForm(*ParseShortForm(text));
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

// Without a time as with one, byte for byte.
TEST_F(StageMemoryTest, HomesOfNodesTakeWhatTheForecastSays) {
  StageMemory memory(Overhead());
  const auto tree = [](const std::string& plan, const std::string& nodes) {
    return absl::StrCat("{\"plan\": \"", plan, "\", \"nodes\": {", nodes, "}}");
  };
  const std::string fsdp = R"j("layers.*": {"home": {"weights": "shard(dp)"}})j";
  const std::string whole = R"j("head": {"home": {"state": "replicate"}})j";
  const std::string some = R"j("layers[0:3]": {"home": {"gradients": "shard(dp)"}},
      "layers.*.mlp": {"home": "shard(dp)+host"})j";
  const std::string host = R"j("layers[::2]": {"home": {"activations": "host", "state": "host"}})j";
  const std::string buckets =
      R"j("layers[4:]": {"bucket": "1MB"}, "embedding": {"bucket": "4MB"})j";
  for (const std::string& text :
       {tree("mb=1", fsdp), tree("mb=1,tp=2,zero=3", whole), tree("mb=1,pp=2", some),
        tree("mb=1,pp=2,zero=1", fsdp), tree("mb=2", host), tree("mb=1,overlap=grad", buckets),
        tree("mb=1,pp=2,overlap=grad+param", some + ", " + buckets)}) {
    const std::vector<int64_t> bytes = DeviceBytes(text, &memory);
    Session session;
    PredictOptions options;
    ASSERT_OK_AND_ASSIGN(const Forecast forecast,
                         Predict(job_, *MachineFromPreset("dgx-a100-80g:1"),
                                 *DefaultKernelCostModel(), session, options));
    int64_t most = 0;
    for (size_t i = 0; i < bytes.size(); i += 2) most = std::max(most, bytes[i]);
    EXPECT_EQ(most, forecast.peak_memory_bytes) << text;
  }
}

}  // namespace
}  // namespace plancast
