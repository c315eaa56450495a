#ifndef PLANCAST_COMPILER_ACTIVATIONS_APPEND_TASKS_H_
#define PLANCAST_COMPILER_ACTIVATIONS_APPEND_TASKS_H_

#include <vector>

#include "compiler/lower/lower_block.h"

namespace plancast {

// Appends the tasks and the memory of a block to another that is written around it. What waits
// for no task of it, data parallelism's communication aside, waits for `gate` too: a task, an
// in-port as ~port, or BlockBuilder::kNone. Returns the number of its first task.
int AppendTasks(const BlockTemplate& in, int gate, BlockBuilder* builder);

// The first `count` in-ports, as dependencies.
std::vector<int> InPorts(int count);

// The out-ports of a block whose first task is number `first` now; as port `at` that of task
// `more`, unless that is BlockBuilder::kNone.
void AddOutPorts(const Block& block, int first, BlockBuilder* builder,
                 int more = BlockBuilder::kNone, int at = -1);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_ACTIVATIONS_APPEND_TASKS_H_
