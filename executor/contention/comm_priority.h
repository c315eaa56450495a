#ifndef PLANCAST_EXECUTOR_CONTENTION_COMM_PRIORITY_H_
#define PLANCAST_EXECUTOR_CONTENTION_COMM_PRIORITY_H_

#include <cstdint>

#include "executor/comm_uses.h"

namespace plancast {

// The class of a communication under LinkSharing::kPriority, by what waits for it:
// the lowest goes first. As ByteScheduler and P3 order tensors, what the next
// kernel needs goes before what an iteration needs at its end. The stream says
// which; one that serves several takes the most urgent.
enum CommPriority : int32_t {
  kModelParallel,  // tensor, sequence, context and expert parallelism
  kPipeline,       // messages between stages
  kGradients,      // gradients and parameters of data parallelism
};

CommPriority PriorityOf(const CommUse& use);

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_CONTENTION_COMM_PRIORITY_H_
