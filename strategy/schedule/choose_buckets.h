#ifndef PLANCAST_STRATEGY_SCHEDULE_CHOOSE_BUCKETS_H_
#define PLANCAST_STRATEGY_SCHEDULE_CHOOSE_BUCKETS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "strategy/plan_options.h"
#include "strategy/short_form.h"
#include "strategy/software_profile.h"

namespace plancast {

// Settles how large buckets of gradients are (`bucket=`, `first_bucket=`), after what overlaps
// and when weights are updated. Sentences for people are added to `notes` (nullptr: wanted by
// nobody). Errors: a first bucket of its own where software has none.
absl::Status ChooseBuckets(const ShortForm& form, const SoftwareProfile& profile,
                           PlanOptions* options, std::vector<std::string>* notes);

}  // namespace plancast

#endif  // PLANCAST_STRATEGY_SCHEDULE_CHOOSE_BUCKETS_H_
