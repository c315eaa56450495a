#include "planner/forecast/ranked_prediction.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "base/status_macros.h"
#include "executor/executor.h"
#include "executor/memory/block_profile.h"
#include "executor/memory/replay.h"
#include "graph/execution/program_devices.h"
#include "planner/forecast/describe.h"
#include "planner/forecast/host_memory.h"
#include "planner/forecast/plan_graph.h"

namespace plancast {

absl::StatusOr<Forecast> PredictOneOfMany(const Job& job, const Machine& machine,
                                          const Pricing& pricing, Session& session,
                                          const WantsForecast& wants, GraphWorkspace* workspace) {
  const RuntimeParams runtime = pricing.Runtime(job.profile, machine);
  std::vector<BlockProfile> profiles;
  ClassMemory fullest;
  fullest.capacity = std::numeric_limits<int64_t>::max();
  const auto fits = [&](const ExecutionGraph& made, int32_t program) {
    ProfileNewBlocks(made, runtime.memory.allocator, &profiles);
    ClassMemory memory;
    memory.device = DeviceBytes(made, program, profiles, runtime.memory);
    memory.capacity = CapacityOf(runtime.memory, made, made.programs[program]);
    // What a program always holds, before it has blocks, is taken with a share for fragments,
    // which may be more than where all of its blocks lie.
    if (!made.blocks.empty() && LessFull(fullest, memory)) fullest = memory;
    return memory.device <= memory.capacity;
  };
  const absl::StatusOr<PlanGraph> plan =
      DrawAndCompileInto(job, machine, pricing, session, fits, workspace);
  if (absl::IsResourceExhausted(plan.status())) return Forecast();
  RETURN_IF_ERROR(plan.status());

  Forecast forecast;
  bool wanted = true;
  SimulateOptions simulate;
  simulate.verified = true;  // as the compiler wrote it
  simulate.wanted = [&](int64_t makespan_ps) {
    FillTime(machine, makespan_ps, pricing.Level(job.profile, *plan->graph), &forecast);
    // With runs of the user's own, parts of the time count: known once all is.
    wanted = pricing.learned() != nullptr || wants(forecast);
    return wanted;
  };
  ASSIGN_OR_RETURN(forecast.result,
                   Execute(*plan->execution, machine, pricing.kernels(), runtime, simulate));
  std::vector<std::string> unknown;
  if (!job.strategy.plan().offload.empty()) {
    const std::vector<ClassMemory> memory = ReplayMemory(*plan->execution, runtime);
    if (!CheckHostMemory(*plan->execution, machine, memory).ok()) return Forecast();
    unknown = UnknownHostMemory(*plan->execution, machine, memory);
  }
  FillPeak(machine, fullest, &forecast);
  forecast.fits = true;  // each program was looked at while it was compiled
  if (!wanted) return forecast;
  RETURN_IF_ERROR(Describe(job, machine, *plan, session, &forecast));
  FillInterval(job.profile, pricing.learned(), &forecast);
  if (pricing.learned() != nullptr && !wants(forecast)) return forecast;
  FillWarnings(job, machine, *plan, &forecast);
  absl::c_move(unknown, std::back_inserter(forecast.warnings));
  return forecast;
}

}  // namespace plancast
