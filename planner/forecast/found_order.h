#ifndef PLANCAST_PLANNER_FORECAST_FOUND_ORDER_H_
#define PLANCAST_PLANNER_FORECAST_FOUND_ORDER_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/machine.h"
#include "graph/execution/execution_graph.h"
#include "planner/forecast/pricing.h"
#include "strategy/plan_options.h"
#include "strategy/software_profile.h"

namespace plancast {

// The order of the passes of a plan whose schedule follows from what they take (FollowsTimes).
struct FoundOrder {
  size_t plan = 0;             // that it is for, of those that were asked about
  std::string schedule_table;  // PlanOptions
  std::string note;            // what it is and follows from, for people
};

// A plan with other options, compiled.
using CompilePlan =
    std::function<absl::StatusOr<std::shared_ptr<const ExecutionGraph>>(const PlanOptions&)>;

// Compiles a plan with three micro-batches at most, once with gradients of weights in backward
// passes and, for a search, once apart (if the plan can have that), prices and simulates these, and
// makes the order from what single passes take there. A search does so for stages in a loop, layers
// that turn back and two copies, as far as the plan can have them, and takes the best of all.
// `plans`: the plan, and for a search the same with other numbers of chunks, which only turn back.
// Errors: those of the plan itself.
absl::StatusOr<FoundOrder> FindOrder(const std::vector<PlanOptions>& plans,
                                     const SoftwareProfile& profile, const Machine& machine,
                                     const Pricing& pricing, const CompilePlan& compile);

}  // namespace plancast

#endif  // PLANCAST_PLANNER_FORECAST_FOUND_ORDER_H_
