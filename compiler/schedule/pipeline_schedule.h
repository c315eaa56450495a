#ifndef PLANCAST_COMPILER_SCHEDULE_PIPELINE_SCHEDULE_H_
#define PLANCAST_COMPILER_SCHEDULE_PIPELINE_SCHEDULE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "strategy/schedule/schedule.h"
#include "strategy/schedule/schedule_table.h"

namespace plancast {

// The order in which each of `stages` stages works off `micro_batches` through
// `chunks` chunks: a table, listed by the plan or by a rule (docs/schedules.md).
//  - gpipe: all forwards, then all backwards (Huang et al. 2019);
//  - 1f1b: min(stages - stage - 1, M) forwards to warm up, then one forward and
//    one backward in turn (PipeDream-Flush, Narayanan et al. 2021);
//  - eager-1f1b: 2 (stages - stage) - 1 forwards to warm up, then as 1f1b, so that
//    transfers have time to arrive (Zhuang et al. 2023, section 4);
//  - interleaved: micro-batches in groups (InterleavedGroup), each group through all
//    chunks, (stages - stage - 1) * 2 + (chunks - 1) * group forwards to warm
//    up (Megatron-LM, Narayanan et al. SC'21);
//  - breadth-first: all micro-batches forward through one chunk after another, then
//    all back likewise (Lamy-Poirier 2023);
//  - zbh1, zb1p: as 1f1b, with the gradients of weights (W) of a micro-batch `stage`
//    backward passes behind, so that all stages have as much in flight as the first
//    (ZB-H1 of Qi et al. 2023, which their automatic rule finds, too, for passes of equal
//    length and the memory of 1f1b);
//  - zb2p: 2 (stages - stage - 1) forwards to warm up, W 2 `stage` passes behind: ZB-H2,
//    likewise for twice the memory.
// Those that follow from times (FollowsTimes) have no rule here: plans list what was found.
// `ahead`: forwards that warm up beyond these, of schedules that go forward and back in turn from
// a warm-up of their own (none, 1f1b, interleaved). With one, every F and the B behind it are of
// micro-batches that do not wait for each other (Megatron's get_pp_rank_microbatches adds it where
// passes overlap).
class PipelineSchedule {
 public:
  PipelineSchedule(Schedule schedule, int64_t stages, int64_t micro_batches, int64_t chunks,
                   int64_t ahead = 0);
  explicit PipelineSchedule(ScheduleTable table);

  std::vector<ScheduleStep> OfStage(int64_t stage) const;
  // Whether two stages have the same.
  bool Same(int64_t stage, int64_t other) const;
  // Stages differ by how many forwards warm up, no stage has more than those before it: what one
  // does every stage before it does too.
  bool WarmsUp() const { return schedule_ != Schedule::kTable && !SplitsBackward(schedule_); }
  // A line for each stage, for dumps: `stage 0: F0.0 F1.0 B0.0`.
  std::string DebugString() const;

 private:
  int64_t WarmUp(int64_t stage) const;
  // How many backward passes W comes behind its own.
  int64_t PutOff(int64_t stage) const { return schedule_ == Schedule::kZb2p ? 2 * stage : stage; }

  const Schedule schedule_;
  const int64_t stages_, micro_batches_, chunks_, ahead_;
  const int64_t group_;  // of micro-batches
  // All passes of one phase: stages differ only in how the two interleave.
  std::vector<ScheduleStep> forward_, backward_;
  const ScheduleTable table_;  // of kTable, in place of these
};

// The last passes of a stage, by chunk and phase.
class LastPasses {
 public:
  LastPasses(const std::vector<ScheduleStep>& steps, size_t chunks);
  // Whether step i is the last of its chunk and phase, and not a forward one.
  bool GoesBackAt(size_t i) const { return goes_back_[i]; }

 private:
  std::vector<bool> goes_back_;
};

// One chunk a stage: so many forwards, then one forward and one backward in turn.
ScheduleTable WarmedUp(int64_t micro_batches, const std::vector<int64_t>& warm_ups);

std::vector<ScheduleStep> StageSchedule(Schedule schedule, int64_t stages, int64_t stage,
                                        int64_t micro_batches, int64_t chunks);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_SCHEDULE_PIPELINE_SCHEDULE_H_
