#ifndef PLANCAST_EXECUTOR_CLUSTER_CHECK_JOBS_H_
#define PLANCAST_EXECUTOR_CLUSTER_CHECK_JOBS_H_

#include <string>

#include "absl/status/status.h"
#include "executor/cluster/cluster_job.h"
#include "executor/cluster/fabric.h"

namespace plancast {

// `jobs.yaml:12: job `a``.
std::string InWords(const ClusterJob& job);

// That a job can run on a fabric that is empty.
absl::Status CheckJob(const ClusterJob& job, const Fabric& fabric);

// That no phase takes longer alone than a clock should count, on the links that it has.
absl::Status CheckTimes(const ClusterJob& job, const Loop& loop);

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_CLUSTER_CHECK_JOBS_H_
