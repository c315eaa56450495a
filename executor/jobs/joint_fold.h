#ifndef PLANCAST_EXECUTOR_JOBS_JOINT_FOLD_H_
#define PLANCAST_EXECUTOR_JOBS_JOINT_FOLD_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cluster/machine.h"
#include "executor/comm_uses.h"
#include "executor/fold/quotient.h"
#include "executor/jobs/merge.h"
#include "executor/jobs/placed_job.h"
#include "executor/realise.h"

namespace plancast {

// What drawing reads; per job, in the order of `merged`.
struct JointFoldInput {
  absl::Span<const PlacedJob* const> jobs;
  absl::Span<const CommUses> uses;
  const MergedJobs& merged;
  const Machine& machine;
  // Take up what is asked for; communications and groups are those of the job,
  // groups with devices of the machine.
  std::vector<CommPricer>& pricers;
};

// Every device and group of all jobs and every link that they load, device by
// device: for placements that do not repeat, and for links that jobs share.
struct JointFold {
  FoldGraph graph;
  std::vector<RealisedCollective> realised;  // of all jobs
};
absl::StatusOr<JointFold> DrawJointly(const JointFoldInput& input);

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_JOBS_JOINT_FOLD_H_
