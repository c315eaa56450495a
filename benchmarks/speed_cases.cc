#include "benchmarks/speed_cases.h"

#include <sys/resource.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <utility>

#include "base/check.h"
#include "benchmarks/made_up.h"
#include "benchmarks/plans.h"
#include "compiler/session.h"
#include "executor/executor.h"
#include "planner/forecast/plan_graph.h"
#include "planner/forecast/predict.h"
#include "planner/search/rank.h"
#include "tests/executor/graph_builder.h"

namespace plancast {
namespace {

double CpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double PeakBytes() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024;
}

// The median CPU time of `work(i)` over `repeats` runs, after one that warms up
// caches and allocator.
template <typename Work>
double Median(int repeats, const Work& work) {
  work(0);
  std::vector<double> seconds;
  for (int i = 1; i <= repeats; ++i) {
    const double begin = CpuSeconds();
    work(i);
    seconds.push_back(CpuSeconds() - begin);
  }
  std::nth_element(seconds.begin(), seconds.begin() + repeats / 2, seconds.end());
  return seconds[repeats / 2];
}

Measured Flat(const ExecutionGraph& graph, const Machine& machine, const KernelCostModel& costs,
              int repeats) {
  Measured out;
  const double before = PeakBytes();
  out.value = Median(
      repeats, [&](int) { out.tasks = static_cast<double>(SimulateFlat(graph, machine, costs)); });
  out.memory_bytes = PeakBytes() - before;
  return out;
}

Measured FlatPlan(const NamedPlan& plan, int repeats) {
  Session session;
  const auto compiled = DrawAndCompile(plan.job, plan.machine, session);
  PLANCAST_CHECK_OK(compiled);
  return Flat(*compiled->execution, plan.machine, *DefaultKernelCostModel(), repeats);
}

Measured FlatLoop(bool tiny) {
  const ExecutionGraph graph = Pipeline(4, 2, tiny ? 2 : 64);
  return Flat(graph, Cluster(64, false), UnitCost(), tiny ? 1 : 5);
}

// From a job to its forecast with a session that knows nothing; every run
// another bucket size.
Measured FromJobToForecast(NamedPlan plan, int repeats) {
  const auto costs = DefaultKernelCostModel();
  Measured out;
  out.value = Median(repeats, [&](int run) {
    plan.job.strategy.plan().bucket_bytes = 25'000'000 + 100'000 * run;
    Session session;
    const auto forecast = Predict(plan.job, plan.machine, *costs, session);
    PLANCAST_CHECK_OK(forecast);
    out.tasks = static_cast<double>(forecast->result.counters.materialised_tasks);
    out.iteration_s = forecast->iteration_time_s;
  });
  return out;
}

// Simulated plans a second, on one thread, with a session that knows nothing.
Measured Ranking(bool tiny) {
  NamedPlan plan = Llama70bOnH100();
  plan.job.global_batch = 256;
  RankOptions options;
  options.threads = 1;
  options.top = 10;
  if (tiny) {
    const auto space = ParseSearchSpace("tp=8,pp=4,vpp=1,mb=4,recompute=full,zero=1");
    PLANCAST_CHECK_OK(space);
    options.space = *space;
  }
  const auto costs = DefaultKernelCostModel();
  Measured out;
  const double seconds = Median(tiny ? 1 : 3, [&](int) {
    Session session;
    const auto result = Rank(plan.job, plan.machine, *costs, session, options);
    PLANCAST_CHECK_OK(result);
    out.tasks = static_cast<double>(result->evaluated);
  });
  out.value = out.tasks / seconds;
  return out;
}

Measured AlternatingFolded(bool tiny) {
  const ExecutionGraph graph = Alternating(1024, tiny ? 10 : 1000);
  const Machine machine = Cluster(1024, false);
  Measured out;
  out.value = Median(tiny ? 1 : 9, [&](int) {
    const auto result = Execute(graph, machine, UnitCost(), RuntimeParams());
    PLANCAST_CHECK_OK(result);
    out.tasks = static_cast<double>(result->counters.materialised_tasks);
  });
  return out;
}

Measured AlternatingFlat(int nodes, int repeats) {
  return Flat(Alternating(1024, nodes), Cluster(1024, false), UnitCost(), repeats);
}

// Bytes that one more task takes.
Measured FlatGrowth(bool tiny) {
  const Measured small = AlternatingFlat(tiny ? 10 : 500, 1);
  Measured large = AlternatingFlat(tiny ? 20 : 2000, 1);
  // The peak of the process is the larger of both; what the first run left as a
  // peak is not counted again.
  large.value = (small.memory_bytes + large.memory_bytes) / large.tasks;
  return large;
}

constexpr char kPeers[] = "PEERS: measured side by side on one 2-core machine, November 2026";
constexpr char kFormats[] = "FORMATS: measured on 2 cores, November 2026";

}  // namespace

