#ifndef PLANCAST_PLANNER_FORECAST_PASS_TIMES_H_
#define PLANCAST_PLANNER_FORECAST_PASS_TIMES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/machine.h"
#include "compiler/schedule/schedule_run.h"
#include "executor/executor.h"
#include "graph/execution/execution_graph.h"
#include "planner/forecast/pricing.h"
#include "strategy/schedule/schedule_table.h"
#include "strategy/schedule/stage_placement.h"

namespace plancast {

// The plan that passes are measured in: all forward passes, then all backward ones, each with its
// gradients of weights behind it (`splits`) or in it.
ScheduleTable MeasuredTable(const StagePlacement& placement, int64_t micro_batches, bool splits);

// What of a plan by MeasuredTable takes how long, picoseconds, and what it keeps, bytes.
struct MeasuredPasses {
  // Of passes in the middle of the iteration, from a pass's first kernel to its last on the slowest
  // devices of a stage, collectives between them included. Where backward passes are whole, they
  // are PassTime::backward. `all_reduce`: from the last pass of all to the optimizer's step.
  PipelineTimes times;
  std::vector<int64_t> room;  // per stage: bytes that its devices have for activations
};
absl::StatusOr<MeasuredPasses> MeasurePasses(const ExecutionGraph& graph,
                                             const StagePlacement& placement, int64_t micro_batches,
                                             const Machine& machine, const Pricing& pricing,
                                             const RuntimeParams& runtime);

}  // namespace plancast

#endif  // PLANCAST_PLANNER_FORECAST_PASS_TIMES_H_
