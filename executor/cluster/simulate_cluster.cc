#include "executor/cluster/simulate_cluster.h"

#include "base/status_macros.h"
#include "executor/cluster/check_jobs.h"
#include "executor/cluster/cluster_simulation.h"

namespace plancast {

absl::StatusOr<ClusterOutcome> SimulateCluster(const Fabric& fabric,
                                               absl::Span<const ClusterJob> jobs,
                                               const ClusterOptions& options) {
  for (const ClusterJob& job : jobs) RETURN_IF_ERROR(CheckJob(job, fabric));
  ClusterSimulation simulation(fabric, jobs, options);
  RETURN_IF_ERROR(simulation.Run(nullptr).status());
  return simulation.TakeOutcome();
}

}  // namespace plancast
