#ifndef PLANCAST_EXECUTOR_DAG_EXECUTE_DAGS_H_
#define PLANCAST_EXECUTOR_DAG_EXECUTE_DAGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "cluster/machine.h"
#include "executor/dag/dag_job.h"

namespace plancast {

// Where the time of a rank goes, picoseconds; the parts sum to the finish.
struct DagRankResult {
  int64_t finish_ps = 0;
  int64_t kernels_ps = 0;  // a kernel runs
  int64_t exposed_ps = 0;  // none, but a communication does, or waits for others
  int64_t idle_ps = 0;     // neither, the host included
};

// A communication as it ran.
struct DagComm {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  int64_t bytes = 0;
  int64_t members = 0;
  std::string algorithm, protocol;
  int64_t begin_ps = 0, end_ps = 0;  // from when all members are there, and its queue lets it go
};

// A task of rank 0 as it ran.
struct DagSpan {
  int32_t task = 0;
  int64_t begin_ps = 0, end_ps = 0;
};

struct DagResult {
  int64_t makespan_ps = 0;
  std::vector<DagRankResult> ranks;
  std::vector<DagComm> comms;           // by begin
  std::vector<DagSpan> spans;           // of rank 0, what takes time, by end
  std::vector<int64_t> most_in_flight;  // by queue, of any group or sender, bytes
};

// Runs the tasks of every rank on the machine. A rank has one host thread and one
// stream of kernels, which take up what is free by index; alongside them every group
// has a stream of collectives, which start in order once all members have come,
// and every message starts when both ends have (buffered_sends: when its send has); but what has
// a queue then waits for its turn there (CommQueue). Communications are realised as in
// Execute and share links as fluids. Deterministic.
// Errors: more ranks than devices; a deadlock, with a task that waits.
absl::StatusOr<DagResult> ExecuteDags(const DagJob& job, const Machine& machine);

// In the message of a deadlock.
inline constexpr char kNeverEnds[] = " never ends: ";
inline bool IsDeadlock(const absl::Status& status) {
  return absl::StrContains(status.message(), kNeverEnds);
}

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_DAG_EXECUTE_DAGS_H_