std::vector<SpeedCase> SpeedCases(bool tiny) {
  const int few = tiny ? 1 : 5, many = tiny ? 1 : 20;
  return {
      {"flat event loop, made-up pipeline of 64 GPUs", "tasks/s", true, 5e6, "vTrain", 270e3,
       kPeers,
       [tiny] {
         Measured out = FlatLoop(tiny);
         out.value = out.tasks / out.value;
         return out;
       }},
      {"the same, memory", "B/task", false, 100, "", 0, "",
       [tiny] {
         Measured out = FlatLoop(tiny);
         out.value = out.memory_bytes / out.tasks;
         return out;
       }},
      {"GPT-1.5B, 64 GPUs, TP8 PP4 DP2, 16 micro-batches: flat", "s", false, 0.6, "Proteus", 99,
       kPeers, [few] { return FlatPlan(Gpt1500mOnA100(), few); }},
      {"the same, folded: from job to forecast", "s", false, 0.005, "Proteus", 99, kPeers,
       [many] { return FromJobToForecast(Gpt1500mOnA100(), many); }},
      {"175B, TP4 PP32, 192 micro-batches, 128 GPUs: flat", "s", false, 0.7, "vTrain", 12.4, kPeers,
       [tiny] { return tiny ? FlatPlan(Gpt1500mOnA100(), 1) : FlatPlan(Gpt3At32Stages(1), 3); }},
      {"the same on 512 GPUs, folded: from job to forecast", "s", false, 0.02, "vTrain", 12.4,
       kPeers,
       [tiny, many] {
         return FromJobToForecast(tiny ? Gpt1500mOnA100() : Gpt3At32Stages(4), many);
       }},
      {"530B, TP8 PP35, interleaved 3, batch 280: from job to forecast", "s", false, 0.02,
       "SimuMax", 26, kPeers,
       [tiny, many] {
         return FromJobToForecast(tiny ? Gpt1500mOnA100() : Gpt530bInterleaved(), many);
       }},
      {"Llama-3-405B, 16,384 H100s: from job to forecast", "s", false, 0.02, "", 0, "",
       [tiny, many] { return FromJobToForecast(Llama405b("dgx-h100", tiny ? 2 : 128), many); }},
      {"the same on 131,072 H100s", "s", false, 0.02, "", 0, "",
       [tiny, many] { return FromJobToForecast(Llama405b("dgx-h100", tiny ? 2 : 1024), many); }},
      {"the same in pods of 3,072: 16,384 GPUs", "s", false, 0.02, "", 0, "",
       [tiny, many] {
         return FromJobToForecast(Llama405b("grandteton-h100-80g", tiny ? 2 : 128), many);
       }},
      {"the same in pods of 3,072: 131,072 GPUs", "s", false, 0.02, "", 0, "",
       [tiny, many] {
         return FromJobToForecast(Llama405b("grandteton-h100-80g", tiny ? 2 : 1024), many);
       }},
      {"rank Llama-3-70B on 128 H100s, batch 256, default space", "plans/s", true, 1000, "Calculon",
       190, kPeers, [tiny] { return Ranking(tiny); }},
      {"1,024 ranks x 1,000 nodes, kernel and all-reduce in turn: folded", "s", false, 0.1,
       "ASTRA-sim", 188, kFormats, [tiny] { return AlternatingFolded(tiny); }},
      {"the same, flat", "s", false, 1, "ASTRA-sim", 188, kFormats,
       [tiny] { return AlternatingFlat(tiny ? 10 : 1000, tiny ? 1 : 3); }},
      {"the same, 2,000 nodes, memory", "B/task", false, 100, "", 0, "",
       [tiny] { return FlatGrowth(tiny); }},
  };
}

}  // namespace plancast
