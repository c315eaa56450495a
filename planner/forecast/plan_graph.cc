#include "planner/forecast/plan_graph.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/memo_key.h"
#include "base/status_macros.h"
#include "compiler/finetune/fine_tune.h"
#include "compiler/rewrite/join_ops.h"
#include "planner/forecast/balanced_cuts.h"
#include "planner/forecast/balanced_layers.h"
#include "planner/forecast/found_order.h"
#include "strategy/context_parallel.h"
#include "strategy/nodes/op_path.h"
#include "strategy/nodes/stage_cuts.h"
#include "strategy/tree_check.h"

namespace plancast {
namespace {

int64_t DimSize(const ModelGraph& graph, absl::string_view name) {
  for (const ModelDim& dim : graph.dims) {
    if (dim.name == name) return dim.size;
  }
  return 0;
}

// The mesh axes over which nodes shard anything.
std::set<std::string> HomeAxesBelow(const StrategyTree& tree) {
  std::set<std::string> axes;
  for (const auto& [path, node] : tree.nodes()) {
    for (const std::optional<Home>& home : node.home.of) {
      if (path.empty() || !home.has_value()) continue;
      for (std::string& axis : home->axes()) axes.insert(std::move(axis));
    }
  }
  return axes;
}

PlanContext ContextOfJob(const ModelGraph& graph, const Job& job, const Machine& machine) {
  PlanContext context = ContextOf(graph, machine, job.global_batch);
  context.node_zero = job.strategy.MostShardedBelow();
  context.home_axes = HomeAxesBelow(job.strategy);
  // A tree that splits nodes by hand answers for its own sizes (Bind checks).
  for (const auto& [path, node] : job.strategy.nodes()) {
    if (path.empty() ? node.FindSplit("tp") == nullptr : node.split.empty()) continue;
    context.heads = context.kv_heads = context.ffn = context.expert_ffn = 0;
  }
  return context;
}

// Values of all activations that a sample makes.
double ValuesOfASample(const ModelGraph& graph) {
  double values = 0;
  for (const Segment& segment : graph.segments) {
    for (const TensorInfo& tensor : graph.bodies[segment.body].tensors) {
      if (tensor.kind == TensorInfo::Kind::kParameter) continue;
      double size = static_cast<double>(segment.repeat);
      for (const int dim : tensor.dims) {
        if (graph.dims[dim].is_bound_by_plan()) continue;
        size *= static_cast<double>(std::max<int64_t>(graph.dims[dim].size, 1));
      }
      values += size;
    }
  }
  return values;
}

// All values that a data-parallel rank may keep at once are counted in 64 bits, in bytes,
// and so is the batch.
absl::Status CheckSizes(const PlanGraph& plan, Session& session) {
  const PlanOptions& options = plan.chosen.options;
  ASSIGN_OR_RETURN(
      const std::shared_ptr<const double> values,
      session.Memo<double>("sample|" + plan.graph_key, [&]() -> absl::StatusOr<double> {
        return ValuesOfASample(*plan.graph);
      }));
  const double micro_batches = static_cast<double>(options.micro_batches);
  const double kept =
      options.schedule == Schedule::kGpipe || options.schedule == Schedule::kBreadthFirst ||
              options.schedule == Schedule::kTable || options.schedule == Schedule::kOngoing ||
              FollowsTimes(options.schedule)
          ? micro_batches
          : std::min(micro_batches, 2.0 * static_cast<double>(options.pp * options.vpp));
  const double micro_batch = static_cast<double>(options.micro_batch);
  constexpr double kMostValues = 0x1p59, kMostSamples = 0x1p62;
  if (micro_batch * kept * *values <= kMostValues &&
      micro_batch * micro_batches * static_cast<double>(options.dp) <= kMostSamples) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("mb=", options.micro_batch, " and a batch of ", options.micro_batches,
                   " micro-batches make more values on a data-parallel rank than 64 bits count in "
                   "bytes. Take a smaller mb or a smaller batch."));
}

// The request keeps pointers to all of these.
CompileRequest RequestFor(const Job& job, const PlanGraph& plan, const SoftwareProfile& profile) {
  CompileRequest request;
  request.graph = plan.graph.get();
  request.tree = plan.tree == nullptr ? &job.strategy : plan.tree.get();
  request.options = &plan.chosen.options;
  request.profile = &profile;
  request.dtype = job.dtype;
  request.graph_key = plan.graph_key;
  return request;
}

// PlanContext::stage_dims of a model that is cut there. Of a list of layers that several stages
// hold, each has all.
std::vector<std::set<std::string>> DimsOfStages(const ModelGraph& graph,
                                                const std::vector<ModelCut>& cuts) {
  std::vector<std::set<std::string>> dims(cuts.size() + 1);
  const auto stage_of = [&](const ModelCut& at) {
    return std::upper_bound(cuts.begin(), cuts.end(), at) - cuts.begin();
  };
  for (size_t s = 0; s < graph.segments.size(); ++s) {
    const Segment& segment = graph.segments[s];
    const std::vector<OpNode>& ops = graph.bodies[segment.body].ops;
    for (size_t o = 0; o < ops.size(); ++o) {
      const int index = static_cast<int>(s), op = static_cast<int>(o);
      const auto last = stage_of({index, segment.repeat - 1, op});
      for (auto stage = stage_of({index, 0, op}); stage <= last; ++stage) {
        for (const int dim : ops[o].factor_dims) {
          if (dim >= 0) dims[stage].insert(graph.dims[dim].name);
        }
      }
    }
  }
  return dims;
}

// A settled plan, once for all that are alike.
absl::StatusOr<std::shared_ptr<const ExecutionGraph>> Compiled(const Job& job,
                                                               const PlanGraph& plan,
                                                               const SoftwareProfile& profile,
                                                               Session& session) {
  const std::string key =
      absl::StrCat("execution|", MemoKey(plan.chosen.options), "|", DTypeName(job.dtype), "|",
                   job.profile.StructureKey(), "|", job.strategy.ToJson(), "|", plan.graph_key);
  return session.Memo<ExecutionGraph>(
      key, [&] { return Compile(RequestFor(job, plan, profile), session); });
}

// The plan as the model is drawn for it: the vocabulary is padded once for all stages.
ShortForm WidestOf(const StrategyTree& strategy) {
  ShortForm form = strategy.PlanOfRoot();
  for (const StageNodes& stage : strategy.stages()) {
    const auto tp = stage.place.mesh.find("tp");
    if (tp != stage.place.mesh.end()) {
      form.tp = std::lcm(std::max<int64_t>(1, form.tp.value_or(1)), tp->second);
    }
    const auto ep = stage.place.mesh.find("ep");
    if (ep != stage.place.mesh.end()) form.ep = std::max(form.ep.value_or(1), ep->second);
  }
  return form;
}

absl::StatusOr<ChosenPlan> ChooseFor(const Job& job, const Machine& machine,
                                     const PlanContext& context) {
  const SoftwareProfile profile = job.profile.For(job.dtype, Schedule::kNone);
  if (!job.strategy.HasStagePlaces())
    return ChoosePlan(job.strategy.PlanOfRoot(), context, profile);
  std::vector<StageMeshSpec> places;
  for (const StageNodes& stage : job.strategy.stages()) places.push_back(stage.place);
  using Range = std::pair<int64_t, int64_t>;
  const auto host_devices = [&machine](int64_t host) -> absl::StatusOr<Range> {
    int64_t before = 0;
    for (int s = 0; s < machine.num_sections(); ++s) {
      const Machine::Spec& section = machine.section(s).spec();
      if (host < before + section.hosts) {
        const int64_t first = machine.FirstDevice(s) + (host - before) * section.gpus_per_host;
        return Range(first, first + section.gpus_per_host);
      }
      before += section.hosts;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "there is no host ", host, "; `", machine.spec().name, "` has ", before, ", from 0 on."));
  };
  return ChooseStages(job.strategy.PlanOfRoot(), places, context, host_devices, profile,
                      job.strategy.idle());
}

}  // namespace

