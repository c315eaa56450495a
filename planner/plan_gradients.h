#ifndef PLANCAST_PLANNER_PLAN_GRADIENTS_H_
#define PLANCAST_PLANNER_PLAN_GRADIENTS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/machine.h"
#include "compiler/session.h"
#include "executor/gradients/gradient_traffic.h"
#include "planner/forecast/job.h"
#include "planner/forecast/pricing.h"
#include "planner/uncertainty/uncertainty.h"

namespace plancast {

// What one data-parallel worker of a plan computes, unit by unit: an op with parameters and what
// runs up to it (forward) or from it on (backward), gaps in which the host launches included.
struct PlanGradients {
  std::vector<GradientUnit> units;  // in the order of the forward pass
  int64_t passes = 1;               // of an iteration (accum)
  int64_t fixed_ps = 0;             // of an iteration, before its first pass
  SoftwareLevel level;              // what runs take beyond what is simulated
};

// `job`'s strategy is that of one worker, whatever dp is. Errors: a plan in which a worker has
// several devices or keeps a part of what it trains; a mixed machine; what prediction returns.
absl::StatusOr<PlanGradients> GradientsOf(const Job& job, const Machine& machine,
                                          const Pricing& pricing, Session& session);

}  // namespace plancast

#endif  // PLANCAST_PLANNER_PLAN_GRADIENTS_H_
