#ifndef PLANCAST_COMPILER_LOOPS_LOOP_TASKS_H_
#define PLANCAST_COMPILER_LOOPS_LOOP_TASKS_H_

#include "compiler/lower/lower_block.h"

namespace plancast {

// Cuts the loops of a block (BlockTemplate::loops). Each gather of a loop becomes the messages of
// its parts, those of all its tensors that go over the same axes together: where the loop turns,
// each device hands on what it has to the next, once it is there; else who holds a part sends it to
// all. The op begins part i when it has come. Sums of parts (gradients) go the same way, each
// joined by what the device adds to it. Bytes stay what they are.
//
// Where software has transports of its own (CommLoop::comes, CommLoop::leaves), parts may come from
// who has them, by copy engines, after a device has copied its own to where others find it; and
// parts of a sum may go to who owns them, who takes the sum when all are there.
BlockTemplate RunLoops(BlockTemplate block);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_LOOPS_LOOP_TASKS_H_
