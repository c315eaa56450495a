// Verdicts on memory alone, every plan of the default space of Llama-3-70B on 128 H100s
// (batch 256), one thread: with a session that knows nothing (0) and one that has seen
// the space before (1).

#include <benchmark/benchmark.h>

#include "base/check.h"
#include "benchmarks/plans.h"
#include "planner/fit/fits.h"
#include "planner/search/space.h"

namespace plancast {
namespace {

void BM_Fits(benchmark::State& state) {
  NamedPlan plan = Llama70bOnH100();
  plan.job.global_batch = 256;
  const auto graph = plan.job.model->Draw({});
  PLANCAST_CHECK_OK(graph);
  const PlanContext context = ContextOf(*graph, plan.machine, plan.job.global_batch);
  const auto plans = EnumeratePlans({}, context, {plan.machine.gpus_per_domain()});
  PLANCAST_CHECK_OK(plans);
  Session known;
  FitCheck seen(plan.job, plan.machine, known);
  const auto all = [&](FitCheck& check) {
    int64_t fit = 0;
    for (const ShortForm& form : plans->plans) {
      const absl::StatusOr<FitVerdict> verdict = check.Verdict(form);
      fit += verdict.ok() && verdict->fits ? 1 : 0;
    }
    return fit;
  };
  if (state.range(0) == 1) all(seen);
  int64_t fit = 0;
  for (auto _ : state) {
    if (state.range(0) == 1) {
      fit = all(seen);
      continue;
    }
    Session session;
    FitCheck check(plan.job, plan.machine, session);
    fit = all(check);
  }
  const auto count = static_cast<double>(plans->plans.size());
  state.counters["plans"] = count;
  state.counters["fit"] = static_cast<double>(fit);
  state.counters["plans/s"] = benchmark::Counter(count * static_cast<double>(state.iterations()),
                                                 benchmark::Counter::kIsRate);
}
BENCHMARK(BM_Fits)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace plancast
