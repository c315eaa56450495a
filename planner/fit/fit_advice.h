#ifndef PLANCAST_PLANNER_FIT_FIT_ADVICE_H_
#define PLANCAST_PLANNER_FIT_FIT_ADVICE_H_

#include <string>

#include "absl/status/statusor.h"
#include "cluster/machine.h"
#include "compiler/session.h"
#include "planner/forecast/job.h"
#include "planner/forecast/pricing.h"

namespace plancast {

// For a plan that does not fit: what the fullest stage needs, and the single changes of the
// plan that do fit, by a replay of their memory, in the order of their simulated times.
// Takes as long as a few forecasts, so it is made when it is read. Errors: Predict's.
absl::StatusOr<std::string> FitAdvice(const Job& job, const Machine& machine,
                                      const Pricing& pricing, Session& session);

}  // namespace plancast

#endif  // PLANCAST_PLANNER_FIT_FIT_ADVICE_H_
