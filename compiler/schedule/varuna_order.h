#ifndef PLANCAST_COMPILER_SCHEDULE_VARUNA_ORDER_H_
#define PLANCAST_COMPILER_SCHEDULE_VARUNA_ORDER_H_

#include <cstdint>
#include <vector>

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
// time, and a table of F and B says all. The last stage goes back at once. `most`: how many
// micro-batches of each stage may be forward and not yet back; empty: any number, as in that
// simulator: Varuna keeps of those what comes into a stage, no more.
ScheduleTable OrderByVarunasRule(int64_t micro_batches, const PipelineTimes& times,
                                 const std::vector<int64_t>& most = {});

// The same with R; per stage.
struct VarunaStep {
  enum Kind : uint8_t { kBackward, kRecompute, kForward };  // what is done first comes first
  Kind kind = kForward;
  int32_t micro_batch = 0;
};
std::vector<std::vector<VarunaStep>> StepsByVarunasRule(int64_t micro_batches,
                                                        const PipelineTimes& times,
                                                        const std::vector<int64_t>& most = {});

}  // namespace plancast

#endif  // PLANCAST_COMPILER_SCHEDULE_VARUNA_ORDER_H_
