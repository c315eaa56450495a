#ifndef PLANCAST_STRATEGY_SCHEDULE_CHECK_SCHEDULE_H_
#define PLANCAST_STRATEGY_SCHEDULE_CHECK_SCHEDULE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "strategy/schedule/schedule_table.h"

namespace plancast {

// What a table must list: every micro-batch through every chunk of every stage, once each phase.
// Of copies of the model each has as many chunks, and its own micro-batches (stage_placement.h).
struct ScheduleShape {
  int64_t stages = 1, micro_batches = 1, chunks = 1;
};

// Checks that the stages can run a table together, and gives the most passes that each has in
// flight (forward and not yet all the way back, one for each micro-batch and chunk). A table that
// lists any W lists one for each B.
//
// Virtual stages run where the table's placement says. A stage does one step after another.
// Between stages there is one queue for each direction and phase: a stage hands results on in the
// order of its steps and takes inputs in the order of its steps, and a transfer runs when it is
// first in both queues. A pair waits for the inputs of both its steps and hands both results on
// behind it.
//
// Errors, each with stage and position (both from 0) and what would be right: a placement of other
// stages or chunks; another number of stages; micro-batches or chunks that do not exist; a step
// twice, before the one that it follows, or missing; pairs of other steps; stages that wait for
// each other.
absl::StatusOr<std::vector<int64_t>> CheckSchedule(const ScheduleTable& table,
                                                   const ScheduleShape& shape);

}  // namespace plancast

#endif  // PLANCAST_STRATEGY_SCHEDULE_CHECK_SCHEDULE_H_
