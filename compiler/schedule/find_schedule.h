#ifndef PLANCAST_COMPILER_SCHEDULE_FIND_SCHEDULE_H_
#define PLANCAST_COMPILER_SCHEDULE_FIND_SCHEDULE_H_

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/schedule/schedule_run.h"
#include "strategy/schedule/schedule_table.h"

namespace plancast {

struct SearchOptions {
  // What a stage may keep at most, PassMemory's unit; empty: as much as there is.
  std::vector<int64_t> memory;
  // Whether tables may list gradients of weights apart, and whether they may leave them in B.
  bool may_split = true, may_leave_whole = true;
  // Which of a run is to be least, before the other: what the slowest stage takes from its first
  // step to its last, as the zero-bubble authors count it (their stages update each by itself), or
  // the makespan.
  bool by_longest_stage = false;

  // What of a run is to be small, the first thing first.
  std::tuple<int64_t, int64_t, int64_t> CostOf(const ScheduleRun& run) const;
};

struct FoundSchedule {
  ScheduleTable table;
  ScheduleRun run;
  std::string from;  // what it is, or was made from: `zb2p`, `1f1b with W in bubbles`
  // The best of the named ones that the memory allows, and its run; empty: none.
  std::string best_named;
  ScheduleRun best_named_run;
};

// The best of many orders by their times: all named ones that `options` allow and that have the
// placement of `times`, these with W put where stages would wait, for stages in a loop warm-ups
// that follow from the times (as in Qi et al. 2023, the automatic schedule), and orders in which
// stages take what is there (PutOffWeights, WarmUpsByTime, TakeWhatIsThere). Of one chunk with many
// micro-batches, those that are not named are looked for with fewer, and their steady state is
// prolonged. The same table for the same request, no worse than the best named one. Errors: no
// order keeps as little as `memory` says, or none has the placement.
absl::StatusOr<FoundSchedule> FindSchedule(int64_t micro_batches, const PipelineTimes& times,
                                           const SearchOptions& options = {});

}  // namespace plancast

#endif  // PLANCAST_COMPILER_SCHEDULE_FIND_SCHEDULE_H_
