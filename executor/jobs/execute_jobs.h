#ifndef PLANCAST_EXECUTOR_JOBS_EXECUTE_JOBS_H_
#define PLANCAST_EXECUTOR_JOBS_EXECUTE_JOBS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cluster/machine.h"
#include "cost_models/kernel_cost.h"
#include "executor/executor.h"
#include "executor/jobs/placed_job.h"

namespace plancast {

// What becomes of a job alongside others.
struct JobResult {
  std::string name;
  int64_t arrival_ps = 0;
  SimResult result;       // times count from the arrival
  int64_t alone_ps = 0;   // its makespan with the machine to itself
  std::vector<int> with;  // jobs whose links it may share, itself left out

  double slowdown() const {
    return alone_ps == 0 ? 1.0
                         : static_cast<double>(result.makespan_ps) / static_cast<double>(alone_ps);
  }
};

struct JobsResult {
  std::vector<JobResult> jobs;  // in the order of the input
  int64_t makespan_ps = 0;      // from time 0 until the last job ends
};

// Runs jobs together on one machine: one iteration of each, from its arrival on,
// sharing links as they meet. Jobs that cannot meet on a link are simulated
// apart, which changes no digit, and fold as if alone. Errors: see
// CheckPlacements; what Execute returns.
absl::StatusOr<JobsResult> ExecuteJobs(absl::Span<const PlacedJob> jobs, const Machine& machine,
                                       const KernelCostModel& costs,
                                       const SimulateOptions& options = {});

// One job with the machine to itself.
absl::StatusOr<SimResult> ExecutePlaced(const PlacedJob& job, const Machine& machine,
                                        const KernelCostModel& costs,
                                        const SimulateOptions& options = {});

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_JOBS_EXECUTE_JOBS_H_
