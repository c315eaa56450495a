// Verdicts on memory alone, of Llama-3-70B on 128 H100s, one thread: every plan of the default
// space (batch 256), with a session that knows nothing (0) and one that has seen the space before
// (1); and plans of each schedule (batch 2048), with one that knows nothing.

#include <benchmark/benchmark.h>

#include <iterator>
#include <string>

#include "base/check.h"
#include "benchmarks/plans.h"
#include "planner/fit/fits.h"
#include "planner/search/space.h"

namespace plancast {
namespace {

NamedPlan JobOf(int64_t batch) {
  NamedPlan plan = Llama70bOnH100();
  plan.job.global_batch = batch;
  return plan;
}

std::vector<ShortForm> PlansOf(const NamedPlan& plan, const SearchSpace& space) {
  const auto graph = plan.job.model->Draw({});
  PLANCAST_CHECK_OK(graph);
  const PlanContext context = ContextOf(*graph, plan.machine, plan.job.global_batch);
  auto plans = EnumeratePlans(space, context, {plan.machine.gpus_per_domain()});
  PLANCAST_CHECK_OK(plans);
  return std::move(plans->plans);
}

// How many have a verdict, and how many fit.
struct Verdicts {
  int64_t given = 0, fit = 0;
};

Verdicts Count(FitCheck& check, const std::vector<ShortForm>& plans) {
  Verdicts count;
  for (const ShortForm& form : plans) {
    const absl::StatusOr<FitVerdict> verdict = check.Verdict(form);
    count.given += verdict.ok() ? 1 : 0;
    count.fit += verdict.ok() && verdict->fits ? 1 : 0;
  }
  return count;
}

void Say(benchmark::State& state, size_t plans, const Verdicts& count) {
  state.counters["plans"] = static_cast<double>(plans);
  state.counters["verdicts"] = static_cast<double>(count.given);
  state.counters["fit"] = static_cast<double>(count.fit);
  state.counters["plans/s"] =
      benchmark::Counter(static_cast<double>(plans) * static_cast<double>(state.iterations()),
                         benchmark::Counter::kIsRate);
}

void BM_Fits(benchmark::State& state) {
  const NamedPlan plan = JobOf(256);
  const std::vector<ShortForm> plans = PlansOf(plan, {});
  Session known;
  FitCheck seen(plan.job, plan.machine, known);
  if (state.range(0) == 1) Count(seen, plans);
  Verdicts count;
  for (auto _ : state) {
    if (state.range(0) == 1) {
      count = Count(seen, plans);
      continue;
    }
    Session session;
    FitCheck check(plan.job, plan.machine, session);
    count = Count(check, plans);
  }
  Say(state, plans.size(), count);
}
BENCHMARK(BM_Fits)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

// Of 64, 128, 256 and 512 micro-batches, most of them.
constexpr const char* kSchedules[] = {
    "1f1b,vpp=1",          "gpipe,vpp=1",   "eager-1f1b,vpp=1", "interleaved,vpp=2",
    "breadth-first,vpp=2", "zbh1,vpp=1",    "zb1p,vpp=1",       "zb2p,vpp=1",
    "zbv,vpp=2",           "zbvhalf,vpp=2", "zbvmin,vpp=2",     "dualpipe,vpp=1",
    "dualpipev,vpp=2",     "hanayo,vpp=2",  "chimera,vpp=1",    "ongoing:6,vpp=1"};

void BM_FitsOfSchedule(benchmark::State& state) {
  const NamedPlan plan = JobOf(2048);
  const std::string schedule = kSchedules[state.range(0)];
  const auto space =
      ParseSearchSpace("tp=4|8,pp=4|8|16,mb=1|2,zero=0|1,recompute=none|full,schedule=" + schedule);
  PLANCAST_CHECK_OK(space);
  const std::vector<ShortForm> plans = PlansOf(plan, *space);
  Verdicts count;
  for (auto _ : state) {
    Session session;
    FitCheck check(plan.job, plan.machine, session);
    count = Count(check, plans);
  }
  state.SetLabel(schedule);
  Say(state, plans.size(), count);
}
BENCHMARK(BM_FitsOfSchedule)
    ->DenseRange(0, std::size(kSchedules) - 1)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace plancast
