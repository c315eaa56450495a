#ifndef PLANCAST_COMPILER_LOWER_DESCRIBE_LOOP_H_
#define PLANCAST_COMPILER_LOWER_DESCRIBE_LOOP_H_

#include "compiler/body/body_plan.h"
#include "compiler/lower/kernels/lower_kernel.h"
#include "compiler/lower/lower_block.h"

namespace plancast {

// Fills in what a loop of the block has from the plan's loop that `step` is of, and, where it is a
// ring over cp, from the software: tasks and kernels are left as they are.
void DescribeLoop(const LowerContext& context, const BodyPlan& plan, const PlanStep& step,
                  BlockTemplate::Loop* loop);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_LOWER_DESCRIBE_LOOP_H_
