#include "compiler/unlike_stages.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/memo_key.h"
#include "base/status_macros.h"
#include "compiler/bind/plan_mesh.h"
#include "compiler/program/block_catalogue.h"
#include "compiler/program/graph_assembly.h"
#include "compiler/program/stage_reshard.h"
#include "compiler/program_plan.h"
#include "compiler/schedule/pipeline_schedule.h"
#include "compiler/sharding/shard_axes.h"
#include "compiler/sharding/shard_plan.h"
#include "compiler/sharding/synchronise.h"
#include "compiler/stage_program.h"
#include "strategy/node_path.h"
#include "strategy/nodes/op_path.h"
#include "strategy/plan_names.h"

namespace plancast {
namespace {

// Whether a node has ops on a stage, where the tree says what each holds.
bool HoldsOnStage(const NodePath& node, const StrategyTree& tree, const ModelPaths& model,
                  int64_t stage, int64_t pp) {
  if (tree.stages().empty() || node.length() == 0) return true;
  std::vector<NodePath> held;
  for (size_t v = stage; v < tree.stages().size(); v += pp) {
    for (const std::string& text : tree.stages()[v].nodes) {
      const absl::StatusOr<NodePath> path = NodePath::Parse(text);
      if (path.ok()) held.push_back(*path);
    }
  }
  for (const std::string& op : model.ops) {
    ModulePath path = ModulePath::Of(op);
    for (const ListOfLayers& list : model.lists) {
      if (path.index < 0 && absl::StartsWith(op, list.path + ".*.")) path.count = list.layers;
    }
    const bool each = path.list >= 0 && path.count > 0;
    for (int64_t layer = 0; layer < (each ? path.count : 1); ++layer) {
      if (each) path.index = layer;
      if (node.Covers(path) && std::any_of(held.begin(), held.end(), [&](const NodePath& other) {
            return other.Covers(path);
          })) {
        return true;
      }
    }
  }
  return false;
}

class UnlikeStages {
 public:
  UnlikeStages(const CompileRequest& request, Session& session, const PassObserver& observer)
      : request_(request),
        options_(*request.options),
        placement_(PlacementOf(options_)),
        session_(session),
        observer_(observer) {}

  absl::StatusOr<ExecutionGraph> Compile() {
    GroupStages();
    for (const PlanOptions& own : stage_options_) RETURN_IF_ERROR(PlanStages(own));
    ASSIGN_OR_RETURN(const DeviceMesh devices, DeviceMesh::Create({{"device", NumDevices()}}));
    assembly_.Begin(devices, LoadOfDevices());
    RETURN_IF_ERROR(PlanBorders());
    RETURN_IF_ERROR(PlanShared());
    const PipelineSchedule schedule = plans_[0]->Schedule(options_.micro_batches);
    for (int64_t stage = 0; stage < options_.pp; ++stage) {
      const ProgramPlan& plan = *plans_[of_stage_[stage]];
      assembly_.BeginStage(plan.mesh, Shift(stage));
      ProgramInputs inputs = plan.inputs();
      inputs.borders = &borders_;
      inputs.shared_crossings = &shared_crossings_;
      BlockCatalogue catalogue;
      BuildStageProgram(inputs, stage, schedule.OfStage(stage), &catalogue, &assembly_);
      RETURN_IF_ERROR(request_.Check(assembly_.graph(), static_cast<int32_t>(stage)));
    }
    for (const IdleDevices& idle : options_.idle) RETURN_IF_ERROR(AddIdle(idle));
    ExecutionGraph graph = std::move(assembly_).Finish();
    RETURN_IF_ERROR(graph.Verify());
    if (observer_) observer_("lower", graph.DebugString());
    return graph;
  }

 private:
  int64_t NumDevices() const {
    int64_t end = 0;
    for (const StageOptions& stage : options_.stages) {
      end = std::max(end, stage.first_device + stage.devices());
    }
    for (const IdleDevices& idle : options_.idle) {
      end = std::max(end, idle.first_device + idle.devices);
    }
    return end;
  }

