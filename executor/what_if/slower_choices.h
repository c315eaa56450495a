#ifndef PLANCAST_EXECUTOR_WHAT_IF_SLOWER_CHOICES_H_
#define PLANCAST_EXECUTOR_WHAT_IF_SLOWER_CHOICES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/machine.h"
#include "executor/executor.h"
#include "graph/execution/execution_graph.h"

namespace plancast {

// A library chooses algorithm and protocol by what it expects, and that is not always what
// then takes the shortest: on faster links a collective may take longer than before. A sentence
// for each collective of the plan of which that holds when `after` stands for `before`, those
// first that take the most longer, three at most. None where links only got slower.
absl::StatusOr<std::vector<std::string>> SlowerChoices(const ExecutionGraph& graph,
                                                       const Machine& before, const Machine& after,
                                                       const RuntimeParams& runtime);

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_WHAT_IF_SLOWER_CHOICES_H_
