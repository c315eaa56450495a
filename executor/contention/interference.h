#ifndef PLANCAST_EXECUTOR_CONTENTION_INTERFERENCE_H_
#define PLANCAST_EXECUTOR_CONTENTION_INTERFERENCE_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cluster/machine.h"
#include "cost_models/interference.h"
#include "executor/comm_uses.h"
#include "executor/executor.h"
#include "executor/realise.h"
#include "graph/execution/execution_graph.h"

namespace plancast {

// What the plan's communications take of a device while they run alongside kernels,
// on average over their time alone. Those that the next kernel of their block
// waits for run alongside none and do not count. Depends on the graph and the
// machine only, not on how the graph is folded. Of the devices of a section, with the
// groups as they lie there where they have members there.
// Errors: a group that cannot be realised.
absl::StatusOr<CollectiveFootprint> MeanFootprint(const ExecutionGraph& graph, const CommUses& uses,
                                                  const Machine& machine, CommPricer& comms,
                                                  int section = 0);

// Fills `prices.slowdown_q20` with what each kernel loses alongside such a
// communication on this GPU, which is `kind` of `prices`.
void PriceInterference(const ExecutionGraph& graph, const DeviceType& device,
                       const CollectiveFootprint& footprint, KernelPrices& prices, int kind = 0);

// The time that all kernels of all programs take alone, each program once; seconds.
double KernelSeconds(const ExecutionGraph& graph, const KernelPrices& prices);

// The time that such a communication takes alongside a kernel of the plan over its
// time alone, on average over KernelSeconds(); at least 1. `kind`: of `prices`, which the
// device is.
double MeanCommSlowdown(const ExecutionGraph& graph, const DeviceType& device,
                        const CollectiveFootprint& footprint, const KernelPrices& prices,
                        int kind = 0);

// Both ways, as `runtime` says: fills `prices.slowdown_q20` if by the GPU's data,
// and returns the time of a communication alongside kernels over its time alone, per
// section of the machine; by data, less than 1 % is none.
// Errors: as MeanFootprint().
absl::StatusOr<std::vector<double>> PriceBothWays(const ExecutionGraph& graph, const CommUses& uses,
                                                  const Machine& machine,
                                                  const RuntimeParams& runtime, CommPricer& comms,
                                                  KernelPrices& prices);

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_CONTENTION_INTERFERENCE_H_
