#include "planner/fit/fits.h"

#include <limits>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "planner/forecast/host_memory.h"
#include "planner/forecast/run_parameters.h"
#include "strategy/context_parallel.h"

namespace plancast {
namespace {

// Whether a stage like this one, with less in flight, may take more than it: where blocks
// lie may decide of that stage.
bool LessMayTakeMore(const Footprint& footprint) {
  return (footprint.near_capacity || footprint.segments() > footprint.room) &&
         footprint.memory.device < footprint.most_placed;
}

}  // namespace

FitCheck::FitCheck(Job job, const Machine& machine, Session& session, const Pricing* pricing)
    : job_(std::move(job)),
      machine_(machine),
      session_(session),
      pricing_(pricing),
      memory_(OverheadOn(job_.profile, machine)) {}

const SoftwareProfile& FitCheck::ProfileFor(Schedule schedule) {
  const auto [it, inserted] = settled_.try_emplace(schedule);
  if (inserted) it->second = job_.profile.For(job_.dtype, schedule);
  return it->second;
}

absl::StatusOr<FitVerdict> FitCheck::Verdict(const ShortForm& plan, StageObserver* observer,
                                             bool of_unfit) {
  job_.strategy.plan() = plan;
  ASSIGN_OR_RETURN(PlanGraph drawn, DrawFor(job_, plan, session_));
  ASSIGN_OR_RETURN(drawn.chosen.options,
                   ChooseOptions(plan, ContextOf(*drawn.graph, machine_, job_.global_batch),
                                 ProfileFor(Schedule::kNone)));
  RETURN_IF_ERROR(OrderPasses(job_, machine_, pricing_, session_, &drawn));
  const PlanOptions& options = drawn.chosen.options;
  if (options.cp > 1) {
    job_.strategy.plan().cp_type =
        ContextParallel{options.cp_type, options.cp_head_ranks}.DebugString();
  }
  CompileRequest request;
  request.graph = drawn.graph.get();
  request.tree = &job_.strategy;
  request.options = &options;
  request.profile = &ProfileFor(options.schedule);
  request.dtype = job_.dtype;
  request.graph_key = drawn.graph_key;
  ASSIGN_OR_RETURN(const ProgramPlan programs, PlanPrograms(request, session_, nullptr));
  const int64_t forgotten = memory_.times_forgotten();
  memory_.Begin(programs);
  if (observer != nullptr && memory_.times_forgotten() > forgotten) observer->Forget();
  if (!options.offload.empty()) {
    RETURN_IF_ERROR(CheckHosts(programs));
  }
  std::vector<int32_t> unlike;
  const FitVerdict verdict = FullestStage(programs, &unlike);
  if (observer != nullptr && (verdict.fits || of_unfit)) {
    observer->Begin(programs);
    for (const int32_t stage : unlike) {
      memory_.Outline(stage);
      observer->See(stage, memory_.outline(), memory_.catalogue());
    }
  }
  return verdict;
}

FitVerdict FitCheck::FullestStage(const ProgramPlan& programs, std::vector<int32_t>* unlike) {
  FitVerdict verdict;
  int64_t most = std::numeric_limits<int64_t>::min();  // beyond what the device has
  const auto note = [&](const ClassMemory& memory, int32_t stage) {
    const int64_t over = memory.device - memory.capacity;
    if (over < most || (over == most && stage >= verdict.stage)) return;
    most = over;
    verdict.device_bytes = memory.device;
    verdict.capacity_bytes = memory.capacity;
    verdict.stage = stage;
  };
  const ProgramInputs inputs = programs.inputs();
  std::vector<std::pair<int32_t, Footprint>> to_place;
  bool less_may_take_more = false;
  for (int32_t stage = 0; stage < inputs.options->pp; ++stage) {
    if (LikeTheStageBefore(inputs, stage) && memory_.CapacityAsBefore(stage) &&
        ((!less_may_take_more && memory_.InFlightShrinks()) || memory_.InFlightAsBefore(stage))) {
      continue;
    }
    const Footprint footprint = memory_.Of(stage);
    unlike->push_back(stage);
    less_may_take_more = LessMayTakeMore(footprint);
    if (footprint.near_capacity) {
      to_place.emplace_back(stage, footprint);
    } else {
      note(footprint.memory, stage);
    }
  }
  for (auto& [stage, footprint] : to_place) {
    if (footprint.most_placed - footprint.memory.capacity < most) continue;
    memory_.Place(stage, &footprint);
    note(footprint.memory, stage);
  }
  verdict.fits = verdict.device_bytes <= verdict.capacity_bytes;
  return verdict;
}

absl::Status FitCheck::CheckHosts(const ProgramPlan& programs) {
  ExecutionGraph graph;  // its devices alone
  graph.mesh = programs.mesh;
  ASSIGN_OR_RETURN(const int pp_axis, graph.mesh.FindAxis("pp"));
  std::vector<ClassMemory> memory(programs.request->options->pp);
  for (size_t stage = 0; stage < memory.size(); ++stage) {
    graph.programs.emplace_back();
    graph.programs.back().where = {{pp_axis, static_cast<int64_t>(stage)}};
    memory[stage].host = memory_.HostBytes(static_cast<int64_t>(stage));
  }
  return CheckHostMemory(graph, machine_, memory);
}

}  // namespace plancast
