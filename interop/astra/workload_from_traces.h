#ifndef PLANCAST_INTEROP_ASTRA_WORKLOAD_FROM_TRACES_H_
#define PLANCAST_INTEROP_ASTRA_WORKLOAD_FROM_TRACES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "interop/astra/simulator/astra_workload.h"
#include "interop/chakra/chakra_trace.h"
#include "interop/chakra/verify_traces.h"

namespace plancast {

// Chakra traces of ranks 0, 1, ... as ASTRA-sim runs them. Ranks with the same
// trace (the same pointer) share a program. Broadcasts take their duration, as
// there. Errors name rank and node: memory nodes, collectives it does not have.
absl::StatusOr<AstraWorkload> AstraWorkloadFrom(const std::vector<const ChakraTrace*>& traces,
                                                const CommGroups& groups);

// One of the traces of a custom collective.
absl::StatusOr<AstraProgram> AstraCustomFrom(const ChakraTrace& trace);

}  // namespace plancast

#endif  // PLANCAST_INTEROP_ASTRA_WORKLOAD_FROM_TRACES_H_
