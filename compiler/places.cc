#include "compiler/places.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/bind/bind.h"
#include "compiler/bind/op_places.h"
#include "compiler/program/block_catalogue.h"
#include "compiler/program/graph_assembly.h"
#include "compiler/program_plan.h"
#include "compiler/schedule/pipeline_schedule.h"
#include "compiler/sharding/state_bytes.h"

namespace plancast {
namespace {

// Of all stages together; each is written by itself.
constexpr size_t kMostPrograms = 4096;

// Whoever is at a place has some task in each stage, be it to receive what others make.
absl::Status CheckWorks(const ProgramPlan& plan, const Place& place) {
  const auto pp = static_cast<size_t>(plan.request->options->pp);
  std::vector<bool> works(pp, false);
  for (size_t v = 0; v < plan.stages.size(); ++v) {
    for (const StageRun& run : plan.stages[v]) {
      if (plan.compiled[run.bound_body]->blocks.forward.block.size() > 0)
        works[plan.placement.StageOf(static_cast<int64_t>(v))] = true;
    }
  }
  for (size_t stage = 0; stage < pp; ++stage) {
    if (works[stage]) continue;
    std::string where;
    for (size_t axis = 0; axis < place.at.size(); ++axis) {
      if (place.at[axis] < 0) continue;
      absl::StrAppend(&where, where.empty() ? "" : " ", plan.mesh.axis(static_cast<int>(axis)).name,
                      "=", place.at[axis]);
    }
    return absl::InvalidArgumentError(
        absl::StrCat("`on` leaves devices idle: those with ", where, " have no op of stage ", stage,
                     ". Take fewer ranks, or name nodes that have some of its ops."));
  }
  return absl::OkStatus();
}

// What `program` meets `other` for in a stream, in order: numbers of communications, as often as
// layers repeat them.
std::vector<int32_t> MeetingsOf(const ExecutionGraph& graph, int32_t program, int32_t other,
                                StreamKind stream) {
  std::vector<int32_t> meetings;
  std::vector<int> joined(graph.comms.size(), -1);
  for (const Instance& instance : graph.programs[program].instances) {
    const Block& block = graph.blocks[instance.block];
    for (int32_t layer = 0; layer < instance.layer_count; ++layer) {
      for (int32_t t = 0; t < block.size(); ++t) {
        if (block.kind[t] != TaskKind::kComm || block.stream[t] != stream) continue;
        int& known = joined[block.spec[t]];
        if (known < 0) {
          const std::vector<int32_t> all = graph.JoinedBy(graph.comms[block.spec[t]], program);
          known = std::count(all.begin(), all.end(), other) > 0 ? 1 : 0;
        }
        if (known == 1) meetings.push_back(block.spec[t]);
      }
    }
  }
  return meetings;
}

// Units that one place lacks move the gathers ahead of others, and with them reductions between.
absl::Status CheckOrder(const ExecutionGraph& graph, const PlanOptions& options) {
  if (options.most_zero() < 3 || options.prefetch < 1) return absl::OkStatus();
  const auto programs = static_cast<int32_t>(graph.programs.size());
  for (int32_t a = 0; a < programs; ++a) {
    for (int32_t b = a + 1; b < programs; ++b) {
      if (MeetingsOf(graph, a, b, StreamKind::kGradComm) ==
          MeetingsOf(graph, b, a, StreamKind::kGradComm)) {
        continue;
      }
      return absl::UnimplementedError(absl::StrCat(
          "not supported yet: prefetch=", options.prefetch, " with zero=3 where nodes are on some ",
          "ranks (`on`) and others would gather ahead what these do not have: `",
          graph.programs[a].name, "` and `", graph.programs[b].name,
          "` would come to their gathers and reductions in two orders. Use prefetch=0, or "
          "zero=2."));
    }
  }
  return absl::OkStatus();
}

// Whether a node keeps what adapters are beside in 4 bits.
bool KeepsNf4(const StrategyTree& tree) {
  return std::any_of(tree.nodes().begin(), tree.nodes().end(), [](const auto& node) {
    return node.second.lora.has_value() && !node.second.lora->base.empty();
  });
}

}  // namespace

absl::StatusOr<std::vector<Place>> PlacesOf(const CompileRequest& request) {
  if (!request.tree->NamesRanks()) return std::vector<Place>(1);
  ASSIGN_OR_RETURN(const BoundModel bound, Bind(*request.graph, *request.tree, *request.options,
                                                request.profile->kernels.whole_rules));
  std::vector<Place> places = PlacesOf(bound.bodies, bound.mesh);
  if (places.size() * static_cast<size_t>(request.options->pp) > kMostPrograms) {
    return absl::InvalidArgumentError(absl::StrCat(
        "nodes name single ranks of axes with ", places.size(), " places in ", request.options->pp,
        " stages, more than ", kMostPrograms,
        " programs. Name parts of the ranks instead (`on: {dp: 0/2}`), and of homes `shard(dp)`."));
  }
  return places;
}

absl::StatusOr<ExecutionGraph> CompilePlaces(const CompileRequest& request,
                                             const std::vector<Place>& places, Session& session,
                                             const PassObserver& observer) {
  if (!request.options->stages.empty()) {
    return absl::InvalidArgumentError(
        "`on` names ranks of axes that all stages have, and here stages have meshes of their own. "
        "Give what runs beside other nodes a stage of its own devices, or leave `mesh` and "
        "`devices` out of `stages`. A home on one rank may be `shard(dp)`.");
  }
  // One figure stands for the types of all parameters of a stage, and places have unlike ones.
  const auto wire = [&](int64_t products) {
    return ParameterWireBytes(request.profile->GatherType(request.dtype), request.dtype, 2,
                              products);
  };
  const PlanOptions& options = *request.options;
  if (options.shard_ranks() > 1 && options.most_zero() >= 1 && wire(0) != wire(2)) {
    return absl::UnimplementedError(
        "not supported yet: parameters that are gathered in 8 or 4 bits where nodes are on some "
        "ranks (`on`). Gather them in 16 bits (`--gather-dtype bf16`), or leave `zero` out.");
  }
  const auto frozen_wire = [&](int64_t nf4) {
    FrozenParameters frozen;
    frozen.elements = 2, frozen.nf4 = nf4;
    return FrozenWireBytes(*request.profile, request.dtype, frozen);
  };
  const bool unlike =
      frozen_wire(0) != wire(0) || (KeepsNf4(*request.tree) && frozen_wire(2) != wire(0));
  if (options.shard_ranks() > 1 && options.most_zero() == 3 && request.tree->fine_tunes() &&
      unlike) {
    return absl::UnimplementedError(
        "not supported yet: frozen parameters that are gathered in another type than trained ones "
        "(`base: nf4`, or 16 bits beside 32) where nodes are on some ranks (`on`). Leave `base` "
        "out, gather in 16 bits (`--gather-dtype bf16`), or write zero=2.");
  }
  GraphAssembly assembly;
  for (size_t p = 0; p < places.size(); ++p) {
    CompileRequest here = request;
    here.place = places[p];
    here.check = nullptr;  // which counts programs, until they are written
    // Dumps of bodies show all places.
    ASSIGN_OR_RETURN(const ProgramPlan plan,
                     PlanPrograms(here, session, p == 0 ? observer : PassObserver()));
    RETURN_IF_ERROR(CheckWorks(plan, places[p]));
    if (p == 0) assembly.Begin(plan.mesh, plan.bodies->bound.load.skew);
    assembly.BeginPlace(static_cast<int64_t>(p), static_cast<int64_t>(places.size()));
    const PipelineSchedule schedule = plan.Schedule(request.options->micro_batches);
    if (p == 0 && observer) observer("schedule", schedule.DebugString());
    here.check = request.check;
    BlockCatalogue catalogue;
    RETURN_IF_ERROR(plan.WriteAll(schedule, &catalogue, &assembly));
  }
  ExecutionGraph graph = std::move(assembly).Finish();
  RETURN_IF_ERROR(graph.Verify());
  RETURN_IF_ERROR(CheckOrder(graph, options));
  if (observer) observer("lower", graph.DebugString());
  return graph;
}

}  // namespace plancast
