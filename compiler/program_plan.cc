#include "compiler/program_plan.h"

#include "base/status_macros.h"
#include "compiler/plan_mesh.h"

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

ProgramInputs ProgramPlan::inputs() const {
  return {&mesh,
          request->options->recompute_layers < 0 ? &dealt : &bodies->bound.stages,
          request->options,
          request->profile,
          request->dtype,
          &bodies->bodies,
          bodies->tied_elements,
          bodies->first_tied_segment,
          &bodies->bound.graph.segments};
}

PipelineSchedule ProgramPlan::Schedule(int64_t micro_batches) const {
  const PlanOptions& options = *request->options;
  return PipelineSchedule(options.schedule, options.pp, micro_batches, options.vpp);
}

absl::StatusOr<ProgramPlan> PlanPrograms(const CompileRequest& request, Session& session,
                                         const PassObserver& observer) {
  ProgramPlan plan;
  plan.request = &request;
  ASSIGN_OR_RETURN(plan.bodies, CompileBodies(request, session, observer));
  ASSIGN_OR_RETURN(plan.mesh, MeshOf(*request.graph, *request.tree, *request.options));
  if (request.options->recompute_layers < 0) {
    ASSIGN_OR_RETURN(plan.dealt, DealLayers(plan.bodies->bound.graph, *request.options));
  }
  if (request.check && !StaticsPass(request, plan.inputs())) {
    return absl::ResourceExhaustedError("a stage was refused");
  }
  return plan;
}

}  // namespace plancast
