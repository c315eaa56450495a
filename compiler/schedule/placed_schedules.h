#ifndef PLANCAST_COMPILER_SCHEDULE_PLACED_SCHEDULES_H_
#define PLANCAST_COMPILER_SCHEDULE_PLACED_SCHEDULES_H_

#include <cstdint>

#include "strategy/schedule/schedule.h"
#include "strategy/schedule/schedule_table.h"
#include "strategy/schedule/stage_placement.h"

namespace plancast {

// The rules of schedules whose virtual stages are not placed in a loop, as tables. All are made
// for passes of one length (F, B and W of a chunk 1 each); with fewer micro-batches than a rule is
// made for, the steps of the others are left out.
//  - zbv: 2 (p - s) - 1 forward passes through the first chunk of stage s, s through both in turn,
//    p - s passes forward and back through the second, then F and B of both in turn, W where a
//    stage would wait or has 2 p chunks in flight (ZB-V, Qi et al. 2023);
//  - zbvhalf, zbvmin: what a micro-batch does, every 6 passes again: it goes down, up, back down
//    and back up with so many passes from stage to stage that all fit between each other, W as
//    above, with p + 1 (p + 2 where p is even) and 2 (p + 1) / 3 + 2 chunks in flight (V-Half and
//    V-Min, Qi et al. 2024, "Pipeline Parallelism with Controllable Memory", section 3);
//  - dualpipe, dualpipev: the steps of DualPipe (DeepSeek-V3, 2024) and of its half without copies
//    (Sea AI Lab 2025): F of one chunk and the whole backward pass of the other as a pair;
//  - hanayo: p micro-batches at a time, each where the ones before it leave the first room, so that
//    the next p fit behind (waves: Liu et al. SC'23);
//  - chimera: the same through two copies (Li and Hoefler SC'21, direct concatenation).
ScheduleTable TableOfRule(Schedule schedule, const StagePlacement& placement,
                          int64_t micro_batches);

// That of zbvhalf or zbvmin with so many periods more between a micro-batch's last forward and its
// first backward pass, and as many micro-batches more in flight: what others do in between
// (VocabularySchedule) has that time.
ScheduleTable TableOfVBlock(Schedule schedule, int64_t stages, int64_t micro_batches,
                            int64_t periods_later);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_SCHEDULE_PLACED_SCHEDULES_H_
