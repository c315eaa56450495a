#ifndef PLANCAST_PLANNER_FIT_ADVICE_H_
#define PLANCAST_PLANNER_FIT_ADVICE_H_

#include <string>
#include <vector>

#include "planner/plan_graph.h"
#include "planner/predict.h"

namespace plancast {

// For a plan that does not fit: what the fullest stage needs, and the single changes of the
// plan that do fit, by a replay of their memory, in the order of their simulated times.
std::string FitAdvice(const Job& job, const Machine& machine, const PlanGraph& plan,
                      const std::vector<ClassMemory>& memory, const KernelCostModel& costs,
                      Session& session, const PredictOptions& options);

}  // namespace plancast

#endif  // PLANCAST_PLANNER_FIT_ADVICE_H_
