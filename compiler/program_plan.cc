#include "compiler/program_plan.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "compiler/activations/parking_plan.h"
#include "compiler/bind/plan_mesh.h"
#include "compiler/schedule/placed_schedules.h"
#include "compiler/schedule/vocabulary_schedule.h"
#include "compiler/sharding/stage_state.h"
#include "compiler/stage_program.h"

namespace plancast {
namespace {

// That every stage passes the request's check with what it always holds.
absl::Status CheckStatics(const CompileRequest& request, const ProgramInputs& inputs) {
  ExecutionGraph graph;
  graph.mesh = *inputs.mesh;
  for (int64_t stage = 0; stage < request.options->pp; ++stage) {
    graph.programs.emplace_back();
    FillStaticBytes(inputs, stage, &graph.programs.back());
    RETURN_IF_ERROR(request.Check(graph, static_cast<int32_t>(stage)));
  }
  return absl::OkStatus();
}

// Hand-overs between layers that have the same layouts on both sides run nothing.
void DropIdleRuns(const PlanBodies& bodies, std::vector<std::vector<StageRun>>* stages) {
  const auto idle = [&](const StageRun& run) {
    const BodyPlan& plan = bodies.bodies[run.bound_body]->plan;
    return plan.forward.empty() && plan.backward.empty() &&
           IsHandOver(bodies.bound.graph, bodies.bound.graph.segments[run.segment]);
  };
  for (std::vector<StageRun>& runs : *stages) {
    runs.erase(std::remove_if(runs.begin(), runs.end(), idle), runs.end());
  }
}

// What of the optimizer's step the plan alone does not show.
absl::Status CheckStepTime(const CompileRequest& request, const HomePlan* homes) {
  const StepTime time = request.options->optimizer;
  if (time == StepTime::kAtEnd) return absl::OkStatus();
  const auto not_yet = [&](absl::string_view what) {
    return absl::UnimplementedError(absl::StrCat("not supported yet: ", what, " with optimizer=",
                                                 kStepTimeNames[time], ". Use optimizer=at-end."));
  };
  if (time == StepTime::kInBackward && homes != nullptr) return not_yet("nodes with homes");
  if (request.tree->NamesRanks()) return not_yet("nodes and homes on some ranks (`on`)");
  if (request.tree->HasStagePlaces()) return not_yet("stages with meshes or devices of their own");
  return absl::OkStatus();
}

// Whether several chunks of one stage use it.
bool UsedByChunks(const SharedParameter& parameter) {
  for (const SharedParameter::Use& a : parameter.uses) {
    for (const SharedParameter::Use& b : parameter.uses) {
      if (a.stage == b.stage && a.part != b.part) return true;
    }
  }
  return false;
}

// What is not simulated where virtual stages are not placed in a loop, or twice.
absl::Status CheckPlaced(const CompileRequest& request, const StagePlacement& placement,
                         const std::vector<SharedParameter>& shared, const HomePlan* homes) {
  const PlanOptions& options = *request.options;
  if (placement.Loops()) return absl::OkStatus();
  const auto not_yet = [&](absl::string_view what, absl::string_view remedy) {
    return absl::UnimplementedError(absl::StrCat(
        "not supported yet: ", what, " with ",
        options.schedule == Schedule::kTable
            ? "a table that says a placement"
            : absl::StrCat("schedule=", kScheduleNames[options.schedule]),
        ", whose ", placement.copies() > 1 ? "stages hold two copies" : "layers turn back", ". ",
        remedy));
  };
  if (!options.own_stages.empty()) {
    return not_yet("stages with meshes of their own",
                   "Use schedule=1f1b, or leave `mesh` and `devices` out of `stages`.");
  }
  if (request.tree->NamesRanks()) {
    return not_yet("nodes on some ranks (`on`)", "Leave them out, or use schedule=1f1b.");
  }
  // Its gradient would be reduced behind one chunk, and made again by the other.
  const bool split = std::any_of(shared.begin(), shared.end(), UsedByChunks);
  if (options.most_zero() >= 2 && split) {
    return not_yet(absl::StrCat("zero=", options.most_zero(),
                                " where chunks of one stage share a parameter (tied embeddings)"),
                   "Use zero=1, or schedule=1f1b.");
  }
  if (placement.copies() == 1) return absl::OkStatus();
  if (homes != nullptr) {
    return not_yet("nodes with homes of their own", "Leave them out, or use schedule=dualpipev.");
  }
  if (options.offload.count(Offload::kOptimizer) > 0) {
    return not_yet("offload=optimizer", "Leave it out, or use schedule=dualpipev.");
  }
  return absl::OkStatus();
}

// What of ChooseVocabulary the plan alone does not show.
absl::Status CheckVocabulary(const CompileRequest& request) {
  if (!request.options->spreads_vocabulary()) return absl::OkStatus();
  const auto not_yet = [&](absl::string_view what) {
    return absl::UnimplementedError(
        absl::StrCat("not supported yet: ", what,
                     " with vocab_parallel=", kVocabParallelNames[request.options->vocab_parallel],
                     ". Leave them out, or use vocab_parallel=redis."));
  };
  const StrategyTree& tree = *request.tree;
  if (tree.NamesRanks()) return not_yet("nodes and homes on some ranks (`on`)");
  if (tree.HasStagePlaces()) return not_yet("stages with meshes or devices of their own");
  if (tree.fine_tunes()) return not_yet("weights that are not trained (`train`, `lora`)");
  const bool below = std::any_of(tree.nodes().begin(), tree.nodes().end(),
                                 [](const auto& node) { return !node.first.empty(); });
  if (below) return not_yet("nodes below the root");
  if (request.profile->update.fresh_gradients) {
    return not_yet("gradients made anew in every iteration, as the profile has,");
  }
  return absl::OkStatus();
}

// What of CheckSplitBackward the plan alone does not show.
absl::Status CheckSplits(const CompileRequest& request, const HomePlan* homes) {
  if (!request.options->splits_backward()) return absl::OkStatus();
  const auto not_yet = [](absl::string_view what, absl::string_view remedy) {
    return absl::UnimplementedError(
        absl::StrCat("not supported yet: ", what,
                     " where gradients of weights are a pass of their own. ", remedy));
  };
  // Ranks with other ops would put other exchanges off.
  if (request.tree->NamesRanks()) {
    return not_yet("nodes on some ranks (`on`)", "Leave them out, or use schedule=1f1b.");
  }
  const SoftwareProfile::Types& types = request.profile->types;
  const bool few_bits = ElementBytes(request.dtype) < ElementBytes(StorageType(request.dtype));
  if (few_bits && (types.quantized_activations || types.quantized_gathers)) {
    return not_yet("activations that are kept or gathered in 8 or 4 bits",
                   "Use `--dtype bf16`, or schedule=1f1b.");
  }
  if (homes != nullptr && homes->MovesActivations()) {
    return not_yet("activations with a home of their own", "Leave that home out.");
  }
  return absl::OkStatus();
}

}  // namespace

ProgramInputs ProgramPlan::inputs() const {
  return {&mesh,
          &stages,
          &placement,
          request->options,
          request->profile,
          request->dtype,
          &compiled,
          &shared,
          &bodies->bound.graph.segments,
          homes.get(),
          parking.get(),
          nullptr,
          &request->place};
}

PipelineSchedule ProgramPlan::Schedule(int64_t micro_batches) const {
  const PlanOptions& options = *request->options;
  if (!options.schedule_table.empty()) {
    PLANCAST_CHECK_EQ(micro_batches, options.micro_batches) << "a table is one as a whole";
    absl::StatusOr<ScheduleTable> table = ParseScheduleTable(options.schedule_table);
    PLANCAST_CHECK_OK(table.status());
    return PipelineSchedule(*std::move(table));
  }
  if (options.spreads_vocabulary()) {
    return PipelineSchedule(VocabularySchedule(options.vocab_parallel, options.pp, micro_batches));
  }
  PLANCAST_CHECK(!FollowsTimes(options.schedule)) << "no order was found yet";
  if (!placement.Loops()) {
    return PipelineSchedule(TableOfRule(options.schedule, placement, micro_batches));
  }
  return PipelineSchedule(options.schedule, options.pp, micro_batches, options.vpp);
}

absl::Status ProgramPlan::WriteAll(const PipelineSchedule& schedule, BlockCatalogue* catalogue,
                                   GraphAssembly* assembly) const {
  assembly->OverlapIterations(request->options->optimizer == StepTime::kPostValidated);
  for (int64_t stage = 0; stage < request->options->pp; ++stage) {
    BuildStageProgram(inputs(), stage, schedule.OfStage(stage), catalogue, assembly);
    RETURN_IF_ERROR(request->Check(assembly->graph(), assembly->programs() - 1));
  }
  return absl::OkStatus();
}

bool LikeTheStageBefore(const ProgramInputs& in, int64_t stage) {
  if (stage < 2 || stage + 1 >= in.options->pp || !in.placement->Loops()) return false;
  for (const SharedParameter& parameter : *in.shared) {
    for (const SharedParameter::Use& use : parameter.uses) {
      if (use.stage == stage || use.stage == stage - 1) return false;
    }
  }
  const auto same_run = [&](const StageRun& a, const StageRun& b) {
    // One body may have several homes.
    return a.bound_body == b.bound_body && a.count == b.count &&
           (in.homes == nullptr || a.segment == b.segment);
  };
  for (size_t v = stage; v < in.stages->size(); v += in.options->pp) {
    const std::vector<StageRun>&own = (*in.stages)[v], &before = (*in.stages)[v - 1];
    if (!std::equal(own.begin(), own.end(), before.begin(), before.end(), same_run)) return false;
    if ((*in.stages)[v - 2].back().bound_body != before.back().bound_body) return false;
  }
  return true;
}

absl::StatusOr<ProgramPlan> PlanPrograms(const CompileRequest& request, Session& session,
                                         const PassObserver& observer) {
  RETURN_IF_ERROR(CheckVocabulary(request));
  ProgramPlan plan;
  plan.request = &request;
  ASSIGN_OR_RETURN(plan.bodies, CompileBodies(request, session, observer));
  ASSIGN_OR_RETURN(plan.mesh, MeshOf(*request.graph, *request.tree, *request.options));
  if (request.options->regroups_layers() || request.tree->SaysUnits()) {
    plan.stages = plan.bodies->bound.stages;
  } else {
    ASSIGN_OR_RETURN(plan.stages, DealLayers(plan.bodies->bound, *request.options));
  }
  plan.shared = plan.bodies->shared;
  plan.placement = PlacementOf(*request.options);
  for (int64_t v = plan.placement.depth(); v < plan.placement.virtual_stages(); ++v) {
    plan.stages.push_back(plan.stages[plan.placement.PartOf(v)]);
  }
  PlaceSharedParameters(plan.placement, &plan.shared, &plan.stages);
  for (size_t v = 0; v < plan.stages.size(); ++v) {
    if (!request.options->Writes(plan.placement.StageOf(static_cast<int64_t>(v)))) {
      plan.stages[v].clear();
    }
  }
  plan.compiled = plan.bodies->bodies;
  DropIdleRuns(*plan.bodies, &plan.stages);
  ASSIGN_OR_RETURN(plan.homes,
                   HomePlan::Create(plan.bodies->bound, plan.mesh, *request.tree, *request.options,
                                    *request.profile, plan.compiled, request.place));
  RETURN_IF_ERROR(CheckPlaced(request, plan.placement, plan.shared, plan.homes.get()));
  RETURN_IF_ERROR(CheckSplits(request, plan.homes.get()));
  RETURN_IF_ERROR(CheckStepTime(request, plan.homes.get()));
  // What leaves its device, and comes back, is a module's own.
  if (request.options->offload.count(Offload::kActivations) == 0 &&
      !(plan.homes != nullptr && plan.homes->MovesActivations())) {
    SharePorts(plan.bodies->variants.get(), &plan.stages, &plan.compiled);
  }
  if (plan.homes != nullptr && plan.homes->ParksActivations()) {
    ASSIGN_OR_RETURN(
        plan.parking,
        ParkingPlan::Create(plan.inputs(), plan.Schedule(request.options->micro_batches)));
  }
  if (request.check) {
    RETURN_IF_ERROR(CheckStatics(request, plan.inputs()));
  }
  return plan;
}

}  // namespace plancast
