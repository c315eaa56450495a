#ifndef PLANCAST_COMPILER_PROGRAM_SCHEDULE_H_
#define PLANCAST_COMPILER_PROGRAM_SCHEDULE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "graph/execution/execution_graph.h"
#include "strategy/plan_options.h"

namespace plancast {

// One turn of a stage: the forward or backward pass of one micro-batch through
// one chunk (the stage's chunk-th virtual stage).
struct ScheduleStep {
  Phase phase = Phase::kForward;
  int32_t micro_batch = 0;
  int32_t chunk = 0;

  friend bool operator==(const ScheduleStep& a, const ScheduleStep& b) {
    return a.phase == b.phase && a.micro_batch == b.micro_batch && a.chunk == b.chunk;
  }
};

// The order in which each of `stages` stages works off `micro_batches` through
// `chunks` chunks. A schedule is a table: generators below, or a file.
//  - gpipe: all forwards, then all backwards (Huang et al. 2019);
//  - 1f1b: min(stages - stage - 1, M) forwards to warm up, then one forward and
//    one backward in turn (PipeDream-Flush, Narayanan et al. 2021);
//  - interleaved: micro-batches in groups of `stages`, each group through all
//    chunks, (stages - stage - 1) * 2 + (chunks - 1) * stages forwards to warm
//    up (Megatron-LM, Narayanan et al. SC'21). Micro-batches that do not divide
//    are spread over the groups: none is smaller than `stages`, and the largest
//    takes the place of `stages` in the warm-up, or the pipeline would lock up.
class PipelineSchedule {
 public:
  PipelineSchedule(Schedule schedule, int64_t stages, int64_t micro_batches, int64_t chunks);

  std::vector<ScheduleStep> OfStage(int64_t stage) const;
  // Whether two stages have the same.
  bool Same(int64_t stage, int64_t other) const;
  // A line for each stage, for dumps: `stage 0: F0.0 F1.0 B0.0`.
  std::string DebugString() const;

 private:
  int64_t WarmUp(int64_t stage) const;

  const Schedule schedule_;
  const int64_t stages_, micro_batches_, chunks_;
  const int64_t groups_;  // of micro-batches
  // All passes of one phase: stages differ only in how the two interleave.
  std::vector<ScheduleStep> forward_, backward_;
};

std::vector<ScheduleStep> StageSchedule(Schedule schedule, int64_t stages, int64_t stage,
                                        int64_t micro_batches, int64_t chunks);

// `F0.0 F1.0 B0.0 ...` (micro-batch.chunk), for dumps.
std::string ScheduleString(const std::vector<ScheduleStep>& steps);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_PROGRAM_SCHEDULE_H_
