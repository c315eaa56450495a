// Realising, folding and simulating compiled plans: what re-pricing a plan costs.

#include <benchmark/benchmark.h>

#include "base/check.h"
#include "benchmarks/plans.h"
#include "compiler/session.h"
#include "cost_models/kernel_cost.h"
#include "executor/executor.h"
#include "planner/forecast/plan_graph.h"

namespace plancast {
namespace {

using MakePlan = NamedPlan (*)();

void BM_ExecuteCompiled(benchmark::State& state, MakePlan make) {
  const NamedPlan plan = make();
  Session session;
  const absl::StatusOr<PlanGraph> compiled = DrawAndCompile(plan.job, plan.machine, session);
  PLANCAST_CHECK_OK(compiled);
  const auto costs = DefaultKernelCostModel();
  RuntimeParams runtime;
  runtime.launch_s = plan.job.profile.host.launch_s;
  runtime.host_sync_s = plan.job.profile.host.host_sync_s;
  runtime.iteration_s = plan.job.profile.host.iteration_s;
  runtime.comm_scale = plan.job.profile.contention.comm_scale;
  runtime.interference = plan.job.profile.contention.interference;
  runtime.comm_interference = plan.job.profile.contention.comm_interference;
  int64_t tasks = 0;
  double seconds = 0;
  for (auto _ : state) {
    const auto result = Execute(*compiled->execution, plan.machine, *costs, runtime);
    PLANCAST_CHECK_OK(result);
    tasks += result->counters.materialised_tasks;
    seconds = static_cast<double>(result->makespan_ps) * 1e-12;
  }
  state.counters["iteration_s"] = seconds;
  state.counters["tasks"] =
      benchmark::Counter(static_cast<double>(tasks), benchmark::Counter::kAvgIterations);
  state.counters["tasks/s"] =
      benchmark::Counter(static_cast<double>(tasks), benchmark::Counter::kIsRate);
}
BENCHMARK_CAPTURE(BM_ExecuteCompiled, Gpt3OnA100, Gpt3OnA100)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_ExecuteCompiled, Llama70bOnH100, Llama70bOnH100)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_ExecuteCompiled, Llama70bInterleaved, Llama70bInterleaved)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_ExecuteCompiled, Llama405bOnH100, Llama405bOnH100)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace plancast
