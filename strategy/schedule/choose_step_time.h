#ifndef PLANCAST_STRATEGY_SCHEDULE_CHOOSE_STEP_TIME_H_
#define PLANCAST_STRATEGY_SCHEDULE_CHOOSE_STEP_TIME_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "strategy/plan_options.h"
#include "strategy/short_form.h"
#include "strategy/software_profile.h"

namespace plancast {

// Settles when weights are updated (`optimizer=`), after all else. Sentences for people are added
// to `notes` (nullptr: wanted by nobody). Errors: what contradicts it.
absl::Status ChooseStepTime(const ShortForm& form, const SoftwareProfile& profile,
                            PlanOptions* options, std::vector<std::string>* notes);

}  // namespace plancast

#endif  // PLANCAST_STRATEGY_SCHEDULE_CHOOSE_STEP_TIME_H_
