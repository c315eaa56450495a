#ifndef PLANCAST_PLANNER_PLAN_PHASES_H_
#define PLANCAST_PLANNER_PLAN_PHASES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "cluster/machine.h"
#include "compiler/session.h"
#include "planner/forecast/pricing.h"
#include "planner/predict_jobs.h"

namespace plancast {

// One iteration of a placed plan by itself, as the network between hosts sees it, with what runs
// of its software take beyond the simulation (Pricing::Level). Times are of the class of devices
// that is on the network longest.
struct PlanPhases {
  int64_t iteration_ps = 0;
  int64_t network_ps = 0;     // while something of it crosses interfaces
  int64_t overlapped_ps = 0;  // of that, while kernels run
  double busy_ps = 0;         // while kernels run, on average over its devices
  double host_bytes = 0;      // that a host sends over its interfaces, on average over its hosts
};

// Errors: as PredictJobs().
absl::StatusOr<PlanPhases> PhasesOf(const JobRequest& request, const Machine& machine,
                                    const Pricing& pricing, Session& session);

}  // namespace plancast

#endif  // PLANCAST_PLANNER_PLAN_PHASES_H_
