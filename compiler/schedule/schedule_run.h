#ifndef PLANCAST_COMPILER_SCHEDULE_SCHEDULE_RUN_H_
#define PLANCAST_COMPILER_SCHEDULE_SCHEDULE_RUN_H_

#include <algorithm>
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

// The same of a table that takes no longer than `most`; std::nullopt: it does, or cannot be run.
std::optional<ScheduleRun> RunWithin(int64_t most, const ScheduleTable& table,
                                     int64_t micro_batches, const PipelineTimes& times);

// The state of such a run, for those who make tables as they go.
class PipelineClock {
 public:
  PipelineClock(const PipelineTimes& times, int64_t micro_batches, bool splits_backward);

  // When the input of a step is there; std::nullopt: it is not known yet.
  std::optional<int64_t> Ready(int64_t stage, const ScheduleStep& step) const {
    const int64_t ready = ReadyAt(At(stage, step), step);
    return ready < 0 ? std::nullopt : std::make_optional(ready);
  }
  // Runs a step whose input is known to come, no earlier than `from`; when it ends.
  int64_t Do(int64_t stage, const ScheduleStep& step, int64_t from = 0) {
    const VirtualStage& at = At(stage, step);
    return Do(at, step, ReadyAt(at, step), from);
  }
  // The same if its input is known to come by now, else false.
  bool TryDo(int64_t stage, const ScheduleStep& step) {
    const VirtualStage& at = At(stage, step);
    const int64_t ready = ReadyAt(at, step);
    if (ready < 0) return false;
    Do(at, step, ready, 0);
    return true;
  }

  int64_t FreeAt(int64_t stage) const { return stages_[stage].free_at; }
  // What is kept while a step of a stage runs.
  int64_t KeptDuring(int64_t stage, const ScheduleStep& step) const {
    return stages_[stage].kept + At(stage, step).keeps[static_cast<int>(step.phase)];
  }
  int64_t Takes(int64_t stage, const ScheduleStep& step) const {
    return At(stage, step).takes[static_cast<int>(step.phase)];
  }
  ScheduleRun Result() const;

 private:
  static constexpr int kPhases = 3;  // F, B, W: the first of Phase
  struct Stage {
    int64_t free_at = 0, begin = -1, kept = 0, most_kept = 0;
  };
  // One, as its passes ask for it: where its inputs come from, with what transfers take.
  struct VirtualStage {
    int64_t stage = 0;
    // Per phase: what it takes, what it keeps more while it runs, and what more is kept after it.
    int64_t takes[kPhases] = {}, keeps[kPhases] = {}, leaves[kPhases] = {};
    int64_t recompute = 0;
    // Ends of its own passes, and of those before it (-1: none), in ends_.
    int64_t forward = 0, backward = 0, before_forward = -1, before_backward = -1;
    int64_t hop_forward = 0, hop_backward = 0;
  };

  const VirtualStage& At(int64_t stage, const ScheduleStep& step) const {
    return at_[stage * chunks_ + step.chunk];
  }
  // -1: not known yet.
  int64_t ReadyAt(const VirtualStage& at, const ScheduleStep& step) const {
    const int64_t m = step.micro_batch;
    if (step.phase == Phase::kForward) {
      if (at.before_forward < 0) return 0;
      const int64_t end = ends_[at.before_forward + m];
      return end < 0 ? -1 : end + at.hop_forward;
    }
    if (step.phase != Phase::kBackward) return ends_[at.backward + m];
    const int64_t forward = ends_[at.forward + m];
    if (forward < 0 || at.before_backward < 0) return forward;
    const int64_t end = ends_[at.before_backward + m];
    return end < 0 ? -1 : end + at.hop_backward;
  }
  int64_t Do(const VirtualStage& at, const ScheduleStep& step, int64_t ready, int64_t from);

  const int64_t chunks_, all_reduce_;
  std::vector<Stage> stages_;
  std::vector<VirtualStage> at_;  // per stage and chunk
  // When each pass ended, forward ones of each virtual stage and then backward ones; -1: not yet.
  std::vector<int64_t> ends_;
};

}  // namespace plancast

#endif  // PLANCAST_COMPILER_SCHEDULE_SCHEDULE_RUN_H_
