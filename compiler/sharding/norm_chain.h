#ifndef PLANCAST_COMPILER_SHARDING_NORM_CHAIN_H_
#define PLANCAST_COMPILER_SHARDING_NORM_CHAIN_H_

#include <cstdint>
#include <vector>

#include "compiler/program/program_inputs.h"
#include "compiler/program/program_writer.h"
#include "graph/execution/execution_graph.h"

namespace plancast {

// Appends the optimizer's step of a stage, `block` (GradientNorm::chained), behind `joins`, and
// what goes over its borders: a number from the stage before, and one to the next with the stage's
// own in it, the norm of gradients or whether any overflowed. Returns the step's instance. Border
// b, behind stage b, meets in slot `slots` + b.
int32_t UpdateInChain(const ProgramInputs& inputs, int64_t stage, int32_t block,
                      std::vector<Join> joins, int64_t slots, ProgramWriter* writer);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_SHARDING_NORM_CHAIN_H_
