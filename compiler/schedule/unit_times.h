#ifndef PLANCAST_COMPILER_SCHEDULE_UNIT_TIMES_H_
#define PLANCAST_COMPILER_SCHEDULE_UNIT_TIMES_H_

#include <cstdint>
#include <vector>

#include "strategy/schedule/schedule_table.h"
#include "strategy/schedule/stage_placement.h"

namespace plancast {

// A step, and when it begins: every pass through a chunk takes 1.
struct TimedStep {
  int64_t time = 0;
  ScheduleStep step;
};
using TimedSteps = std::vector<std::vector<TimedStep>>;  // of each stage, in any order

// What `block` does with its `group` micro-batches, every `period` again with the next ones, in
// the order of times, without micro-batches that there are not.
std::vector<std::vector<ScheduleStep>> Repeated(const TimedSteps& block, int64_t group,
                                                int64_t period, int64_t micro_batches);

// Micro-batches through their copies, forward and back, each pass as soon as its input is there
// and no pass of the micro-batches before it, or of other groups `period` away, takes that time.
TimedSteps PackedChains(const StagePlacement& placement, int64_t micro_batches, int64_t period);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_SCHEDULE_UNIT_TIMES_H_
