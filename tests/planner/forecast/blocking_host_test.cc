#include <algorithm>
#include <cstdint>

#include "cost_models/kernel_cost.h"
#include "gtest/gtest.h"
#include "planner/forecast/model_source.h"
#include "planner/forecast/plan_graph.h"
#include "planner/forecast/predict.h"
#include "strategy/software_profile.h"
#include "tests/planner/small_transformer.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

// CUDA_LAUNCH_BLOCKING=1: each kernel is called when the one before is over.
TEST(BlockingHostTest, AddsItsTimeToThatOfEveryKernel) {
  Job job;
  ASSERT_OK_AND_ASSIGN(job.model, TransformerSource(SmallTransformer()));
  ASSERT_OK_AND_ASSIGN(job.profile, FindSoftwareProfile("megatron-core"));
  job.global_batch = 32;
  job.profile.host.host_sync_s = job.profile.host.iteration_s = 0;
  job.profile.calls.blocking = true;
  ASSERT_OK_AND_ASSIGN(const ShortForm form, ParseShortForm("dp=1,tp=1,pp=1"));
  job.strategy = StrategyTree::FromShortForm(form);
  ASSERT_OK_AND_ASSIGN(const Machine machine, MachineFromPreset("dgx-a100-80g:1x1"));
  const auto costs = DefaultKernelCostModel();
  Session session;
  const auto time = [&](double launch_s) {
    job.profile.host.launch_s = launch_s;
    const absl::StatusOr<Forecast> forecast = plancast::Predict(job, machine, *costs, session);
    EXPECT_OK(forecast.status());
    return forecast->result.makespan_ps;
  };
  ASSERT_OK_AND_ASSIGN(const PlanGraph plan, DrawAndCompile(job, machine, session));
  int64_t launches = 0;
  for (const Instance& instance : plan.execution->programs[0].instances) {
    const Block& block = plan.execution->blocks[instance.block];
    for (int32_t t = 0; t < block.size(); ++t) {
      const KernelSpec& kernel = plan.execution->kernels[block.spec[t]];
      // Further ones are launched while the first runs.
      if (kernel.launches == 0) continue;
      const int64_t calls = std::max(kernel.calls, 0);
      launches += std::min<int64_t>(kernel.launches + calls, calls + 1) * instance.layer_count;
    }
  }
  const int64_t alone = time(0);
  EXPECT_GE(time(1e-6), alone + launches * 1'000'000);
  job.profile.calls.blocking = false;
  EXPECT_LT(time(1e-6), alone + launches * 1'000'000);
}

}  // namespace
}  // namespace plancast
