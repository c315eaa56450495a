#ifndef PLANCAST_PLANNER_FIT_NEAREST_PLAN_H_
#define PLANCAST_PLANNER_FIT_NEAREST_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/machine.h"
#include "compiler/session.h"
#include "planner/forecast/job.h"
#include "planner/forecast/pricing.h"
#include "strategy/short_form.h"

namespace plancast {

// Of plans that do not fit the one that needs least, the first of equals.
struct NearestPlan {
  std::string strategy;
  int64_t device_bytes = 0, capacity_bytes = 0;
  std::string advice;  // FitAdvice: what it needs, and which change of it fits
};

// Nothing if none of `plans` is simulated at all. Of many plans only the most frugal are
// looked at: the largest stage of ZeRO, the smallest micro-batch and the most recomputation
// that there is for their sizes.
absl::StatusOr<std::optional<NearestPlan>> FindNearestPlan(const Job& job, const Machine& machine,
                                                           const Pricing& pricing, Session& session,
                                                           const std::vector<ShortForm>& plans);

}  // namespace plancast

#endif  // PLANCAST_PLANNER_FIT_NEAREST_PLAN_H_
