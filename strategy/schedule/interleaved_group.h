#ifndef PLANCAST_STRATEGY_SCHEDULE_INTERLEAVED_GROUP_H_
#define PLANCAST_STRATEGY_SCHEDULE_INTERLEAVED_GROUP_H_

#include <cstdint>

namespace plancast {

// Micro-batches that the interleaved schedule takes through all chunks at a time: the fewest, no
// fewer than stages, of which none are left over or again no fewer than stages; all, where there
// are fewer. Megatron-Core runs no others (schedules.py; its microbatch_group_size_per_vp_stage is
// the number of stages unless it is said). PyTorch's rounds, where it has any for so many, are
// these, too (torch/distributed/pipelining/schedules.py, ScheduleInterleaved1F1B).
constexpr int64_t InterleavedGroup(int64_t stages, int64_t micro_batches) {
  if (micro_batches <= stages) return micro_batches < 1 ? 1 : micro_batches;
  int64_t group = stages;
  while (micro_batches % group != 0 && micro_batches % group < stages) {
    // Of larger groups, if there are no fewer of them, less is left over: none, or too little.
    const int64_t groups = micro_batches / group;
    group = micro_batches / groups + (micro_batches % groups == 0 ? 0 : 1);
  }
  return group;
}

}  // namespace plancast

#endif  // PLANCAST_STRATEGY_SCHEDULE_INTERLEAVED_GROUP_H_
