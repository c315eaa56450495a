// From a job to its forecast, for every schedule: the least CPU time of several runs, with a
// session that knows nothing, and the forecast itself, so that two builds can be compared.
//
//   schedule_speed [--runs=N] [WORD...]   only lines that hold one of the words ("vpp=3 ": at the
//                                         end of a name)

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "benchmarks/plans.h"
#include "compiler/session.h"
#include "planner/forecast/predict.h"

namespace plancast {
namespace {

double CpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

void Run(const NamedPlan& plan, const std::string& name, int runs) {
  const auto costs = DefaultKernelCostModel();
  double least = std::numeric_limits<double>::infinity(), iteration_s = 0;
  int64_t tasks = 0;
  for (int run = 0; run < runs; ++run) {
    const double begin = CpuSeconds();
    Session session;
    const auto forecast = Predict(plan.job, plan.machine, *costs, session);
    PLANCAST_CHECK_OK(forecast);
    least = std::min(least, CpuSeconds() - begin);
    iteration_s = forecast->iteration_time_s;
    tasks = forecast->result.counters.materialised_tasks;
  }
  std::printf("%-58s %8.2f ms %9lld tasks  %.12f s\n", name.c_str(), least * 1e3,
              static_cast<long long>(tasks), iteration_s);
  std::fflush(stdout);
}

void RunAll(int runs, const std::vector<std::string>& words) {
  const auto wanted = [&](const std::string& name) {
    return words.empty() || std::any_of(words.begin(), words.end(), [&](const std::string& word) {
             return absl::StrContains(name + " ", word);
           });
  };
  const auto run = [&](const std::string& name, const auto& make) {
    if (wanted(name)) Run(make(), name, runs);
  };
  const char* const kSchedules[] = {"schedule=1f1b",        "schedule=gpipe",
                                    "schedule=eager-1f1b",  "schedule=chimera",
                                    "schedule=zbh1",        "schedule=zbvmin",
                                    "schedule=hanayo",      "schedule=zb2p",
                                    "schedule=search:2",    "schedule=dualpipev",
                                    "schedule=dualpipe",    "schedule=zbv",
                                    "schedule=search",      "schedule=varuna",
                                    "schedule=zbvhalf",     "vpp=3",
                                    "vpp=3,recompute=full", "vpp=3,schedule=breadth-first",
                                    "recompute=full",       "schedule=gpipe,recompute=full"};
  for (const int batch : {64, 512}) {
    for (const char* const schedule : kSchedules) {
      run(absl::StrCat("gpt3 ", batch, " ", schedule),
          [&] { return Gpt3AtEightStages(schedule, batch); });
    }
  }
  run("530b vpp=1", [] { return Gpt530b(/*vpp=*/1); });
  run("530b vpp=3", [] { return Gpt530b(/*vpp=*/3); });
  run("405b 16k", [] { return Llama405b("dgx-h100", 128); });
  run("405b 131k", [] { return Llama405b("dgx-h100", 1024); });
  run("405b pods 16k", [] { return Llama405b("grandteton-h100-80g", 128); });
  run("405b pods 131k", [] { return Llama405b("grandteton-h100-80g", 1024); });
  run("70b interleaved", [] { return Llama70bInterleaved(); });
}

}  // namespace
}  // namespace plancast

int main(int argc, char** argv) {
  int runs = 5;
  std::vector<std::string> words;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (absl::StartsWith(word, "--runs=")) {
      runs = std::max(1, std::atoi(word.c_str() + 7));
    } else {
      words.push_back(word);
    }
  }
  plancast::RunAll(runs, words);
  return 0;
}
