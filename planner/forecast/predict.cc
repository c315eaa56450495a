#include "planner/forecast/predict.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "base/status_macros.h"
#include "executor/executor.h"
#include "executor/memory/replay.h"
#include "executor/what_if/slower_choices.h"
#include "planner/forecast/describe.h"
#include "planner/forecast/host_memory.h"
#include "planner/forecast/plan_graph.h"
#include "planner/forecast/tuned_pieces.h"

namespace plancast {
namespace {

void FillMemory(const std::vector<ClassMemory>& memory, const Machine& machine,
                Forecast* forecast) {
  const auto fullest = std::max_element(memory.begin(), memory.end(), LessFull);
  if (fullest != memory.end()) FillPeak(machine, *fullest, forecast);
  forecast->fits =
      static_cast<double>(forecast->peak_memory_bytes) <= forecast->memory_capacity_bytes;
}

// The plan, or what it is changed to, and what random iterations of it take.
absl::Status Simulated(const ExecutionGraph& graph, const Machine& machine,
                       const KernelCostModel& kernels, const RuntimeParams& runtime,
                       const std::vector<ClassMemory>& memory, const PredictOptions& options,
                       Forecast* forecast) {
  SimulateOptions simulate;
  simulate.timeline = options.timeline;
  simulate.shortcuts = options.shortcuts;
  const auto run = [&](const ExecutionGraph& graph, const Machine& machine,
                       const RuntimeParams& runtime,
                       const SimulateOptions& simulate) -> absl::Status {
    ASSIGN_OR_RETURN(forecast->result, Execute(graph, machine, kernels, runtime, simulate));
    if (options.randomness.samples == 0) return absl::OkStatus();
    ASSIGN_OR_RETURN(forecast->distribution, ExecuteSamples(graph, machine, kernels, runtime,
                                                            options.randomness, simulate));
    return absl::OkStatus();
  };
  if (options.what_if.empty()) {
    simulate.memory = &memory;
    simulate.verified = true;  // as the compiler wrote it
    return run(graph, machine, runtime, simulate);
  }
  ASSIGN_OR_RETURN(const ChangedPlan changed,
                   ChangePlan(options.what_if, graph, machine, runtime, simulate));
  ASSIGN_OR_RETURN(const std::vector<std::string> slower,
                   SlowerChoices(graph, machine, changed.machine, runtime));
  forecast->notes.insert(forecast->notes.end(), slower.begin(), slower.end());
  return run(changed.graph, changed.machine, changed.runtime, changed.options);
}

// A plan whose nodes leave pieces open, with those that simulate fastest.
absl::StatusOr<Forecast> PredictTuned(const Job& job, const Machine& machine,
                                      const Pricing& pricing, Session& session,
                                      const PredictOptions& options) {
  constexpr int64_t kMostPieces = 256;
  Job tuned = job;
  std::map<std::string, std::string> chosen;
  const auto time = [&](const StrategyTree& tree) -> absl::StatusOr<int64_t> {
    tuned.strategy = tree;
    ASSIGN_OR_RETURN(const Forecast forecast, Predict(tuned, machine, pricing, session));
    return forecast.result.makespan_ps;
  };
  ASSIGN_OR_RETURN(StrategyTree tree, TunePieces(job.strategy, kMostPieces, time, &chosen));
  tuned.strategy = std::move(tree);
  ASSIGN_OR_RETURN(Forecast forecast, Predict(tuned, machine, pricing, session, options));
  forecast.chosen.insert(chosen.begin(), chosen.end());
  return forecast;
}

}  // namespace

absl::StatusOr<Forecast> Predict(const Job& job, const Machine& machine, const Pricing& pricing,
                                 Session& session, const PredictOptions& options) {
  if (LeavesPiecesOpen(job.strategy)) return PredictTuned(job, machine, pricing, session, options);
  const auto begin = std::chrono::steady_clock::now();
  RuntimeParams runtime = pricing.Runtime(job.profile, machine);
  runtime.chunk_level = options.chunk_level;
  ASSIGN_OR_RETURN(const PlanGraph plan, DrawAndCompile(job, machine, session, &pricing));
  // A program that trains nothing loads no data and logs nothing.
  if (plan.graph->TrainedParameterCount() == 0) runtime.iteration_s = 0;
  Forecast forecast;
  RETURN_IF_ERROR(Describe(job, machine, plan, session, &forecast));
  const std::vector<ClassMemory> memory = ReplayMemory(*plan.execution, runtime);
  FillMemory(memory, machine, &forecast);
  RETURN_IF_ERROR(CheckHostMemory(*plan.execution, machine, memory));
  if (forecast.fits || !options.memory_only_if_unfit) {
    RETURN_IF_ERROR(Simulated(*plan.execution, machine, pricing.kernels(), runtime, memory, options,
                              &forecast));
    if (options.timeline) forecast.timeline_graph = plan.execution;
    if (options.keep_memory_graph) {
      forecast.memory_graph = plan.execution;
      forecast.memory_overhead = runtime.memory;
    }
    FillTime(machine, forecast.result.makespan_ps, pricing.Level(job.profile, *plan.graph),
             &forecast);
    FillInterval(job.profile, pricing.learned(), &forecast);
    FillWarnings(job, machine, plan, &forecast);
    absl::c_move(UnknownHostMemory(*plan.execution, machine, memory),
                 std::back_inserter(forecast.warnings));
  }
  forecast.simulate_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return forecast;
}

}  // namespace plancast
