#ifndef PLANCAST_STRATEGY_SCHEDULE_CHOOSE_VOCABULARY_H_
#define PLANCAST_STRATEGY_SCHEDULE_CHOOSE_VOCABULARY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "strategy/plan_options.h"
#include "strategy/short_form.h"

namespace plancast {

// Settles options->vocab_parallel, after all else, for a model with so large a vocabulary (0:
// none); `redis` is ChooseLayout's. Errors: a model without one. Adds to `notes`, if that is not
// null, what has no effect.
absl::Status ChooseVocabulary(const ShortForm& form, int64_t vocabulary, PlanOptions* options,
                              std::vector<std::string>* notes);

}  // namespace plancast

#endif  // PLANCAST_STRATEGY_SCHEDULE_CHOOSE_VOCABULARY_H_
