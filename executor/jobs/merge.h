#ifndef PLANCAST_EXECUTOR_JOBS_MERGE_H_
#define PLANCAST_EXECUTOR_JOBS_MERGE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "executor/comm_uses.h"
#include "executor/jobs/placed_job.h"
#include "graph/execution/execution_graph.h"

namespace plancast {

// Where what belongs to a job begins in the merged graph.
struct JobOffsets {
  int32_t program = 0, kernel = 0, comm = 0, block = 0, rendezvous = 0, use = 0;
};

// Several execution graphs end to end. Its mesh says nothing: devices are those
// of the machine.
struct MergedJobs {
  ExecutionGraph graph;
  CommUses uses;
  std::vector<JobOffsets> offsets;  // per job, and the end
};

// `uses`: of each job. Programs are called `job/program`.
MergedJobs Merge(absl::Span<const PlacedJob* const> jobs, absl::Span<const CommUses> uses);

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_JOBS_MERGE_H_
