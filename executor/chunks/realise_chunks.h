#ifndef PLANCAST_EXECUTOR_CHUNKS_REALISE_CHUNKS_H_
#define PLANCAST_EXECUTOR_CHUNKS_REALISE_CHUNKS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "cluster/machine.h"
#include "collectives/realise.h"
#include "executor/chunks/execute_chunks.h"

namespace plancast {

// The chunk program of a collective over a group of devices, placed on the machine
// with the coefficients that Realise prices it by: launch, efficiency, and what a
// hop takes. A thread block sends at its share of the collective's rate. What the measured
// `fill` takes beyond what the program itself needs to fill its pipeline is spread
// over the hops.
//
// FailedPrecondition where Realise has a form for what no program is written: groups
// with different numbers of members per node (but for rings and messages), exchanges
// that send one copy to a node (CollectivePolicy::copies), and trees over hosts with
// several PCIe switches and interfaces.
absl::StatusOr<PlacedProgram> PlaceCollective(const Machine& machine, const GroupPattern& group,
                                              CollectiveKind kind, int64_t bytes,
                                              const CollectivePolicy& policy = {});

// Realise at the other fidelity: the same algorithm, protocol and loads; the delay is
// the chunk program's time alone on the idle machine, less the transfer. What
// PlaceCollective has no program for is answered by the closed form.
absl::StatusOr<RealisedCollective> RealiseByChunks(const Machine& machine,
                                                   const GroupPattern& group, CollectiveKind kind,
                                                   int64_t bytes,
                                                   const CollectivePolicy& policy = {});

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_CHUNKS_REALISE_CHUNKS_H_
