// From a job to its execution graph: with a session that knows nothing, with one
// that has seen the plan, and one that has seen a plan that differs in a knob.

#include <benchmark/benchmark.h>

#include "base/check.h"
#include "benchmarks/plans.h"
#include "planner/forecast/plan_graph.h"

namespace plancast {
namespace {

using MakePlan = NamedPlan (*)();

ExecutionGraph Compiled(const NamedPlan& plan, Session& session) {
  const absl::StatusOr<PlanGraph> made = DrawAndCompile(plan.job, plan.machine, session);
  PLANCAST_CHECK_OK(made);
  return *made->execution;
}

void Count(benchmark::State& state, const ExecutionGraph& graph) {
  state.counters["blocks"] = static_cast<double>(graph.blocks.size());
  size_t instances = 0;
  for (const Program& program : graph.programs) instances += program.instances.size();
  state.counters["instances"] = static_cast<double>(instances);
}

void BM_CompileCold(benchmark::State& state, MakePlan make) {
  const NamedPlan plan = make();
  ExecutionGraph graph;
  for (auto _ : state) {
    Session session;
    graph = Compiled(plan, session);
  }
  Count(state, graph);
}

void BM_CompileKnown(benchmark::State& state, MakePlan make) {
  const NamedPlan plan = make();
  Session session;
  Compiled(plan, session);
  for (auto _ : state) benchmark::DoNotOptimize(DrawAndCompile(plan.job, plan.machine, session));
}

// Every iteration another bucket size: bodies are shared, programs are not.
void BM_CompileAnotherKnob(benchmark::State& state, MakePlan make) {
  NamedPlan plan = make();
  Session session;
  Compiled(plan, session);
  int64_t bucket = 10'000'000;
  for (auto _ : state) {
    plan.job.strategy.plan().bucket_bytes = ++bucket;
    benchmark::DoNotOptimize(Compiled(plan, session));
  }
}

#define PLANCAST_COMPILE_BENCHMARKS(plan)                                        \
  BENCHMARK_CAPTURE(BM_CompileCold, plan, plan)->Unit(benchmark::kMillisecond);  \
  BENCHMARK_CAPTURE(BM_CompileKnown, plan, plan)->Unit(benchmark::kMillisecond); \
  BENCHMARK_CAPTURE(BM_CompileAnotherKnob, plan, plan)->Unit(benchmark::kMillisecond)

PLANCAST_COMPILE_BENCHMARKS(Gpt3OnA100);
PLANCAST_COMPILE_BENCHMARKS(Llama70bOnH100);
PLANCAST_COMPILE_BENCHMARKS(Llama405bOnH100);

}  // namespace
}  // namespace plancast
