#ifndef PLANCAST_PLANNER_PREDICT_JOBS_H_
#define PLANCAST_PLANNER_PREDICT_JOBS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cluster/machine.h"
#include "compiler/session.h"
#include "executor/jobs/placed_job.h"
#include "graph/execution/execution_graph.h"
#include "planner/forecast/forecast.h"
#include "planner/forecast/job.h"
#include "planner/forecast/pricing.h"

namespace plancast {

// A training job on a part of a machine.
struct JobRequest {
  std::string name;
  Job job;
  std::string placement;  // `hosts 0-3 gpus 0-3`, see ParsePlacement
  double arrival_s = 0;
};

struct JobForecast {
  std::string name;
  double arrival_s = 0;
  double alone_s = 0;             // its iteration with the machine to itself
  std::vector<std::string> with;  // jobs whose links it may share
  Forecast forecast;              // alongside the others; times from the arrival on
};

// As many devices as a placement names, in hosts of their own: what a job's memory and plan
// depend on. Errors: a placement that does not name devices of `machine`.
absl::StatusOr<Machine> JobMachine(const Machine& machine, absl::string_view placement);

// The execution graph of a request, and where its devices are.
struct PlacedRequest {
  std::shared_ptr<const ExecutionGraph> graph;
  PlacedJob placed;     // of that graph
  Machine size;         // JobMachine()
  SoftwareLevel level;  // what its runs take beyond what is simulated
};
absl::StatusOr<PlacedRequest> PlaceRequest(const JobRequest& request, const Machine& machine,
                                           const Pricing& pricing, Session& session);

// One iteration of each job, together on one machine, in the order asked for.
absl::StatusOr<std::vector<JobForecast>> PredictJobs(absl::Span<const JobRequest> requests,
                                                     const Machine& machine, const Pricing& pricing,
                                                     Session& session);

}  // namespace plancast

#endif  // PLANCAST_PLANNER_PREDICT_JOBS_H_
