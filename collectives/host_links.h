#ifndef PLANCAST_COLLECTIVES_HOST_LINKS_H_
#define PLANCAST_COLLECTIVES_HOST_LINKS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "cluster/machine.h"
#include "collectives/realise.h"

namespace plancast {

// What concerns one device of a section and its host's memory (IsOnHost). A copy flows over the
// device's link to the host, the uplink of the PCIe switch that it shares with others,
// and the memory of the host; where GPUs talk to each other over PCIe, that is the same
// link and the same uplink as theirs. Copies reach the machine's host_copy_share of
// links; `nominal`: all of them. An update on the host loads its memory alone.
//
// Errors: the machine has no such link, or its memory's bandwidth is unknown.
absl::StatusOr<RealisedCollective> RealiseOnHost(const Machine& machine, CollectiveKind kind,
                                                 int64_t bytes, bool nominal, int section = 0);

}  // namespace plancast

#endif  // PLANCAST_COLLECTIVES_HOST_LINKS_H_
