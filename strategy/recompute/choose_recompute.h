#ifndef PLANCAST_STRATEGY_RECOMPUTE_CHOOSE_RECOMPUTE_H_
#define PLANCAST_STRATEGY_RECOMPUTE_CHOOSE_RECOMPUTE_H_

#include <string>

#include "absl/status/status.h"
#include "strategy/plan_options.h"
#include "strategy/short_form.h"
#include "strategy/software_profile.h"

namespace plancast {

// What `form` says is recomputed, else what the profile means by it, into `options`, whose
// sharding and offloading are settled.
// Errors: words that are no set of ops; layers joined (uniform:N) that are sharded or
// offloaded one by one.
absl::Status ChooseRecompute(const ShortForm& form, const SoftwareProfile& profile,
                             PlanOptions* options);

// As the short form says it.
std::string RecomputeText(const PlanOptions& options);

}  // namespace plancast

#endif  // PLANCAST_STRATEGY_RECOMPUTE_CHOOSE_RECOMPUTE_H_
