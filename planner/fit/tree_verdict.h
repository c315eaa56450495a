#ifndef PLANCAST_PLANNER_FIT_TREE_VERDICT_H_
#define PLANCAST_PLANNER_FIT_TREE_VERDICT_H_

#include "absl/status/statusor.h"
#include "cluster/machine.h"
#include "compiler/session.h"
#include "planner/fit/fits.h"
#include "planner/forecast/job.h"
#include "planner/forecast/pricing.h"

namespace plancast {

// FitVerdict of a whole strategy, whatever its nodes and stages say: the plan is compiled and its
// memory replayed, and no time simulated. Errors: Predict's; pieces that simulating would choose.
absl::StatusOr<FitVerdict> VerdictOnTree(const Job& job, const Machine& machine,
                                         const Pricing& pricing, Session& session);

}  // namespace plancast

#endif  // PLANCAST_PLANNER_FIT_TREE_VERDICT_H_
