#ifndef PLANCAST_COMPILER_LOWER_SPARSE_UPDATE_H_
#define PLANCAST_COMPILER_LOWER_SPARSE_UPDATE_H_

#include "compiler/body/body_plan.h"
#include "compiler/lower/kernels/lower_kernel.h"
#include "compiler/lower/lower_block.h"

namespace plancast {

// What becomes of the gradient `value` of a table with sparse gradients (TensorInfo::sparse) behind
// the step that makes it, in whose place no table is written: a kernel writes the rows that were
// looked up, ranks that have the table as well gather each other's with their indices, and the
// optimizer reads and writes these rows, their state and nothing else. It does so for every
// micro-batch, which costs what it costs to add up their rows first. `ready`: behind the step's
// kernel.
void LowerSparseUpdate(const LowerContext& context, const BodyPlan& plan, const PlanStep& step,
                       int value, int ready, BlockBuilder* builder);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_LOWER_SPARSE_UPDATE_H_
