#ifndef PLANCAST_PLANNER_FORECAST_RUN_PARAMETERS_H_
#define PLANCAST_PLANNER_FORECAST_RUN_PARAMETERS_H_

#include "cluster/machine.h"
#include "executor/runtime.h"
#include "graph/execution/memory_overhead.h"
#include "strategy/software_profile.h"

namespace plancast {

// How a framework runs, as the executor reads it, on hosts of `machine` (of several sections, the
// slowest).
RuntimeParams RuntimeOf(const SoftwareProfile& profile, const Machine& machine);

// What it takes of memory beside tensors, on devices of `machine`.
MemoryOverhead OverheadOn(const SoftwareProfile& profile, const Machine& machine);

}  // namespace plancast

#endif  // PLANCAST_PLANNER_FORECAST_RUN_PARAMETERS_H_
