// Ranking every plan of the default space: Llama-3-70B on 128 H100s, batch 256,
// one thread, with a session that knows nothing. Counted are simulated plans. The
// argument: how many of the best are listed; 0: all.

#include <benchmark/benchmark.h>

#include "base/check.h"
#include "benchmarks/plans.h"
#include "planner/search/rank.h"

namespace plancast {
namespace {

void BM_Rank(benchmark::State& state) {
  NamedPlan plan = Llama70bOnH100();
  plan.job.global_batch = 256;
  const auto costs = DefaultKernelCostModel();
  RankOptions options;
  options.threads = 1;
  options.top = state.range(0);
  int64_t evaluated = 0, instances = 0;
  for (auto _ : state) {
    Session session;
    const absl::StatusOr<RankResult> result =
        Rank(plan.job, plan.machine, *costs, session, options);
    PLANCAST_CHECK_OK(result);
    evaluated += result->evaluated;
    for (const Forecast& plan : result->plans) instances += plan.result.counters.instances;
  }
  state.counters["plans"] =
      benchmark::Counter(static_cast<double>(evaluated), benchmark::Counter::kAvgIterations);
  state.counters["instances"] =
      benchmark::Counter(static_cast<double>(instances), benchmark::Counter::kAvgIterations);
  state.counters["plans/s"] =
      benchmark::Counter(static_cast<double>(evaluated), benchmark::Counter::kIsRate);
}
// The work is done on a thread of the ranking, so the whole process counts.
BENCHMARK(BM_Rank)->Arg(0)->Arg(10)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime();

}  // namespace
}  // namespace plancast