  // Devices without a stage run a program with nothing in it.
  absl::Status AddIdle(const IdleDevices& idle) {
    ASSIGN_OR_RETURN(const DeviceMesh mesh, DeviceMesh::Create({{"idle", idle.devices}}));
    assembly_.BeginStage(mesh, idle.first_device);
    Program program = assembly_.TakeProgram();
    program.name = "idle";
    assembly_.AddProgram(std::move(program));
    return absl::OkStatus();
  }

  // Where stages have unlike loads of experts, by device of the plan.
  Skew LoadOfDevices() const {
    Skew all;
    for (int64_t stage = 0; stage < options_.pp; ++stage) {
      const ProgramPlan& plan = *plans_[of_stage_[stage]];
      const Skew& own = plan.bodies->bound.load.skew;
      if (own.empty()) continue;
      all.axes = {0};
      all.loads.resize(NumDevices(), 1);
      const int64_t first = options_.stages[stage].first_device;
      for (int64_t d = first; d < first + options_.stages[stage].devices(); ++d) {
        all.loads[d] = own.loads[own.PlaceOf(plan.mesh, d - Shift(stage))];
      }
    }
    return all;
  }

  // From the numbers of the mesh, where stage s begins at s times its size.
  int64_t Shift(int64_t stage) const {
    const StageOptions& own = options_.stages[stage];
    return own.first_device - stage * own.devices();
  }

  StagePlace PlaceOf(int64_t stage) const {
    return {&plans_[of_stage_[stage]]->mesh, stage, static_cast<int>(stage),
            options_.stages[stage].first_device};
  }

  // Stages that are alike are written from one plan, in which all stages are as they are.
  void GroupStages() {
    for (int64_t stage = 0; stage < options_.pp; ++stage) {
      const PlanOptions options = options_.OfStage(stage);
      size_t p = 0;
      while (p < keys_.size() && keys_[p] != MemoKey(options)) ++p;
      if (p == keys_.size()) {
        keys_.push_back(MemoKey(options));
        stage_options_.push_back(options);
      }
      of_stage_.push_back(static_cast<int>(p));
      stage_options_[p].own_stages.push_back(stage);
    }
  }

  absl::Status PlanStages(const PlanOptions& own) {
    // The root of the tree says what the stage's own axes do.
    trees_.push_back(*request_.tree);
    ShortForm& plan_of_stage = trees_.back().plan();
    plan_of_stage.dp = own.dp, plan_of_stage.tp = own.tp, plan_of_stage.cp = own.cp;
    plan_of_stage.ep = own.ep, plan_of_stage.etp = own.expert_tp();
    RETURN_IF_ERROR(SettleLevels(own, &trees_.back()));
    requests_.push_back(request_);
    requests_.back().tree = &trees_.back();
    requests_.back().options = &own;
    requests_.back().check = nullptr;
    ASSIGN_OR_RETURN(ProgramPlan plan, PlanPrograms(requests_.back(), session_, observer_),
                     _ << "stages[" << own.own_stages.front() << "]");
    plans_.push_back(std::make_unique<ProgramPlan>(std::move(plan)));
    return absl::OkStatus();
  }

  // Levels are those of the mesh where their node has ops. The plan of a stage has the ops of all
  // others too: there, levels that its mesh lacks are left out.
  absl::Status SettleLevels(const PlanOptions& own, StrategyTree* tree) const {
    const ModelPaths model = PathsOf(*request_.graph);
    for (const auto& [text, node] : request_.tree->nodes()) {
      for (const SplitDirective& split : node.split) {
        const std::optional<int64_t> ranks = AxisSize(tree->plan(), split.axis);
        if (!split.is_hierarchy() || !ranks.has_value()) continue;
        const absl::Status fits = split.Sizes(*ranks).status();
        if (fits.ok()) continue;
        for (const int64_t stage : own.own_stages) {
          if (!HoldsOnStage(request_.tree->PathOf(text), *request_.tree, model, stage,
                            options_.pp)) {
            continue;
          }
          RETURN_IF_ERROR(fits) << "stage " << stage << ": "
                                << (text.empty() ? "the root" : absl::StrCat("`", text, "`"));
        }
        ASSIGN_OR_RETURN(Directives * here, tree->Node(text));
        here->split.erase(std::find(here->split.begin(), here->split.end(), split));
      }
    }
    return absl::OkStatus();
  }

