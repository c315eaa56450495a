#ifndef PLANCAST_COMPILER_SCHEDULE_PAIR_STEPS_H_
#define PLANCAST_COMPILER_SCHEDULE_PAIR_STEPS_H_

#include "strategy/schedule/schedule_table.h"
#include "strategy/schedule/stage_placement.h"

namespace plancast {

// A table whose stages can run it, with each F that is directly followed by B of another
// micro-batch as a pair with it (ScheduleStep::pairs): Megatron's combined 1F1B
// (megatron/core/pipeline_parallel/combined_1f1b.py), the F&B of DeepSeek's DualPipe. Both steps
// end together, so what one hands on may come too late for what the other needs; where the stages
// would wait for each other, the first of them that can runs its F by itself.
ScheduleTable WithPairs(ScheduleTable table, const StagePlacement& placement);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_SCHEDULE_PAIR_STEPS_H_
