#ifndef PLANCAST_COMPILER_SCHEDULE_SCHEDULE_RUN_H_
#define PLANCAST_COMPILER_SCHEDULE_SCHEDULE_RUN_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "strategy/schedule/schedule_table.h"
#include "strategy/schedule/stage_placement.h"

namespace plancast {

// What the passes of one virtual stage take, in whole units of any kind of time (the planner has
// picoseconds).
struct PassTime {
  int64_t forward = 1;
  // Gradients of inputs, behind `recompute`, and those of weights. `whole`: both where they are
  // one pass; std::nullopt: their sum.
  int64_t backward = 1, weights = 1;
  std::optional<int64_t> whole;
  // What runs again before the backward pass; it waits for no gradient.
  int64_t recompute = 0;

  int64_t WholeBackward() const { return whole.value_or(backward + weights); }
};

// What a micro-batch keeps on a virtual stage, in any unit, from its forward pass to the end of its
// backward pass, and where that leaves gradients of weights, from then to the end of those.
struct PassMemory {
  int64_t activations = 1, for_weights = 1;
};

// A pipeline as tables are timed on it.
struct PipelineTimes {
  StagePlacement placement;        // that of the tables
  std::vector<PassTime> passes;    // per virtual stage, of all copies
  std::vector<PassMemory> memory;  // likewise
  // From stage s to the next (of the last, to the first), and as long back; between stages that are
  // no neighbours the longest of all. Any number of transfers are on their way at once.
  std::vector<int64_t> transfer;
  int64_t all_reduce = 0;  // behind the last step of all

  int64_t stages() const { return placement.stages(); }
  int64_t chunks() const { return placement.chunks(); }  // of a stage, of all copies

  // Every pass of every stage alike.
  static PipelineTimes Equal(const StagePlacement& placement, const PassTime& pass,
                             int64_t transfer = 0);
  // Of stages in a loop.
  static PipelineTimes Equal(int64_t stages, int64_t chunks, const PassTime& pass,
                             int64_t transfer = 0) {
    return Equal(StagePlacement::Loop(stages, chunks), pass, transfer);
  }
};

// One table, run.
struct ScheduleRun {
  int64_t makespan = 0;            // from 0 to the last step of all, and the all-reduce
  int64_t longest_stage = 0;       // the most that a stage takes from its first step to its last
  std::vector<int64_t> most_kept;  // per stage, PassMemory's unit
};

// Runs a table: each stage its steps in their order, each as soon as its input is there. Errors:
// stages that wait for each other, without saying more (CheckSchedule does).
absl::StatusOr<ScheduleRun> RunSchedule(const ScheduleTable& table, int64_t micro_batches,
                                        const PipelineTimes& times);

// The state of such a run, for those who make tables as they go.
class PipelineClock {
 public:
  PipelineClock(const PipelineTimes& times, int64_t micro_batches, bool splits_backward);

  // When the input of a step is there; std::nullopt: it is not known yet.
  std::optional<int64_t> Ready(int64_t stage, const ScheduleStep& step) const;
  // Runs a step whose input is known to come, no earlier than `from`; when it ends.
  int64_t Do(int64_t stage, const ScheduleStep& step, int64_t from = 0);

  int64_t FreeAt(int64_t stage) const { return stages_[stage].free_at; }
  // What is kept while a step of a stage runs.
  int64_t KeptDuring(int64_t stage, const ScheduleStep& step) const;
  int64_t Takes(int64_t stage, const ScheduleStep& step) const;
  ScheduleRun Result() const;

 private:
  struct Stage {
    int64_t free_at = 0, begin = -1, kept = 0, most_kept = 0;
  };

  int64_t VirtualOf(int64_t stage, const ScheduleStep& step) const {
    return placement_.At(stage, step.chunk);
  }
  int64_t& EndOf(Phase phase, int64_t v, int64_t micro_batch) {
    return (phase == Phase::kForward ? forward_ : backward_)[v * micro_batches_ + micro_batch];
  }
  int64_t EndOf(Phase phase, int64_t v, int64_t micro_batch) const {
    return (phase == Phase::kForward ? forward_ : backward_)[v * micro_batches_ + micro_batch];
  }

  const PipelineTimes& times_;
  const StagePlacement& placement_;
  const int64_t micro_batches_;
  const bool splits_;
  std::vector<int64_t> hops_;  // from each virtual stage to the next
  std::vector<Stage> stages_;
  std::vector<int64_t> forward_, backward_;  // when each ended; -1: not yet
};

}  // namespace plancast

#endif  // PLANCAST_COMPILER_SCHEDULE_SCHEDULE_RUN_H_
