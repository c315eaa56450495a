#ifndef PLANCAST_COLLECTIVES_NCCL_TUNER_COSTS_H_
#define PLANCAST_COLLECTIVES_NCCL_TUNER_COSTS_H_

#include "collectives/nccl/tuner.h"
#include "collectives/nccl/tuner_tables.h"

namespace plancast {

// One cell of the tuner's table; each release has its own formulas, in which
// graphs and figures are the same. Bandwidth 0: NCCL does not run the pair.
NcclCost NcclCostOf(const NcclCommunicator& communicator, const NcclTunerTables& tables,
                    ProgramKind kind, NcclAlgorithm algorithm, Protocol protocol);

// 2.17 counted otherwise than 2.27 and its successors.
NcclCost NcclCostOf217(const NcclCommunicator& communicator, const NcclTunerTables& tables,
                       ProgramKind kind, NcclAlgorithm algorithm, Protocol protocol);

// The graph that an algorithm runs on. Of 2.17, NVLS runs on the ring's.
const NcclGraph& NcclGraphOf(const NcclCommunicator& communicator, NcclAlgorithm algorithm);

// Steps of a ring.
int RingSteps(ProgramKind kind, int ranks);

}  // namespace plancast

#endif  // PLANCAST_COLLECTIVES_NCCL_TUNER_COSTS_H_
