#ifndef PLANCAST_PLANNER_SEARCH_OBJECTIVE_H_
#define PLANCAST_PLANNER_SEARCH_OBJECTIVE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cluster/machine.h"
#include "planner/forecast/forecast.h"

namespace plancast {

// What makes a plan better. All objectives are per iteration of one batch, so
// plans of a ranking are comparable; none is less where the iteration takes longer.
enum class Objective : uint8_t { kTime, kCost, kEnergy };
absl::StatusOr<Objective> ParseObjective(absl::string_view name);

double ValueOf(const Forecast& forecast, Objective objective);

// Errors: what the objective needs of some device of the machine is not known.
absl::Status CheckObjective(const Machine& machine, Objective objective);

}  // namespace plancast

#endif  // PLANCAST_PLANNER_SEARCH_OBJECTIVE_H_
