#include "executor/gradients/gradient_run.h"

#include <algorithm>

#include "base/status_macros.h"
#include "cluster/mixed_machine.h"
#include "executor/dag/execute_dags.h"

namespace plancast {

absl::StatusOr<GradientRun> RunGradients(const std::vector<GradientUnit>& units,
                                         const GradientTraffic& traffic, const Machine& machine) {
  RETURN_IF_ERROR(CheckNotMixed(machine, "A run of gradients"));
  ASSIGN_OR_RETURN(const GradientJob job, MakeGradientJob(units, traffic, machine));
  ASSIGN_OR_RETURN(const DagResult result, ExecuteDags(job.dags, machine));
  GradientRun run;
  run.iteration_ps = result.makespan_ps;
  run.compute_ps = result.ranks[0].kernels_ps;
  run.workers = job.workers;
  run.messages = job.messages;
  run.parts = job.parts;
  for (const int64_t most : result.most_in_flight) {
    run.most_in_flight = std::max(run.most_in_flight, most);
  }
  run.spans.reserve(result.spans.size());
  for (const DagSpan& span : result.spans) {
    const GradientTask& task = job.tasks[span.task];
    const bool sent = traffic.server_hosts > 0 ? task.kind == GradientTask::Kind::kPush
                                               : task.kind == GradientTask::Kind::kReduce;
    if (sent) run.sent_bytes += task.bytes;
    run.spans.push_back({task, span.begin_ps, span.end_ps});
  }
  return run;
}

}  // namespace plancast
