#ifndef PLANCAST_COMPILER_BODY_SPLIT_BACKWARD_H_
#define PLANCAST_COMPILER_BODY_SPLIT_BACKWARD_H_

#include <vector>

#include "compiler/body/body_plan.h"

namespace plancast {

// Some of the steps of a backward pass, each with the group that it is launched in.
struct StepsInGroups {
  std::vector<PlanStep> steps;
  std::vector<int> groups;
};

// A backward pass in two: the gradients of what came in, which the module before waits for, and
// those of weights, which nobody waits for but the optimizer (Qi et al. 2023, section 2).
struct BackwardHalves {
  StepsInGroups inputs;    // B
  StepsInGroups weights;   // W; empty: there is nothing to put off, or nobody waits for B
  std::vector<int> reads;  // activations and gradients that live from B to W, each once
};

// Before steps are left out that run on other ranks (placed_plan.h): notes what W is not, so that
// no exchange is in B on one rank and in W on another.
void MarkAwaited(BodyPlan* plan);

// W is all that no gradient of an in-port depends on, in whole groups (`groups`: of the steps of
// plan.backward). What runs again (Part::kRecompute) does so once, in B.
BackwardHalves SplitBackward(const BodyPlan& plan, const std::vector<int>& groups);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_BODY_SPLIT_BACKWARD_H_
