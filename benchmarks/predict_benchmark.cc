// From a job to its forecast, with a session that knows nothing and with one
// that has compiled the plan: what a first prediction and a re-pricing cost.

#include <benchmark/benchmark.h>

#include "base/check.h"
#include "benchmarks/plans.h"
#include "planner/forecast/predict.h"

namespace plancast {
namespace {

using MakePlan = NamedPlan (*)();

Forecast Predicted(const NamedPlan& plan, const KernelCostModel& costs, Session& session) {
  absl::StatusOr<Forecast> forecast = Predict(plan.job, plan.machine, costs, session);
  PLANCAST_CHECK_OK(forecast);
  return *std::move(forecast);
}

void Count(benchmark::State& state, const Forecast& forecast) {
  state.counters["iteration_s"] = forecast.iteration_time_s;
  state.counters["tasks"] = static_cast<double>(forecast.result.counters.tasks);
  state.counters["simulated"] = static_cast<double>(forecast.result.counters.materialised_tasks);
}

void BM_PredictCold(benchmark::State& state, MakePlan make) {
  const NamedPlan plan = make();
  const auto costs = DefaultKernelCostModel();
  Forecast forecast;
  for (auto _ : state) {
    Session session;
    forecast = Predicted(plan, *costs, session);
  }
  Count(state, forecast);
}

void BM_PredictKnown(benchmark::State& state, MakePlan make) {
  const NamedPlan plan = make();
  const auto costs = DefaultKernelCostModel();
  Session session;
  Forecast forecast = Predicted(plan, *costs, session);
  for (auto _ : state) forecast = Predicted(plan, *costs, session);
  Count(state, forecast);
}

#define PLANCAST_PREDICT_BENCHMARKS(plan)                                       \
  BENCHMARK_CAPTURE(BM_PredictCold, plan, plan)->Unit(benchmark::kMillisecond); \
  BENCHMARK_CAPTURE(BM_PredictKnown, plan, plan)->Unit(benchmark::kMillisecond)

PLANCAST_PREDICT_BENCHMARKS(Gpt3OnA100);
PLANCAST_PREDICT_BENCHMARKS(Llama70bOnH100);
PLANCAST_PREDICT_BENCHMARKS(Llama405bOnH100);

}  // namespace
}  // namespace plancast
