#ifndef PLANCAST_EXECUTOR_FOLD_FOLD_H_
#define PLANCAST_EXECUTOR_FOLD_FOLD_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cluster/machine.h"
#include "executor/comm_uses.h"
#include "executor/fold/mixed_radix.h"
#include "executor/realise.h"
#include "executor/sim_graph.h"
#include "graph/execution/execution_graph.h"

namespace plancast {

// What folding reads. `comms` and `prices` take up what it asks for.
struct FoldInput {
  const ExecutionGraph& graph;
  const CommUses& uses;
  const Machine& machine;
  CommPricer& comms;
  KernelPrices& prices;
};

// Cuts {devices, groups, links} into classes whose members do the same at the
// same time: the coarsest equitable partition, starting from programs, device
// speeds and link speeds. Errors: a mesh larger than the machine, or a group
// that cannot be realised.
absl::StatusOr<SimGraph> Fold(const FoldInput& input);

// Errors: a mesh larger than the machine.
absl::Status CheckFits(const ExecutionGraph& graph, const Machine& machine);

// In closed form, in time by programs and uses: the mesh divides evenly onto the
// machine and nothing on it is special. Every program is one class.
absl::StatusOr<SimGraph> FoldInClosedForm(const FoldInput& input, const MixedRadix& radix);

// By colour refinement over all devices, for any machine. `discrete` starts with
// every device a class of its own, which gives the flat form.
absl::StatusOr<SimGraph> FoldByRefinement(const FoldInput& input, bool discrete = false);

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_FOLD_FOLD_H_
