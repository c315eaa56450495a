#ifndef PLANCAST_PLANNER_SENSITIVITY_H_
#define PLANCAST_PLANNER_SENSITIVITY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/machine.h"
#include "compiler/session.h"
#include "executor/what_if/what_if.h"
#include "planner/forecast/job.h"
#include "planner/forecast/pricing.h"

namespace plancast {

// One thing changed, and the iteration time that simulating it anew gives.
struct Sensitivity {
  std::string change;  // `nic=2x`
  double iteration_time_s = 0;
};

struct SensitivityTable {
  double iteration_time_s = 0;  // as it is
  std::vector<Sensitivity> rows;
};

// What helps most: rows by iteration time, shortest first, then by name. Without
// `candidates`: each link class, kernel family, purpose and collective of the
// plan and its longest ops twice as fast, communications and launches free too.
absl::StatusOr<SensitivityTable> Sensitivities(const Job& job, const Machine& machine,
                                               const Pricing& pricing, Session& session,
                                               std::vector<WhatIfChange> candidates = {});

}  // namespace plancast

#endif  // PLANCAST_PLANNER_SENSITIVITY_H_
