#ifndef PLANCAST_STRATEGY_CHOOSE_CONTEXT_PARALLEL_H_
#define PLANCAST_STRATEGY_CHOOSE_CONTEXT_PARALLEL_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "strategy/choose_plan.h"
#include "strategy/plan_options.h"
#include "strategy/short_form.h"
#include "strategy/software_profile.h"

namespace plancast {

// Settles how attention works over cp ranks, behind the mesh and tensor parallelism. `notes`: what
// has no effect; null: nobody reads it. Errors: a model without a sequence, a sequence that does
// not divide, fewer heads than a type cuts, hybrids that do not fit cp.
absl::Status ChooseContextParallel(const ShortForm& form, const PlanContext& context,
                                   const SoftwareProfile& profile, PlanOptions* options,
                                   std::vector<std::string>* notes);

}  // namespace plancast

#endif  // PLANCAST_STRATEGY_CHOOSE_CONTEXT_PARALLEL_H_
