#ifndef PLANCAST_EXECUTOR_SIMULATE_STREAM_CURSOR_H_
#define PLANCAST_EXECUTOR_SIMULATE_STREAM_CURSOR_H_

#include <cstdint>
#include <limits>

#include "executor/simulate/index/task_index.h"

namespace plancast {

// How far a stream of an entity has come. Cursors are numbered entity * kNumStreams + stream.
struct StreamCursor {
  enum State : uint8_t {
    kIdle,        // to be looked at, or done
    kBlocked,     // on `blocker`, of the same entity
    kLaunching,   // waits for the host, whose time is known
    kKernels,     // in a chain of kernels
    kMeeting,     // in a communication that not all members have joined
    kInFlight,    // in a communication that all have joined
    kInLayerRun,  // in layers that run at once
  };
  // The first task that is not over, or that a chain or a layer run began with: which
  // instance of the stream and of the program, which layer, and which task of the
  // stream in it. Done: instance is kDone.
  static constexpr int32_t kDone = std::numeric_limits<int32_t>::max() >> 6;
  int32_t position = 0, instance = 0, layer = 0, rank = 0;
  State state = kIdle;
  uint8_t blocking_stream = 0;
  TaskRef blocker;
  int64_t last_end = 0;  // of the task before

  bool done() const { return instance == kDone; }
  // Whether it can go on as soon as what it waits for is over.
  bool waits() const { return state <= kLaunching; }
  int64_t place() const { return TaskIndex::Place(instance, layer, rank); }
};

// The stream of kernels.
inline constexpr int kCompute = static_cast<int>(StreamKind::kCompute);

inline int32_t CursorOf(int32_t entity, int stream) { return entity * kNumStreams + stream; }
inline int32_t EntityOf(int32_t cursor) { return cursor / kNumStreams; }
inline int StreamOf(int32_t cursor) { return cursor % kNumStreams; }

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_SIMULATE_STREAM_CURSOR_H_