  absl::Status PlanBorders() {
    for (int64_t v = 0; v + 1 < placement_.virtual_stages(); ++v) {
      const int64_t before = placement_.StageOf(v), after = placement_.StageOf(v + 1);
      BorderCrossing& border = borders_.emplace_back();
      if (before == after) continue;
      for (const bool backward : {false, true}) {
        BorderCrossing::Way& way = backward ? border.backward : border.forward;
        const std::vector<BorderTensor> tensors = TensorsAt(v, backward, &way);
        if (tensors.empty()) continue;
        const int64_t from = backward ? after : before, to = backward ? before : after;
        ASSIGN_OR_RETURN(Reshard reshard,
                         ReshardAtBorder(tensors, PlaceOf(from), PlaceOf(to), backward),
                         _ << "stages " << before << " and " << after);
        way.bytes = CrossingBytes(reshard);
        way.reshard = assembly_.AddReshard(std::move(reshard));
        if (request_.on_border) {
          request_.on_border({way.reshard, tensors, PlaceOf(from), PlaceOf(to), backward});
        }
      }
    }
    borders_.emplace_back();  // behind the last
    return absl::OkStatus();
  }

  // What crosses from virtual stage `v` to the next, or back, as the stages before and after
  // hold it.
  std::vector<BorderTensor> TensorsAt(int64_t v, bool backward, BorderCrossing::Way* way) const {
    const ProgramPlan& before = *plans_[of_stage_[placement_.StageOf(v)]];
    const ProgramPlan& after = *plans_[of_stage_[placement_.StageOf(v + 1)]];
    const StageRun& last = before.stages[v].back();
    const StageRun& first = after.stages[v + 1].front();
    const CompiledBody& gives = *before.compiled[last.bound_body];
    const CompiledBody& takes = *after.compiled[first.bound_body];
    const BoundModel& bound = before.bodies->bound;
    const ModelGraph& graph = bound.graph;
    const CompiledBody* const plain = gives.original == nullptr ? &gives : gives.original;
    const auto same = [&](const auto& other) { return other.get() == plain; };
    const auto known =
        std::find_if(before.bodies->bodies.begin(), before.bodies->bodies.end(), same);
    const Body& body = graph.bodies[bound.bodies[known - before.bodies->bodies.begin()].body];
    std::vector<BorderTensor> tensors;
    for (size_t port = 0; port < gives.plan.out_ports.size(); ++port) {
      const Value& given = gives.plan.values[gives.plan.out_ports[port]];
      const Value& taken = takes.plan.values[takes.plan.in_ports[port]];
      if (backward && gives.grad_port_bytes[port] == 0) {
        way->before_bytes.push_back(0);
        way->after_bytes.push_back(0);
        continue;
      }
      BorderTensor& tensor = tensors.emplace_back();
      tensor.shape = FactsOf(graph, body, given.ref).shape;
      tensor.before = given.layout;
      tensor.after = taken.layout;
      const double held = given.layout.LocalElements(before.mesh, tensor.shape);
      const auto bytes = static_cast<double>(gives.out_port_bytes[port]);
      tensor.element_bytes = held > 0 ? bytes / held : 0;
      way->before_bytes.push_back(gives.out_port_bytes[port]);
      way->after_bytes.push_back(static_cast<int64_t>(
          taken.layout.LocalElements(after.mesh, tensor.shape) * tensor.element_bytes));
    }
    return tensors;
  }

