#ifndef PLANCAST_EXECUTOR_CHUNKS_PLACE_NCCL_H_
#define PLANCAST_EXECUTOR_CHUNKS_PLACE_NCCL_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "cluster/machine.h"
#include "collectives/nccl/search.h"
#include "collectives/nccl/tuner.h"
#include "executor/chunks/execute_chunks.h"

namespace plancast {

// A launch of NCCL as a chunk program: along the rings and trees that it connects,
// in its turns, chunks and slices, with queues of eight of its steps. A channel sends
// at its share of the bandwidth that NCCL's tuner expects, a hop takes what its tables
// say beyond the latency of the machine's links, LL and LL128 carry their flags.
//
// Rank r is device r of the machine, which has to have as many hosts as the search.
// FailedPrecondition for CollNet, which needs in-network reductions.
absl::StatusOr<PlacedProgram> PlaceNccl(const Machine& machine, const NcclSearchResult& search,
                                        ProgramKind kind, const NcclChoice& choice, int64_t bytes);

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_CHUNKS_PLACE_NCCL_H_
