#ifndef PLANCAST_PLANNER_FIT_ADVICE_H_
#define PLANCAST_PLANNER_FIT_ADVICE_H_

#include <string>
#include <vector>

#include "planner/plan_graph.h"
#include "planner/predict.h"

namespace plancast {

// For a plan that does not fit: what the fullest stage needs and the smallest
// single changes of the plan that do fit, by replaying their memory.
std::string FitAdvice(const Job& job, const Machine& machine, const PlanGraph& plan,
                      const std::vector<ClassMemory>& memory, const RuntimeParams& runtime,
                      Session& session);

}  // namespace plancast

#endif  // PLANCAST_PLANNER_FIT_ADVICE_H_
