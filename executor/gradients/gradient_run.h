#ifndef PLANCAST_EXECUTOR_GRADIENTS_GRADIENT_RUN_H_
#define PLANCAST_EXECUTOR_GRADIENTS_GRADIENT_RUN_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/machine.h"
#include "executor/dag/dag_job.h"
#include "executor/gradients/gradient_traffic.h"

namespace plancast {

// What a task of a worker is.
struct GradientTask {
  enum class Kind : uint8_t {
    kForward,
    kBackward,
    kUpdate,
    kHost,
    kReduce,
    kGather,
    kPush,
    kPull,
    kUnpack
  };
  Kind kind = Kind::kForward;
  int32_t unit = 0;   // of a communication: the first that waits for it; of an update: likewise
  int64_t bytes = 0;  // of a communication, of its part
};

// An iteration of data-parallel workers as tasks of ranks: from the last backward pass of an
// iteration to the end of the last forward pass of the next, when nothing is on its way. In a
// steady state that is an iteration.
struct GradientJob {
  DagJob dags;
  std::vector<GradientTask> tasks;  // of rank 0
  int64_t workers = 0;
  int64_t messages = 0, parts = 0;  // of a backward pass
};

// Units in the order of the forward pass. Workers are all devices of the machine but those of the
// hosts that sum. Errors: traffic that is none (Verify); no worker; too many parts.
absl::StatusOr<GradientJob> MakeGradientJob(const std::vector<GradientUnit>& units,
                                            const GradientTraffic& traffic, const Machine& machine);

struct GradientSpan {
  GradientTask task;
  int64_t begin_ps = 0, end_ps = 0;
};

struct GradientRun {
  int64_t iteration_ps = 0;
  int64_t compute_ps = 0;  // of that, what a worker computes
  int64_t workers = 0, messages = 0, parts = 0;
  int64_t most_in_flight = 0;       // of one sender, or of all-reduces
  int64_t sent_bytes = 0;           // that a worker pushes, or reduces, in an iteration
  std::vector<GradientSpan> spans;  // of worker 0
};

// The same on the machine, with ExecuteDags.
absl::StatusOr<GradientRun> RunGradients(const std::vector<GradientUnit>& units,
                                         const GradientTraffic& traffic, const Machine& machine);

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_GRADIENTS_GRADIENT_RUN_H_
