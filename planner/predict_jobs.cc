#include "planner/predict_jobs.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/picoseconds.h"
#include "base/status_macros.h"
#include "cluster/mixed_machine.h"
#include "executor/jobs/execute_jobs.h"
#include "executor/jobs/placement.h"
#include "planner/forecast/describe.h"
#include "planner/forecast/plan_graph.h"
#include "planner/forecast/predict.h"
#include "planner/forecast/run_parameters.h"

namespace plancast {
namespace {

// A machine of as many devices, for what depends on their number and kind only.
absl::StatusOr<Machine> OfSize(const Machine& machine, int64_t devices) {
  RETURN_IF_ERROR(CheckNotMixed(machine, "A forecast of several jobs"));
  Machine::Spec spec = machine.spec();
  int64_t per_host = std::min(devices, spec.gpus_per_host);
  while (devices % per_host != 0) --per_host;
  spec.hosts = devices / per_host;
  spec.gpus_per_host = per_host;
  spec.nics_per_host = std::min(spec.nics_per_host, per_host);
  spec.gpus_per_switch = std::min(spec.gpus_per_switch, per_host);
  spec.hosts_per_domain = 1;
  spec.hosts_per_pod = 0;
  spec.device_overrides.clear();
  spec.link_overrides.clear();
  return Machine::Create(std::move(spec));
}

absl::Status CheckNames(absl::Span<const JobRequest> requests) {
  std::set<std::string> names;
  for (const JobRequest& request : requests) {
    if (!names.insert(request.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("two jobs are called `", request.name, "`. Give each a name of its own."));
    }
    if (!(request.arrival_s >= 0 && request.arrival_s <= 1e6)) {
      return absl::InvalidArgumentError(
          absl::StrCat("job `", request.name, "` arrives at ", request.arrival_s,
                       " s; give seconds from 0 to a million, counted from the first arrival."));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Machine> JobMachine(const Machine& machine, absl::string_view placement) {
  RETURN_IF_ERROR(CheckNotMixed(machine, "A forecast of several jobs"));
  ASSIGN_OR_RETURN(const std::vector<int64_t> devices, ParsePlacement(placement, machine));
  return OfSize(machine, static_cast<int64_t>(devices.size()));
}

absl::StatusOr<PlacedRequest> PlaceRequest(const JobRequest& request, const Machine& machine,
                                           const Pricing& pricing, Session& session) {
  const std::string where = absl::StrCat("job `", request.name, "`");
  RETURN_IF_ERROR(CheckNotMixed(machine, "A forecast of several jobs"));
  PlacedJob job;
  job.name = request.name;
  ASSIGN_OR_RETURN(job.devices, ParsePlacement(request.placement, machine), _ << where);
  job.arrival_ps = RoundToPicoseconds(request.arrival_s);
  job.runtime = RuntimeOf(request.job.profile, machine);
  ASSIGN_OR_RETURN(Machine size, OfSize(machine, static_cast<int64_t>(job.devices.size())),
                   _ << where);
  ASSIGN_OR_RETURN(PlanGraph plan, DrawAndCompile(request.job, size, session, &pricing),
                   _ << where);
  if (plan.execution->overlaps_iterations) {
    return absl::UnimplementedError(absl::StrCat(
        where, ": not supported yet: optimizer=post-validated among several jobs, whose ",
        "iterations begin and end at one time for all stages. Use optimizer=at-end."));
  }
  job.graph = plan.execution.get();
  return PlacedRequest{std::move(plan.execution), std::move(job), std::move(size),
                       pricing.Level(request.job.profile, *plan.graph)};
}

absl::StatusOr<std::vector<JobForecast>> PredictJobs(absl::Span<const JobRequest> requests,
                                                     const Machine& machine, const Pricing& pricing,
                                                     Session& session) {
  RETURN_IF_ERROR(CheckNotMixed(machine, "A forecast of several jobs"));
  RETURN_IF_ERROR(CheckNames(requests));
  std::vector<JobForecast> forecasts;
  std::vector<std::shared_ptr<const ExecutionGraph>> graphs;
  std::vector<PlacedJob> placed;
  for (const JobRequest& request : requests) {
    ASSIGN_OR_RETURN(PlacedRequest one, PlaceRequest(request, machine, pricing, session));
    graphs.push_back(std::move(one.graph));
    placed.push_back(std::move(one.placed));
    JobForecast& row = forecasts.emplace_back();
    row.name = request.name;
    row.arrival_s = request.arrival_s;
    ASSIGN_OR_RETURN(row.forecast, Predict(request.job, one.size, pricing, session),
                     _ << "job `" << request.name << "`");
    row.forecast.machine = machine.spec().name;
  }
  ASSIGN_OR_RETURN(JobsResult together, ExecuteJobs(placed, machine, pricing.kernels()));
  for (size_t j = 0; j < forecasts.size(); ++j) {
    JobResult& result = together.jobs[j];
    JobForecast& row = forecasts[j];
    Forecast& forecast = row.forecast;
    forecast.software_level.log -= std::exchange(forecast.learned_log, 0);  // of its time alone
    const double time =
        ToSeconds(forecast.software_level.RunPicoseconds(result.result.makespan_ps));
    const double ratio = forecast.iteration_time_s > 0 ? time / forecast.iteration_time_s : 1;
    forecast.usd_per_iteration *= ratio;
    forecast.kwh_per_iteration *= ratio;
    forecast.iteration_time_s = time;
    forecast.result = std::move(result.result);
    FillInterval(requests[j].job.profile, pricing.learned(), &forecast);
    row.alone_s = ToSeconds(forecast.software_level.RunPicoseconds(result.alone_ps));
    for (int other : result.with) row.with.push_back(requests[other].name);
  }
  return forecasts;
}

}  // namespace plancast
