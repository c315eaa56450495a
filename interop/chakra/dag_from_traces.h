#ifndef PLANCAST_INTEROP_CHAKRA_DAG_FROM_TRACES_H_
#define PLANCAST_INTEROP_CHAKRA_DAG_FROM_TRACES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "cluster/machine.h"
#include "executor/dag/dag_job.h"
#include "interop/chakra/chakra_trace.h"
#include "interop/chakra/verify_traces.h"

namespace plancast {

// Verified traces of ranks 0, 1, ... as our executor runs them, one dag for all ranks
// of one trace (the same pointer). Compute takes its duration; without one, what its
// operations (bf16) and bytes take at the device's peaks. A reduce is priced as the
// broadcast that it mirrors, a barrier as an all-reduce of 4 bytes.
// Errors name rank and node: collectives over dimensions of a network that the
// machine does not have, gathers and scatters.
absl::StatusOr<DagJob> DagJobFrom(const std::vector<const ChakraTrace*>& traces,
                                  const CommGroups& groups, const DeviceType& device);

}  // namespace plancast

#endif  // PLANCAST_INTEROP_CHAKRA_DAG_FROM_TRACES_H_
