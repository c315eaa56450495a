#ifndef PLANCAST_COMPILER_DATA_RANKS_H_
#define PLANCAST_COMPILER_DATA_RANKS_H_

#include "compiler/bind/bind.h"
#include "compiler/body/body_plan.h"
#include "compiler/lower/lower_block.h"

namespace plancast {

// Whether a body, planned and lowered, is another one where there are more data-parallel
// ranks and as many samples on each: these exchange something inside of it, keep more or
// less of a tensor (a port that is whole on all of them grows with their number), or run
// more or less of an op.
bool DependsOnDataRanks(const BoundModel& bound, const BoundBody& body, const BodyPlan& plan,
                        const BodyBlocks& blocks);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_DATA_RANKS_H_
