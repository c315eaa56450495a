#ifndef PLANCAST_CLUSTER_MACHINE_CHECKS_H_
#define PLANCAST_CLUSTER_MACHINE_CHECKS_H_

#include "absl/status/status.h"
#include "cluster/machine.h"

namespace plancast {

// Whether every figure of `spec` can belong to a machine. Messages name the
// fields as machine files do (docs/machines.md) and in their units.
absl::Status CheckMachineSpec(const Machine::Spec& spec);

}  // namespace plancast

#endif  // PLANCAST_CLUSTER_MACHINE_CHECKS_H_
