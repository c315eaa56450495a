#include "compiler/program_plan.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "compiler/activations/parking_plan.h"
#include "compiler/bind/plan_mesh.h"
#include "compiler/program/stage_contents.h"
#include "compiler/schedule/made_orders.h"
#include "compiler/schedule/pair_steps.h"
#include "compiler/schedule/placed_schedules.h"
#include "compiler/schedule/vocabulary_schedule.h"
#include "compiler/sharding/stage_state.h"
#include "compiler/stage_program.h"
#include "strategy/schedule/plan_conflicts.h"

namespace plancast {
namespace {

// That every stage passes the request's check with what it always holds.
absl::Status CheckStatics(const CompileRequest& request, const ProgramInputs& inputs) {
  ExecutionGraph graph;
  graph.mesh = *inputs.mesh;
  for (int64_t stage = 0; stage < request.options->pp; ++stage) {
    graph.programs.emplace_back();
    SayWhere(inputs, stage, &graph.programs.back());
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

// Whether several chunks of one stage use it.
bool UsedByChunks(const SharedParameter& parameter) {
  for (const SharedParameter::Use& a : parameter.uses) {
    for (const SharedParameter::Use& b : parameter.uses) {
      if (a.stage == b.stage && a.part != b.part) return true;
    }
  }
  return false;
}

// What of a plan its tree shows.
std::set<PlanTrait> TraitsOf(const CompileRequest& request) {
  const StrategyTree& tree = *request.tree;
  std::set<PlanTrait> traits;
  if (tree.NamesRanks()) traits.insert(PlanTrait::kRanks);
  if (tree.HasStagePlaces()) traits.insert(PlanTrait::kStagePlaces);
  if (tree.fine_tunes()) traits.insert(PlanTrait::kUntrained);
  const bool below = std::any_of(tree.nodes().begin(), tree.nodes().end(),
                                 [](const auto& node) { return !node.first.empty(); });
  if (below) traits.insert(PlanTrait::kNodes);
  return traits;
}

// What its bodies show.
std::set<PlanTrait> TraitsOf(const PlanOptions& options, const std::vector<SharedParameter>& shared,
                             const HomePlan* homes) {
  std::set<PlanTrait> traits;
  if (homes != nullptr) traits.insert(PlanTrait::kNodeHomes);
  if (homes != nullptr && homes->MovesActivations()) traits.insert(PlanTrait::kMovesActivations);
  const bool by_chunks = std::any_of(shared.begin(), shared.end(), UsedByChunks);
  if (options.most_zero() >= 2 && by_chunks) traits.insert(PlanTrait::kSharedByChunks);
  return traits;
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
  PipelineSchedule order = Order(micro_batches);
  const bool says_pairs = ListsPairs(request->options->schedule_table);
  if (!request->options->makes_pairs() || says_pairs) return order;
  ScheduleTable table;
  for (int64_t s = 0; s < request->options->pp; ++s) table.stages.push_back(order.OfStage(s));
  return PipelineSchedule(WithPairs(std::move(table), placement));
}

PipelineSchedule ProgramPlan::Order(int64_t micro_batches) const {
  const PlanOptions& options = *request->options;
  if (!options.schedule_table.empty()) {
    PLANCAST_CHECK_EQ(micro_batches, options.micro_batches) << "a table is one as a whole";
    absl::StatusOr<ScheduleTable> table = ParseScheduleTable(options.schedule_table);
    PLANCAST_CHECK_OK(table.status());
    return PipelineSchedule(*std::move(table));
  }
  if (options.spreads_vocabulary()) {
    return PipelineSchedule(
        VocabularySchedule(options.vocab_parallel, options.schedule, options.pp, micro_batches));
  }
  if (options.schedule == Schedule::kOngoing) {
    return PipelineSchedule(TableOfOngoing(options.most_ongoing, micro_batches));
  }
  PLANCAST_CHECK(!FollowsTimes(options.schedule)) << "no order was found yet";
  if (!placement.Loops()) {
    return PipelineSchedule(TableOfRule(options.schedule, placement, micro_batches));
  }
  const int64_t ahead = options.makes_pairs() ? 1 : 0;
  return PipelineSchedule(options.schedule, options.pp, micro_batches, options.vpp, ahead);
}

void ProgramPlan::Announce(GraphAssembly* assembly) const {
  assembly->OverlapIterations(request->options->optimizer == StepTime::kPostValidated);
  assembly->BlockLaunches(request->profile->calls.blocking);
}

absl::Status ProgramPlan::WriteAll(const PipelineSchedule& schedule, BlockCatalogue* catalogue,
                                   GraphAssembly* assembly) const {
  Announce(assembly);
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
  RETURN_IF_ERROR(CheckConflicts(*request.options, *request.profile, TraitsOf(request)));
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
  RETURN_IF_ERROR(CheckConflicts(*request.options, *request.profile,
                                 TraitsOf(*request.options, plan.shared, plan.homes.get())));
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
