#include "compiler/compiler.h"

#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "compiler/places.h"
#include "compiler/program/block_catalogue.h"
#include "compiler/program/graph_assembly.h"
#include "compiler/program_plan.h"
#include "compiler/schedule/pipeline_schedule.h"
#include "compiler/unlike_stages.h"

namespace plancast {

absl::Status CompileRequest::Check(const ExecutionGraph& graph, int32_t program) const {
  if (!check || check(graph, program)) return absl::OkStatus();
  return absl::ResourceExhaustedError("a stage was refused");
}

absl::StatusOr<ExecutionGraph> Compile(const CompileRequest& request, Session& session,
                                       const PassObserver& observer) {
  const PlanOptions& options = *request.options;
  if (request.tree->NamesRanks()) {
    ASSIGN_OR_RETURN(const std::vector<Place> places, PlacesOf(request));
    return CompilePlaces(request, places, session, observer);
  }
  if (!options.stages.empty()) return CompileUnlikeStages(request, session, observer);
  ASSIGN_OR_RETURN(const ProgramPlan plan, PlanPrograms(request, session, observer));
  const PipelineSchedule schedule = plan.Schedule(options.micro_batches);
  if (observer) {
    observer("schedule", schedule.DebugString());
  }
  GraphAssembly assembly;
  BlockCatalogue catalogue;
  assembly.Begin(plan.mesh, plan.bodies->bound.load.skew);
  RETURN_IF_ERROR(plan.WriteAll(schedule, &catalogue, &assembly));
  ExecutionGraph graph = std::move(assembly).Finish();
  if (observer) observer("lower", graph.DebugString());
  return graph;
}

}  // namespace plancast
