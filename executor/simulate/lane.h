#ifndef PLANCAST_EXECUTOR_SIMULATE_LANE_H_
#define PLANCAST_EXECUTOR_SIMULATE_LANE_H_

#include <cstdint>
#include <limits>

#include "executor/simulate/task_index.h"

namespace plancast {

// How far a stream of an entity has come. A lane's number is
// entity * kNumStreams + stream.
struct Lane {
  enum State : uint8_t {
    kIdle,     // to be looked at, or done
    kBlocked,  // on `blocker`, of the same entity
    kWaits,    // for the host, whose time is known
    kKernel,   // in a chain of kernels
    kMeets,    // in a communication that not all members have come to
    kFlies,    // in one under way
    kRuns,     // in copies of a block that run at once
  };
  // The first task that is not over, or that a chain or a run began with: which
  // instance of the stream, of the program, which copy, and which task of the
  // stream in it. Done: instance is kDone.
  static constexpr int32_t kDone = std::numeric_limits<int32_t>::max() >> 6;
  int32_t cursor = 0, instance = 0, copy = 0, rank = 0;
  State state = kIdle;
  uint8_t blocking_stream = 0;
  TaskRef blocker;
  int64_t last_end = 0;  // of the task before

  bool done() const { return instance == kDone; }
  int64_t place() const { return TaskIndex::Place(instance, copy, rank); }
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_SIMULATE_LANE_H_
