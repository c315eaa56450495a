// Peak memory of a compiled plan without simulating time: what ranking prunes with.

#include <benchmark/benchmark.h>

#include "base/check.h"
#include "benchmarks/plans.h"
#include "executor/executor.h"
#include "executor/memory/reasons.h"
#include "executor/memory/timeline.h"
#include "planner/forecast/plan_graph.h"

namespace plancast {
namespace {

using MakePlan = NamedPlan (*)();

struct Compiled {
  explicit Compiled(MakePlan make) {
    const NamedPlan plan = make();
    absl::StatusOr<PlanGraph> compiled = DrawAndCompile(plan.job, plan.machine, session);
    PLANCAST_CHECK_OK(compiled);
    graph = compiled->execution;
    runtime.memory = plan.job.profile.memory;
  }
  Session session;
  std::shared_ptr<const ExecutionGraph> graph;
  RuntimeParams runtime;
};

void BM_Peak(benchmark::State& state, MakePlan make) {
  const Compiled plan(make);
  for (auto _ : state) benchmark::DoNotOptimize(ReplayMemory(*plan.graph, plan.runtime));
  int64_t instances = 0;
  for (const Program& program : plan.graph->programs) {
    instances += static_cast<int64_t>(program.instances.size());
  }
  state.counters["instances"] = static_cast<double>(instances);
}

void BM_Reasons(benchmark::State& state, MakePlan make) {
  const Compiled plan(make);
  for (auto _ : state) benchmark::DoNotOptimize(ExplainPeak(*plan.graph, 0));
}

void BM_Timeline(benchmark::State& state, MakePlan make) {
  const Compiled plan(make);
  for (auto _ : state) benchmark::DoNotOptimize(MemoryOverIssueOrder(*plan.graph, 0));
}

#define PLANCAST_MEMORY_BENCHMARKS(plan)                                    \
  BENCHMARK_CAPTURE(BM_Peak, plan, plan)->Unit(benchmark::kMicrosecond);    \
  BENCHMARK_CAPTURE(BM_Reasons, plan, plan)->Unit(benchmark::kMicrosecond); \
  BENCHMARK_CAPTURE(BM_Timeline, plan, plan)->Unit(benchmark::kMicrosecond)

PLANCAST_MEMORY_BENCHMARKS(Gpt3OnA100);
PLANCAST_MEMORY_BENCHMARKS(Llama70bOnH100);
PLANCAST_MEMORY_BENCHMARKS(Llama70bInterleaved);
PLANCAST_MEMORY_BENCHMARKS(Llama405bOnH100);

}  // namespace
}  // namespace plancast
