#ifndef PLANCAST_STRATEGY_SCHEDULE_SCHEDULE_H_
#define PLANCAST_STRATEGY_SCHEDULE_SCHEDULE_H_

#include <cstdint>

#include "base/enum_names.h"

namespace plancast {

// Named as in the strategy language; docs/schedules.md has the rule and the source of each.
// kNone: there is no pipeline. kOngoing: the plan says how much stages have in flight.
// kTable: it lists the order itself. kVaruna, kSearch: the order follows from what the passes take.
enum class Schedule : uint8_t {
  kNone,
  kGpipe,
  k1f1b,
  kInterleaved,
  kEager1f1b,
  kBreadthFirst,
  kZbH1,
  kZb1p,
  kZb2p,
  kZbV,
  kZbVHalf,
  kZbVMin,
  kDualPipe,
  kDualPipeV,
  kHanayo,
  kChimera,
  kOngoing,
  kVaruna,
  kSearch,
  kTable,
};
inline constexpr auto kScheduleNames =
    NamesOf<Schedule>("none", "gpipe", "1f1b", "interleaved", "eager-1f1b", "breadth-first", "zbh1",
                      "zb1p", "zb2p", "zbv", "zbvhalf", "zbvmin", "dualpipe", "dualpipev", "hanayo",
                      "chimera", "ongoing", "varuna", "search", "table");

// Whether a stage may have several chunks of layers under it.
constexpr bool RunsChunks(Schedule schedule) {
  return schedule == Schedule::kInterleaved || schedule == Schedule::kBreadthFirst ||
         schedule == Schedule::kHanayo || schedule == Schedule::kSearch ||
         schedule == Schedule::kTable;
}

// Whether the layers of a model go down the stages and up again (stage_placement.h).
constexpr bool Turns(Schedule schedule) {
  return schedule == Schedule::kZbV || schedule == Schedule::kZbVHalf ||
         schedule == Schedule::kZbVMin || schedule == Schedule::kDualPipeV ||
         schedule == Schedule::kHanayo;
}

// Chunks of a stage where the plan says nothing.
constexpr int64_t UsualChunks(Schedule schedule) { return Turns(schedule) ? 2 : 1; }

// Whether stages hold two copies of the model's layers, one down the stages and one up.
constexpr bool RunsBothWays(Schedule schedule) {
  return schedule == Schedule::kDualPipe || schedule == Schedule::kChimera;
}

// Whether gradients of weights are a pass of their own, W, put off behind the one that makes
// gradients of inputs, B. Of tables, those do that list any.
constexpr bool SplitsBackward(Schedule schedule) {
  return schedule == Schedule::kZbH1 || schedule == Schedule::kZb1p ||
         schedule == Schedule::kZb2p || schedule == Schedule::kZbV ||
         schedule == Schedule::kZbVHalf || schedule == Schedule::kZbVMin ||
         schedule == Schedule::kDualPipe || schedule == Schedule::kDualPipeV;
}

// Whether the order follows from what the passes take: it is found for a plan on a machine.
constexpr bool FollowsTimes(Schedule schedule) {
  return schedule == Schedule::kVaruna || schedule == Schedule::kSearch;
}

// Whether a plan may say how many micro-batches of each stage may be forward and not yet back.
constexpr bool BoundsOngoing(Schedule schedule) {
  return schedule == Schedule::kOngoing || schedule == Schedule::kVaruna;
}

// Whether compute can wait for transfers between stages, sends included, without a deadlock: so
// do the schedules of Megatron-LM. Others run ahead of the stages that they send to.
constexpr bool MayBlock(Schedule schedule) {
  return schedule == Schedule::kNone || schedule == Schedule::kGpipe ||
         schedule == Schedule::k1f1b || schedule == Schedule::kInterleaved;
}

}  // namespace plancast

#endif  // PLANCAST_STRATEGY_SCHEDULE_SCHEDULE_H_
