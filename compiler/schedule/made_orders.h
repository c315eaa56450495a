#ifndef PLANCAST_COMPILER_SCHEDULE_MADE_ORDERS_H_
#define PLANCAST_COMPILER_SCHEDULE_MADE_ORDERS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/schedule/schedule_run.h"
#include "strategy/schedule/schedule_table.h"
#include "strategy/schedule/stage_placement.h"

namespace plancast {

// Orders that are made while they run, from the times of their passes. Of every one: no stage
// keeps more than `memory` of it (PassMemory's unit; empty: all that there is), or it is
// std::nullopt.

// Whether W that was put off runs although something else comes before it ends.
enum class Overrun : uint8_t { kNever, kByHalf, kAlways };

// The steps of a table of F and B with W in between: where a stage would wait, or has no memory
// left for its next step.
std::optional<ScheduleTable> PutOffWeights(const ScheduleTable& whole, int64_t micro_batches,
                                           const PipelineTimes& times,
                                           const std::vector<int64_t>& memory, Overrun overrun);

// One chunk a stage; each stage takes what is there, B before F before W.
struct TakingRule {
  std::vector<int64_t> most_ahead;  // per stage, how many F may be ahead of their B
  bool waits_for_backward = false;  // rather than have a gradient wait for an F to end
  Overrun overrun = Overrun::kNever;
  bool splits_backward = true;
};
std::optional<ScheduleTable> TakeWhatIsThere(int64_t micro_batches, const PipelineTimes& times,
                                             const std::vector<int64_t>& memory,
                                             const TakingRule& rule);

// The order of stages that may have `most` micro-batches in flight (schedule=ongoing), one number a
// stage: as if a forward pass took one unit of time, a whole backward pass two, a transfer none.
ScheduleTable TableOfOngoing(const std::vector<int64_t>& most, int64_t micro_batches);

// Forward passes that each stage of one chunk can do before its first gradient comes, falling by
// at least one from stage to stage. `waits`: only those that end by then.
std::vector<int64_t> WarmUpsByTime(int64_t micro_batches, const PipelineTimes& times, bool waits);

// A table for more micro-batches than it has, with each phase of each chunk in their order: its
// steady state goes on for as long as needed. std::nullopt: it has none that is looked for, or none
// that fits the difference.
std::optional<ScheduleTable> Prolonged(const ScheduleTable& table, const StagePlacement& placement,
                                       int64_t micro_batches);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_SCHEDULE_MADE_ORDERS_H_
