#ifndef PLANCAST_EXECUTOR_INTERFERENCE_H_
#define PLANCAST_EXECUTOR_INTERFERENCE_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cluster/machine.h"
#include "cost_models/interference.h"
#include "executor/comm_uses.h"
#include "executor/realise.h"
#include "graph/execution_graph.h"

namespace plancast {

// What the plan's communications take of a device while they run beside kernels,
// on average over their time alone. Those that the next kernel of their block
// waits for run beside none and do not count. Depends on the graph and the
// machine only, not on how the graph is folded. Errors: a group that cannot be
// realised.
absl::StatusOr<CollectiveFootprint> MeanFootprint(const ExecutionGraph& graph, const CommUses& uses,
                                                  const Machine& machine, CommPricer& comms);

// Fills `prices.slowdown_q20` with what each kernel loses beside such a
// communication on this GPU.
void PriceInterference(const DeviceType& device, const CollectiveFootprint& footprint,
                       KernelPrices& prices);

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_INTERFERENCE_H_
