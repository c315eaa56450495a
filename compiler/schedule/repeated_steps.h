#ifndef PLANCAST_COMPILER_SCHEDULE_REPEATED_STEPS_H_
#define PLANCAST_COMPILER_SCHEDULE_REPEATED_STEPS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "strategy/schedule/schedule_table.h"

namespace plancast {

// Steps [begin, end) of a stage, in turns of `length` steps: each is like the one `length` before
// it, for micro-batches that many later.
struct RepeatedSteps {
  size_t begin = 0, end = 0, length = 0;
  int32_t micro_batches = 0;

  size_t turns() const { return (end - begin) / length; }
};

// The longest such stretch around the middle. A turn is of `most_micro_batches` at most, and four
// fit into the first `until` steps; none: nothing is repeated.
std::optional<RepeatedSteps> FindRepeatedSteps(const std::vector<ScheduleStep>& steps, size_t until,
                                               int64_t most_micro_batches);

// What a stage does with fewer micro-batches, so that its memory says all about all of them.
struct ShortOrder {
  std::vector<ScheduleStep> steps;
  // Steps [begin, end) are a turn of so many micro-batches that would come again and again behind
  // itself; equal: none is left out.
  size_t turn_begin = 0, turn_end = 0;
  int32_t turn_micro_batches = 0;

  bool leaves_out() const { return turn_end > turn_begin; }
};

// The steps without turns in the middle of those that are repeated. The first turns stay (in which
// micro-batches of both copies of a model begin, and gradients are made), and all steps before
// `first`; so does the last turn (of the last passes of its chunks). Where no turn can go all stay.
ShortOrder Shortened(std::vector<ScheduleStep> steps, size_t first, int64_t most_micro_batches);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_SCHEDULE_REPEATED_STEPS_H_
