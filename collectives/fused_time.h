#ifndef PLANCAST_COLLECTIVES_FUSED_TIME_H_
#define PLANCAST_COLLECTIVES_FUSED_TIME_H_

#include <cstdint>

#include "cluster/machine.h"
#include "collectives/nccl/tuner.h"
#include "collectives/price.h"
#include "graph/collective_kind.h"
#include "graph/fused_work.h"

namespace plancast {

// The kernel of a collective, in which ops run too.
struct FusedKernel {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  Algorithm algorithm = Algorithm::kRing;
  Protocol protocol = Protocol::kSimple;
  int64_t bytes = 0;                  // of the collective
  double transfer_s = 0;              // alone
  int64_t members = 1;                // of its group
  int64_t nodes = 1;                  // that these are in
  int channels = 1;                   // blocks, where NCCL's tuner does not say
  const NcclTuner* launch = nullptr;  // that says
};

// By how much a collective takes longer for what is computed in its kernel.
//
// The work is done where the sum is: in a ring every rank has a part of it, in a tree one root for
// each channel has it, with reductions in switches every rank, and of several nodes one (`of_sum`).
// There it has the blocks that the collective has, one for each channel. A thread takes what the
// protocol moves as one, 8 bytes with LL and 16 with others, waits for the memory that it
// needs for these, and goes on with the next: a pass of all threads takes the latency of the
// memory, and what an SM takes to move what they read and write.
//
// A chunk is sent on when it has been computed on. In a ring all ranks do that in the same step,
// so that all of it counts. In a tree and in switches one chunk is computed on while others
// are on their way: the first counts, and what the others take longer than the links do.
double FusedSeconds(const FusedWork& work, const FusedKernel& kernel, const DeviceType& device);

}  // namespace plancast

#endif  // PLANCAST_COLLECTIVES_FUSED_TIME_H_
