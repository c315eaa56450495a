#ifndef PLANCAST_PLANNER_FIT_STAGE_OBSERVER_H_
#define PLANCAST_PLANNER_FIT_STAGE_OBSERVER_H_

#include <cstdint>

#include "compiler/program/block_catalogue.h"
#include "compiler/program_plan.h"
#include "graph/execution/program_outline.h"

namespace plancast {

// Sees the plans that FitCheck finds to fit.
class StageObserver {
 public:
  virtual ~StageObserver() = default;
  // What follows is about this plan, which lives until the verdict.
  virtual void Begin(const ProgramPlan& plan) = 0;
  // The program of a stage with as few micro-batches as its memory needs to repeat itself;
  // `outline` numbers blocks of `catalogue`. Stages ascend; one that is not seen does per
  // micro-batch what the one before it does.
  virtual void See(int64_t stage, const ProgramOutline& outline,
                   const BlockCatalogue& catalogue) = 0;
  // Blocks that outlived their catalogue are gone.
  virtual void Forget() = 0;
};

}  // namespace plancast

#endif  // PLANCAST_PLANNER_FIT_STAGE_OBSERVER_H_