  // Parameters by the stages that share them: the first stage sums the gradients, of two stages
  // both do. The last of the others swaps with it, the others send theirs before and get the sum
  // afterwards.
  absl::Status PlanShared() {
    std::map<std::vector<int64_t>, std::vector<size_t>> by_stages;
    const std::vector<SharedParameter>& shared = plans_[0]->shared;
    for (size_t p = 0; p < shared.size(); ++p) {
      std::vector<int64_t> stages = shared[p].Stages();
      if (stages.size() > 1 && !shared[p].frozen) by_stages[std::move(stages)].push_back(p);
    }
    int turn = 0;
    for (const auto& [stages, parameters] : by_stages) {
      const int64_t owner = stages.front(), last = stages.back();
      for (size_t i = 1; i + 1 < stages.size(); ++i) {
        RETURN_IF_ERROR(CrossShared(parameters, stages[i], owner, turn++));
      }
      RETURN_IF_ERROR(CrossShared(parameters, owner, last, turn));
      RETURN_IF_ERROR(CrossShared(parameters, last, owner, turn++));
      for (size_t i = 1; i + 1 < stages.size(); ++i) {
        RETURN_IF_ERROR(CrossShared(parameters, owner, stages[i], turn++));
      }
    }
    return absl::OkStatus();
  }

  absl::Status CrossShared(const std::vector<size_t>& parameters, int64_t from, int64_t to,
                           int turn) {
    std::vector<BorderTensor> tensors;
    for (const size_t p : parameters) {
      tensors.push_back({ShapeOfShared(p), WireBytes(request_.profile->types.reduce_dtype),
                         GradientOfShared(p, from), GradientOfShared(p, to)});
    }
    ASSIGN_OR_RETURN(Reshard reshard,
                     ReshardAtBorder(tensors, PlaceOf(from), PlaceOf(to), /*backward=*/false),
                     _ << "stages " << from << " and " << to);
    SharedCrossing& crossing = shared_crossings_.emplace_back();
    crossing.from = from, crossing.to = to, crossing.turn = turn;
    crossing.bytes = CrossingBytes(reshard);
    crossing.reshard = assembly_.AddReshard(std::move(reshard));
    return absl::OkStatus();
  }

  std::vector<int64_t> ShapeOfShared(size_t parameter) const {
    const SharedParameter::Use& use = plans_[0]->shared[parameter].uses.front();
    const ModelGraph& graph = plans_[0]->bodies->bound.graph;
    const Body& body = graph.bodies[graph.segments[use.segment].body];
    return FactsOf(graph, body, {use.tensor, -1, false, false}).shape;
  }

  // How a stage holds the reduced gradient: as its last user reads the parameter, and where
  // ranks keep shards of gradients, these.
  Layout GradientOfShared(size_t parameter, int64_t stage) const {
    const ProgramPlan& plan = *plans_[of_stage_[stage]];
    const SharedParameter& shared = plan.shared[parameter];
    const auto of_stage = [&](const SharedParameter::Use& use) { return use.stage == stage; };
    const auto use = std::find_if(shared.uses.rbegin(), shared.uses.rend(), of_stage);
    Layout layout =
        plan.bodies->bodies[use->segment]->plan.parameter_layouts[use->tensor].WithoutHalos();
    const PlanOptions& options = *plan.request->options;
    const ParameterHomes homes =
        plan.homes ? plan.homes->HomesOf(use->segment) : HomesOfPlan(options);
    if (!ShardsBodies(options, homes)) return layout;
    const std::vector<int> shard = homes.over.has_value()
                                       ? homes.over->axes
                                       : ShardAxesOf(plan.mesh, options, DataAxes(plan.mesh)).shard;
    for (const int axis : shard) {
      Placement& placement = layout.placements[axis];
      if (placement.is_replicate()) placement = Placement::Shard(0);
    }
    return layout;
  }

  const CompileRequest& request_;
  const PlanOptions& options_;
  const StagePlacement placement_;
  Session& session_;
  const PassObserver& observer_;
  std::vector<std::string> keys_;          // of the stages of each plan
  std::deque<PlanOptions> stage_options_;  // of each plan
  std::deque<StrategyTree> trees_;
  std::deque<CompileRequest> requests_;
  std::vector<std::unique_ptr<ProgramPlan>> plans_;
  std::vector<int> of_stage_;  // the plan that a stage is written from
  std::vector<BorderCrossing> borders_;
  std::vector<SharedCrossing> shared_crossings_;
  GraphAssembly assembly_;
};

}  // namespace

absl::StatusOr<ExecutionGraph> CompileUnlikeStages(const CompileRequest& request, Session& session,
                                                   const PassObserver& observer) {
  return UnlikeStages(request, session, observer).Compile();
}

}  // namespace plancast
