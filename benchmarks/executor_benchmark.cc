// Tasks a second through unfolding and simulation, and the cost of folding.

#include <benchmark/benchmark.h>

#include "base/check.h"
#include "benchmarks/made_up.h"
#include "executor/comm_uses.h"
#include "executor/executor.h"
#include "executor/fold/fold.h"
#include "executor/realise.h"
#include "tests/executor/graph_builder.h"

namespace plancast {
namespace {

void BM_Execute(benchmark::State& state) {
  const int64_t stages = state.range(0), replicas = state.range(1);
  const ExecutionGraph graph = Pipeline(stages, replicas, static_cast<int>(state.range(2)));
  const Machine machine = Cluster(stages * replicas * 8, false);
  const UnitCost costs;
  RuntimeParams runtime;
  runtime.interference = static_cast<double>(state.range(3)) / 100;
  int64_t tasks = 0;
  for (auto _ : state) {
    const auto result = Execute(graph, machine, costs, runtime);
    PLANCAST_CHECK_OK(result);
    tasks += result->counters.materialised_tasks;
  }
  state.counters["tasks"] =
      benchmark::Counter(static_cast<double>(tasks), benchmark::Counter::kAvgIterations);
  state.counters["tasks/s"] =
      benchmark::Counter(static_cast<double>(tasks), benchmark::Counter::kIsRate);
}
BENCHMARK(BM_Execute)
    ->ArgNames({"pp", "dp", "mb", "interference%"})
    ->Args({16, 128, 16, 0})
    ->Args({16, 1024, 16, 0})
    ->Args({16, 4, 128, 0})
    ->Args({16, 128, 16, 10})
    ->Args({16, 4, 128, 10})
    ->Unit(benchmark::kMillisecond);

// Every device by itself.
void BM_SimulateFlat(benchmark::State& state) {
  const ExecutionGraph graph = Pipeline(4, 2, 16);
  const Machine machine = Cluster(64, false);
  int64_t tasks = 0;
  for (auto _ : state) tasks += SimulateFlat(graph, machine, UnitCost());
  state.counters["tasks"] =
      benchmark::Counter(static_cast<double>(tasks), benchmark::Counter::kAvgIterations);
  state.counters["tasks/s"] =
      benchmark::Counter(static_cast<double>(tasks), benchmark::Counter::kIsRate);
}
BENCHMARK(BM_SimulateFlat)->Unit(benchmark::kMillisecond);

void BM_Fold(benchmark::State& state) {
  const int64_t replicas = state.range(0) / 128;
  const ExecutionGraph graph = Pipeline(16, replicas, 16);
  const Machine machine = Cluster(state.range(0), state.range(1) != 0);
  const absl::StatusOr<CommUses> uses = FindCommUses(graph);
  PLANCAST_CHECK_OK(uses);
  size_t classes = 0;
  for (auto _ : state) {
    absl::StatusOr<KernelPrices> prices = PriceKernels(graph, machine, UnitCost());
    PLANCAST_CHECK_OK(prices);
    CommPricer comms(graph, machine, RuntimeParams());
    const absl::StatusOr<SimGraph> sim = Fold({graph, *uses, machine, comms, *prices});
    PLANCAST_CHECK_OK(sim);
    classes = sim->entities.size();
  }
  state.counters["classes"] = static_cast<double>(classes);
}
BENCHMARK(BM_Fold)
    ->ArgNames({"gpus", "straggler"})
    ->Args({1024, 0})
    ->Args({131072, 0})
    ->Args({1024, 1})
    ->Args({16384, 1})
    ->Args({131072, 1})
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace plancast
