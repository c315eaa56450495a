#ifndef PLANCAST_COMPILER_LOWER_OVERLAP_PRODUCTS_H_
#define PLANCAST_COMPILER_LOWER_OVERLAP_PRODUCTS_H_

#include "cluster/device_mesh.h"
#include "compiler/lower/lower_block.h"

namespace plancast {

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

#endif  // PLANCAST_COMPILER_LOWER_OVERLAP_PRODUCTS_H_
