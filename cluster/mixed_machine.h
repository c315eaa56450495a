#ifndef PLANCAST_CLUSTER_MIXED_MACHINE_H_
#define PLANCAST_CLUSTER_MIXED_MACHINE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cluster/machine.h"

namespace plancast {

// Machines as one network: the hosts of the first, then those of the second, ... Sections
// that follow each other and have equal hosts become one, as `dgx-h100:2+dgx-h100:2` is
// `dgx-h100:4`. Names and links `between` sections are those of `spec`, where they are
// stated; its other fields are not read. Errors: links `between` sections that differ from
// part to part.
absl::StatusOr<Machine> CombineMachines(const std::vector<Machine>& parts,
                                        const Machine::Spec& spec = {});

// `H100-SXM-80GB`; of a mixed machine the different ones, `A100-SXM-80GB+H100-SXM-80GB`.
std::string DeviceNames(const Machine& machine);

// OK unless the machine is mixed. `what`: that which is for one kind of host only, as the
// beginning of a sentence: `a chunk-level forecast`.
absl::Status CheckNotMixed(const Machine& machine, absl::string_view what);

}  // namespace plancast

#endif  // PLANCAST_CLUSTER_MIXED_MACHINE_H_
