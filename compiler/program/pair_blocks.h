#ifndef PLANCAST_COMPILER_PROGRAM_PAIR_BLOCKS_H_
#define PLANCAST_COMPILER_PROGRAM_PAIR_BLOCKS_H_

#include "compiler/lower/lower_block.h"

namespace plancast {

// A forward and a backward block as one (Instance::forward), whose tasks take turns: each goes on
// until a kernel waits for an exchange of its experts' tokens that is under way, and then it is the
// other's turn, the backward block's first. So what one exchanges goes beside what the other
// computes, in the order of Megatron's layers (TransformerLayerSchedulePlan.run of
// megatron/core/models/common/model_chunk_schedule_plan.py): combine of B, attention and dispatch
// of F, experts and dispatch of B, experts and combine of F, attention of B. A block that
// exchanges nothing is one turn.
//
// Ports: those of the forward block, then those of the backward block, which alone tells when it
// begins. Neither meets other programs.
BlockTemplate PairBlocks(const BlockTemplate& forward, const BlockTemplate& backward);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_PROGRAM_PAIR_BLOCKS_H_