PlanContext ContextOf(const ModelGraph& graph, const Machine& machine,
                      std::optional<int64_t> global_batch) {
  PlanContext context;
  context.devices = machine.num_devices();
  context.layers = graph.LayerCount();
  context.heads = graph.heads;
  context.kv_heads = DimSize(graph, "kv_heads");
  context.ffn = DimSize(graph, "ffn");
  context.experts = DimSize(graph, "experts");
  context.expert_ffn = DimSize(graph, "expert_ffn");
  context.hidden = graph.hidden;
  context.vocab = graph.vocab;
  context.seq = graph.seq;
  context.global_batch = global_batch;
  context.lists = graph.HasLists();
  context.work_before = context.lists && !graph.segments.front().in_list();
  context.work_after = context.lists && !graph.segments.back().in_list();
  context.deal = [&graph](int64_t stages) { return BalancedLayers(graph, stages); };
  // Layers of transformers are cut where `stages` says so, and else nowhere.
  if (graph.hidden == 0 || !context.lists) {
    context.cut = [&graph](int64_t stages) { return BalancedCuts(graph, stages); };
  }
  return context;
}

absl::StatusOr<PlanGraph> DrawFor(const Job& job, const ShortForm& form, Session& session) {
  GraphChoices choices;
  choices.attention = job.profile.kernels.attention;
  if (form.attn.has_value()) {
    choices.attention = *kAttentionNames.Find(*form.attn);
  }
  choices.dropout = job.profile.kernels.dropout;
  choices.vocab_pad_multiple =
      job.profile.kernels.vocab_pad_multiple * std::max<int64_t>(1, form.tp.value_or(1));
  choices.experts_weigh_activations = job.profile.experts.weigh_activations;
  if (job.profile.experts.sort_tokens) choices.experts_sorted_over = form.ep.value_or(1);
  choices.shared_experts_beside = job.profile.experts.shared_beside && form.ep.value_or(1) > 1;
  PlanGraph plan;
  plan.graph_key = absl::StrCat(
      "graph|", job.model->key(), "|", static_cast<int>(choices.attention), "|", choices.dropout,
      "|", choices.vocab_pad_multiple, "|", choices.experts_weigh_activations, "|",
      choices.experts_sorted_over, "|", choices.shared_experts_beside);
  ASSIGN_OR_RETURN(plan.graph, session.Memo<ModelGraph>(plan.graph_key,
                                                        [&] { return job.model->Draw(choices); }));
  if (job.strategy.JoinsOps()) {
    plan.graph_key += "|joined" + JoinKey(job.strategy);
    ASSIGN_OR_RETURN(plan.graph, session.Memo<ModelGraph>(plan.graph_key, [&] {
      return JoinedOps(*plan.graph, job.strategy);
    }));
  }
  if (!job.strategy.fine_tunes()) return plan;
  plan.graph_key += "|tuned" + FineTuneKey(job.strategy);
  ASSIGN_OR_RETURN(plan.graph, session.Memo<ModelGraph>(plan.graph_key, [&] {
    return FineTuned(*plan.graph, job.strategy);
  }));
  return plan;
}

