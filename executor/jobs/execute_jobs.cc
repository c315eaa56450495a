#include "executor/jobs/execute_jobs.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "base/status_macros.h"
#include "cluster/mixed_machine.h"
#include "executor/jobs/joint_simulation.h"
#include "executor/jobs/placement.h"

namespace plancast {

absl::StatusOr<SimResult> ExecutePlaced(const PlacedJob& job, const Machine& machine,
                                        const KernelCostModel& costs,
                                        const SimulateOptions& options) {
  RETURN_IF_ERROR(CheckNotMixed(machine, "A run of placed jobs"));
  RETURN_IF_ERROR(CheckPlacements({job}, machine));
  if (const std::optional<Machine> renumbered = Renumbered(machine, job.devices)) {
    ASSIGN_OR_RETURN(SimResult result,
                     Execute(*job.graph, *renumbered, costs, job.runtime, options));
    for (DeviceClassResult& row : result.classes) {
      row.representative = job.devices[row.representative];
    }
    return result;
  }
  PlacedJob alone = job;
  alone.arrival_ps = 0;
  const PlacedJob* only = &alone;
  JointSimulation::Options how;
  how.shortcuts = options.shortcuts;
  ASSIGN_OR_RETURN(const std::unique_ptr<JointSimulation> joint,
                   JointSimulation::Run({&only, 1}, machine, costs, how));
  return joint->ResultOf(0, options.timeline);
}

absl::StatusOr<JobsResult> ExecuteJobs(absl::Span<const PlacedJob> jobs, const Machine& machine,
                                       const KernelCostModel& costs,
                                       const SimulateOptions& options) {
  RETURN_IF_ERROR(CheckNotMixed(machine, "A run of placed jobs"));
  RETURN_IF_ERROR(CheckPlacements(jobs, machine));
  JobsResult together;
  for (const PlacedJob& job : jobs) {
    JobResult& row = together.jobs.emplace_back();
    row.name = job.name;
    row.arrival_ps = job.arrival_ps;
    ASSIGN_OR_RETURN(row.result, ExecutePlaced(job, machine, costs, options));
    row.alone_ps = row.result.makespan_ps;
  }
  for (const std::vector<int>& set : SetsThatShareLinks(jobs, machine)) {
    if (set.size() < 2) continue;
    std::vector<const PlacedJob*> members;
    for (int j : set) members.push_back(&jobs[j]);
    JointSimulation::Options how;
    how.shortcuts = options.shortcuts;
    ASSIGN_OR_RETURN(const std::unique_ptr<JointSimulation> joint,
                     JointSimulation::Run(members, machine, costs, how));
    for (size_t i = 0; i < set.size(); ++i) {
      JobResult& row = together.jobs[set[i]];
      row.result = joint->ResultOf(static_cast<int>(i), options.timeline);
      row.with = set;
      row.with.erase(row.with.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  for (const JobResult& row : together.jobs) {
    together.makespan_ps = std::max(together.makespan_ps, row.arrival_ps + row.result.makespan_ps);
  }
  return together;
}

}  // namespace plancast
