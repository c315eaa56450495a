#ifndef PLANCAST_INTEROP_ASTRA_CASE_WORKLOADS_H_
#define PLANCAST_INTEROP_ASTRA_CASE_WORKLOADS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "interop/astra/case_table.h"
#include "interop/astra/simulator/astra_system.h"
#include "interop/astra/simulator/astra_workload.h"

namespace plancast {

struct AstraCaseInputs {
  AstraWorkload workload;
  AstraSystem system;  // the case's, with a custom collective where it has one
};

// The traces that a case describes in words:
//   micro                                         one collective on all ranks
//   chain: K x (comp D us -> AR)                  each waits for the one before
//   overlap: K comp D us + K AR, AR_i after comp_i
//   chain|overlap: N nodes/rank (K comp D us + K AR)
//   p2p: M messages rank i->i+1                   passed on along the ranks
//   single S MiB message I->J
//   G groups of M (contiguous|strided|tp|dp)      one collective in each
//   ranks I-J AR in subgroup, then all AG
//   M independent AR nodes, same rank
//   MLP_ModelParallel                             of ASTRA-sim's examples
// A note that names custom_collective.json makes the ring of ASTRA-sim's example of
// custom collectives take the place of the algorithm.
// Unimplemented: words that do not say what the ranks run, with the reason.
absl::StatusOr<AstraCaseInputs> InputsOfCase(const AstraCase& c);

}  // namespace plancast

#endif  // PLANCAST_INTEROP_ASTRA_CASE_WORKLOADS_H_