namespace {

// The model before nodes join any ops of it; nullptr: they join none.
absl::StatusOr<std::shared_ptr<const ModelGraph>> DrawnApart(const Job& job, Session& session) {
  if (!job.strategy.JoinsOps()) return nullptr;
  Job apart = job;
  for (const auto& [path, said] : job.strategy.nodes()) {
    ASSIGN_OR_RETURN(Directives * node, apart.strategy.Node(path));
    node->compute_at.clear();
  }
  ASSIGN_OR_RETURN(const PlanGraph drawn, DrawFor(apart, WidestOf(apart.strategy), session));
  return drawn.graph;
}

}  // namespace

absl::StatusOr<PlanGraph> SettlePlan(const Job& job, const Machine& machine, Session& session) {
  ASSIGN_OR_RETURN(PlanGraph plan, DrawFor(job, WidestOf(job.strategy), session));
  PlanContext context = ContextOfJob(*plan.graph, job, machine);
  if (!job.strategy.stages().empty()) {
    ASSIGN_OR_RETURN(context.stages, StageCuts(*plan.graph, job.strategy.stages()));
    if (job.strategy.HasStagePlaces()) {
      context.stage_dims = DimsOfStages(*plan.graph, *context.stages);
    }
  }
  ASSIGN_OR_RETURN(plan.chosen, ChooseFor(job, machine, context));
  const PlanOptions& options = plan.chosen.options;
  if (options.cp > 1) {
    StrategyTree tree = job.strategy;
    tree.plan().cp_type = ContextParallel{options.cp_type, options.cp_head_ranks}.DebugString();
    plan.tree = std::make_shared<const StrategyTree>(std::move(tree));
  }
  if (!options.cuts.empty()) {
    plan.chosen.chosen["stages"] = StagesText(*plan.graph, options.cuts);
  }
  RETURN_IF_ERROR(CheckSizes(plan, session));
  if (!job.strategy.nodes().empty()) {
    std::vector<SizedAxis> mesh = {
        {"pp", options.pp}, {"dp", options.dp}, {"cp", options.cp}, {"tp", options.tp}};
    if (DimSize(*plan.graph, "experts") > 0) {
      mesh.emplace_back("ep", options.ep);
      mesh.emplace_back("etp", options.expert_tp());
    }
    // Nodes may name ops that are joined.
    ASSIGN_OR_RETURN(const auto apart, DrawnApart(job, session));
    RETURN_IF_ERROR(CheckTree(job.strategy, mesh, PathsOf(apart ? *apart : *plan.graph)));
  }
  return plan;
}

