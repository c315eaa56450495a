#ifndef PLANCAST_COMPILER_SCHEDULE_VARUNA_ORDER_H_
#define PLANCAST_COMPILER_SCHEDULE_VARUNA_ORDER_H_

#include <cstdint>

#include "compiler/schedule/schedule_run.h"
#include "strategy/schedule/schedule_table.h"

namespace plancast {

// The order that Varuna's rule comes to (Athlur et al., EuroSys'22, and its released simulator):
// backward before recomputation (R) before forward. One chunk a stage; B is the whole pass.
//  - The order is made first as if transfers took no time: a stage does what is there, and R is
//    there early enough to end when the gradient arrives.
//  - Then it is run. R waits for its gradient, and a stage that would wait for an R does the next F
//    of its order first, if that has come.
// R is followed by its B alone, so that one micro-batch's recomputed activations are alive at a
// time, and a table of F and B says all. The last stage goes back at once. How many micro-batches
// are forward and not yet back has no bound below all of them: Varuna keeps of those what comes
// into a stage, no more.
ScheduleTable OrderByVarunasRule(int64_t micro_batches, const PipelineTimes& times);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_SCHEDULE_VARUNA_ORDER_H_
