#ifndef PLANCAST_COMPILER_LOOPS_LOOP_TASKS_H_
#define PLANCAST_COMPILER_LOOPS_LOOP_TASKS_H_

#include "cluster/device_mesh.h"
#include "compiler/lower/lower_block.h"

namespace plancast {

// Blocks in which products, or other ops, run part by part beside the communication of their parts.

// Cuts the loops of a block (BlockTemplate::loops). Each gather of a loop becomes the messages of
// its parts, those of all its tensors that go over the same axes together: where the loop turns,
// each device hands on what it has to the next, once it is there; else who holds a part sends it to
// all. The op begins part i when it has come. Sums of parts (gradients) go the same way, each
// joined by what the device adds to it. Bytes stay what they are.
BlockTemplate RunLoops(BlockTemplate block, const DeviceMesh& mesh);

// `overlap=tp`: products alongside their own collective, as Transformer Engine's user
// buffers do under sequence parallelism. An all-gather of tensor parallelism and the
// forward or input-gradient product that reads it first become as many pieces as there
// are ranks in the gather: a product begins with the rows that are there and goes on
// with each part that comes. A
// forward product and the reduce-scatter of its result: each part leaves once it is
// made. Work and bytes stay what they are; weight gradients are not cut, for they
// run alongside whole collectives already. `gathers`: whether gathers are cut.
BlockTemplate OverlapProducts(BlockTemplate block, const DeviceMesh& mesh, bool gathers = true);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_LOOPS_LOOP_TASKS_H_