absl::Status OrderPasses(const Job& job, const Machine& machine, const Pricing* pricing,
                         Session& session, PlanGraph* plan) {
  const PlanOptions& options = plan->chosen.options;
  if (!FollowsTimes(options.schedule)) return absl::OkStatus();
  if (pricing == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the order of schedule=", kScheduleNames[options.schedule],
        " follows from what passes take, and nothing is priced here. List it as a table, as "
        "`find_schedule` of the Python package gives it, or name another schedule."));
  }
  const SoftwareProfile profile = job.profile.For(job.dtype, options.schedule);
  const auto compile =
      [&](const PlanOptions& few) -> absl::StatusOr<std::shared_ptr<const ExecutionGraph>> {
    PlanGraph measured = *plan;
    measured.chosen.options = few;
    return Compiled(job, measured, profile, session);
  };
  std::vector<ChosenPlan> chosen = {plan->chosen};
  // Layers that turn back have two chunks a stage, which need not be said (UsualChunks).
  if (options.schedule == Schedule::kSearch && !job.strategy.PlanOfRoot().vpp.has_value()) {
    Job turning = job;
    turning.strategy.plan().vpp = 2;
    absl::StatusOr<PlanGraph> other = SettlePlan(turning, machine, session);
    if (other.ok()) chosen.push_back(std::move(other->chosen));
  }
  std::vector<PlanOptions> plans;
  for (const ChosenPlan& one : chosen) plans.push_back(one.options);
  ASSIGN_OR_RETURN(FoundOrder found, FindOrder(plans, profile, machine, *pricing, compile));
  plan->chosen = std::move(chosen[found.plan]);
  plan->chosen.options.schedule_table = std::move(found.schedule_table);
  plan->chosen.notes.push_back(std::move(found.note));
  return absl::OkStatus();
}

absl::StatusOr<PlanGraph> DrawAndCompile(const Job& job, const Machine& machine, Session& session,
                                         const Pricing* pricing, const PassObserver& observer) {
  ASSIGN_OR_RETURN(PlanGraph plan, SettlePlan(job, machine, session));
  RETURN_IF_ERROR(OrderPasses(job, machine, pricing, session, &plan));
  const SoftwareProfile profile = job.profile.For(job.dtype, plan.chosen.options.schedule);
  if (observer) {  // the passes must run to be seen
    ASSIGN_OR_RETURN(ExecutionGraph execution,
                     Compile(RequestFor(job, plan, profile), session, observer));
    plan.execution = std::make_shared<const ExecutionGraph>(std::move(execution));
    return plan;
  }
  ASSIGN_OR_RETURN(plan.execution, Compiled(job, plan, profile, session));
  return plan;
}

absl::StatusOr<PlanGraph> DrawAndCompileInto(const Job& job, const Machine& machine,
                                             const Pricing& pricing, Session& session,
                                             const ProgramCheck& check, GraphWorkspace* workspace) {
  ASSIGN_OR_RETURN(PlanGraph plan, SettlePlan(job, machine, session));
  RETURN_IF_ERROR(OrderPasses(job, machine, &pricing, session, &plan));
  const SoftwareProfile profile = job.profile.For(job.dtype, plan.chosen.options.schedule);
  CompileRequest request = RequestFor(job, plan, profile);
  request.check = check;
  RETURN_IF_ERROR(workspace->Compile(request, session));
  plan.execution =
      std::shared_ptr<const ExecutionGraph>(std::shared_ptr<void>(), &workspace->graph());
  return plan;
}

}  // namespace plancast
