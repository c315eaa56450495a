#include "compiler/compiler.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/bind.h"
#include "compiler/graph_assembly.h"
#include "compiler/plan_bodies.h"
#include "compiler/schedule.h"
#include "compiler/stage_program.h"

namespace plancast {
namespace {

// Whether every stage passes the request's check with what it always holds.
bool StaticsPass(const CompileRequest& request, const ProgramInputs& inputs) {
  ExecutionGraph graph;
  graph.mesh = *inputs.mesh;
  for (int64_t stage = 0; stage < request.options->pp; ++stage) {
    graph.programs.emplace_back();
    FillStaticBytes(inputs, stage, &graph.programs.back());
    if (!request.check(graph, static_cast<int32_t>(stage))) return false;
  }
  return true;
}

}  // namespace

absl::StatusOr<ExecutionGraph> Compile(const CompileRequest& request, Session& session,
                                       const PassObserver& observer) {
  const PlanOptions& options = *request.options;
  ASSIGN_OR_RETURN(const std::shared_ptr<const PlanBodies> bodies,
                   CompileBodies(request, session, observer));
  ASSIGN_OR_RETURN(const DeviceMesh mesh, MeshOf(*request.graph, *request.tree, options));
  std::vector<std::vector<StageRun>> dealt;
  if (options.recompute_layers < 0) {
    ASSIGN_OR_RETURN(dealt, DealLayers(bodies->bound.graph, options));
  }
  const ProgramInputs inputs{&mesh,
                             options.recompute_layers < 0 ? &dealt : &bodies->bound.stages,
                             &options,
                             request.profile,
                             request.dtype,
                             &bodies->bodies,
                             bodies->tied_elements,
                             bodies->first_tied_segment};
  if (request.check && !StaticsPass(request, inputs)) {
    return absl::ResourceExhaustedError("a stage was refused");
  }
  const PipelineSchedule schedule(options.schedule, options.pp, options.micro_batches, options.vpp);
  if (observer) {
    std::string out;
    for (int64_t s = 0; s < options.pp; ++s) {
      absl::StrAppend(&out, "stage ", s, ": ", ScheduleString(schedule.OfStage(s)), "\n");
    }
    observer("schedule", out);
  }
  GraphAssembly assembly(
      mesh, request.recycled != nullptr ? std::move(*request.recycled) : ExecutionGraph());
  for (int64_t stage = 0; stage < options.pp; ++stage) {
    BuildStageProgram(inputs, stage, schedule.OfStage(stage), &assembly);
    if (request.check && !request.check(assembly.graph(), static_cast<int32_t>(stage))) {
      if (request.recycled != nullptr) *request.recycled = std::move(assembly).Finish();
      return absl::ResourceExhaustedError("a stage was refused");
    }
  }
  ExecutionGraph graph = std::move(assembly).Finish();
  if (observer) observer("lower", graph.DebugString());
  return graph;
}

}  // namespace plancast
