// What each plan of an exhaustive ranking costs: Llama-3-70B on 128 H100s, one thread, in the order
// of a ranking. A line for each plan that fits: CPU us, instances, tasks that ran by themselves
// (these two only if plans are described), its time to the picosecond, and the plan.
//
//   rank_cost [--describe] [--every=N] [--batch=N] [SPACE]   every N-th plan of a space

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "base/check.h"
#include "benchmarks/plans.h"
#include "compiler/graph_workspace.h"
#include "compiler/session.h"
#include "planner/forecast/pricing.h"
#include "planner/forecast/ranked_prediction.h"
#include "planner/search/best_first.h"
#include "planner/search/rank.h"

namespace plancast {
namespace {

double CpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

void Run(const std::string& text, int64_t batch, int every, bool describe) {
  NamedPlan plan = Llama70bOnH100();
  plan.job.global_batch = batch;
  const auto costs = DefaultKernelCostModel();
  const Pricing pricing(*costs);
  const auto graph = plan.job.model->Draw({});
  PLANCAST_CHECK_OK(graph);
  const auto said = ParseSearchSpace(text);
  PLANCAST_CHECK_OK(said);
  const auto space = SpaceOf(plan.job, *graph, plan.machine, *said);
  PLANCAST_CHECK_OK(space);
  const std::vector<ShortForm>& plans = space->enumeration.plans;
  Session session;
  GraphWorkspace workspace;
  const std::vector<int64_t> order = AlikeTogether(plans);
  const double start = CpuSeconds();
  double unfit = 0;
  int64_t fitting = 0, looked_at = 0;
  for (size_t i = 0; i < order.size(); i += every) {
    const double begin = CpuSeconds();
    Job job = plan.job;
    job.strategy.plan() = plans[order[i]];
    const auto forecast = PredictOneOfMany(
        job, plan.machine, pricing, session, [describe](const Forecast&) { return describe; },
        &workspace);
    const double took = CpuSeconds() - begin;
    ++looked_at;
    if (!forecast.ok() || !forecast->fits) {
      unfit += took;
      continue;
    }
    ++fitting;
    std::printf("%9.0f %8lld %8lld %18lld %s\n", took * 1e6,
                static_cast<long long>(forecast->result.counters.instances),
                static_cast<long long>(forecast->result.counters.materialised_tasks),
                static_cast<long long>(forecast->result.makespan_ps),
                PrintShortForm(plans[order[i]]).c_str());
  }
  std::fprintf(stderr, "%lld of %lld plans fit: %.3f s, %.3f s of it for those that do not\n",
               static_cast<long long>(fitting), static_cast<long long>(looked_at),
               CpuSeconds() - start, unfit);
}

}  // namespace
}  // namespace plancast

int main(int argc, char** argv) {
  int every = 1;
  int64_t batch = 256;
  bool describe = false;
  std::string space;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (absl::StartsWith(word, "--every=")) {
      every = std::max(1, std::atoi(word.c_str() + 8));
    } else if (absl::StartsWith(word, "--batch=")) {
      batch = std::max(1, std::atoi(word.c_str() + 8));
    } else if (word == "--describe") {
      describe = true;
    } else {
      space = word;
    }
  }
  plancast::Run(space, batch, every, describe);
  return 0;
}
