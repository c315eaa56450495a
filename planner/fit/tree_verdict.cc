#include "planner/fit/tree_verdict.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "executor/memory/replay.h"
#include "planner/forecast/describe.h"
#include "planner/forecast/host_memory.h"
#include "planner/forecast/plan_graph.h"

namespace plancast {
namespace {

int32_t StageOf(const ExecutionGraph& graph, const Program& program) {
  if (program.stage_mesh >= 0) return program.stage_mesh;
  const absl::StatusOr<int> pp = graph.mesh.FindAxis("pp");
  for (const auto& [axis, coordinate] : program.where) {
    if (pp.ok() && axis == *pp) return static_cast<int32_t>(coordinate);
  }
  return 0;
}

}  // namespace

absl::StatusOr<FitVerdict> VerdictOnTree(const Job& job, const Machine& machine,
                                         const Pricing& pricing, Session& session) {
  ASSIGN_OR_RETURN(const PlanGraph plan, DrawAndCompile(job, machine, session, &pricing));
  const ExecutionGraph& graph = *plan.execution;
  const std::vector<ClassMemory> memory =
      ReplayMemory(graph, pricing.Runtime(job.profile, machine));
  RETURN_IF_ERROR(CheckHostMemory(graph, machine, memory));
  const auto fullest = std::max_element(memory.begin(), memory.end(), LessFull);
  if (fullest == memory.end()) return absl::InternalError("a plan without devices");
  Forecast forecast;
  FillPeak(machine, *fullest, &forecast);
  FitVerdict verdict;
  verdict.device_bytes = forecast.peak_memory_bytes;
  verdict.capacity_bytes = static_cast<int64_t>(forecast.memory_capacity_bytes);
  verdict.fits = static_cast<double>(verdict.device_bytes) <= forecast.memory_capacity_bytes;
  verdict.stage = StageOf(graph, graph.programs[fullest - memory.begin()]);
  return verdict;
}

}  // namespace plancast
