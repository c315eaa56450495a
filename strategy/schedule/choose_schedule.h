#ifndef PLANCAST_STRATEGY_SCHEDULE_CHOOSE_SCHEDULE_H_
#define PLANCAST_STRATEGY_SCHEDULE_CHOOSE_SCHEDULE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "strategy/plan_options.h"
#include "strategy/short_form.h"
#include "strategy/software_profile.h"

namespace plancast {

// Settles vpp and the schedule, after pp and the micro-batches. Sentences for people are added to
// `notes` (nullptr: wanted by nobody). Errors: schedules that contradict vpp; CheckSchedule's.
absl::Status ChooseSchedule(const ShortForm& form, const SoftwareProfile& profile,
                            PlanOptions* options, std::vector<std::string>* notes);

}  // namespace plancast

#endif  // PLANCAST_STRATEGY_SCHEDULE_CHOOSE_SCHEDULE_H_
