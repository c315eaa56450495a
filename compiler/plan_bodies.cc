#include "compiler/plan_bodies.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/memo_key.h"
#include "base/status_macros.h"
#include "compiler/bind/plan_mesh.h"
#include "compiler/body/body_pieces.h"
#include "compiler/body/differentiate.h"
#include "compiler/body/partition.h"
#include "compiler/body/placed_plan.h"
#include "compiler/body/relayout_pass.h"
#include "compiler/body_keys.h"
#include "compiler/data_ranks.h"
#include "compiler/loops/comm_loops.h"
#include "compiler/loops/loop_tasks.h"
#include "compiler/loops/product_loops.h"
#include "compiler/lower/body_state.h"
#include "compiler/lower/kernels/by_document.h"
#include "compiler/lower/op_memory.h"
#include "compiler/lower/quantized.h"
#include "compiler/rewrite/fuse_comms.h"
#include "compiler/shared_layouts.h"
#include "strategy/schedule/stage_placement.h"

namespace plancast {
namespace {

// Layouts in which the results of the model leave it (the loss of every token):
// as they are made, but whole where they would be partial.
std::vector<Layout> MadeOutPorts(const Body& body, const DifferentiatedBody& steps,
                                 const DeviceMesh& mesh) {
  std::vector<Layout> layouts;
  for (int port : body.out_ports) {
    layouts.push_back(Layout::Replicated(mesh.num_axes()));
    for (const OpStep& step : steps.forward) {
      for (size_t i = 0; i < step.outputs.size(); ++i) {
        if (step.outputs[i].tensor != port) continue;
        layouts.back() = step.partition.tensors[step.rule->outputs()[i]];
      }
    }
    for (Placement& placement : layouts.back().placements) {
      if (placement.is_partial() || placement.is_on()) placement = Placement::Replicate();
    }
  }
  return layouts;
}

// Where segments write what modules read: the repeats of a body, and the bodies of one zone. Per
// segment the one that begins its module, as whose in-ports its out-ports are; -1: they need not
// be.
std::vector<int> HandOnAsTheyRead(const BoundModel& bound) {
  const std::vector<Segment>& segments = bound.graph.segments;
  std::vector<int> begins(segments.size(), 0), in_zone(segments.size(), 0);
  for (size_t s = 0; s < segments.size(); ++s) {
    begins[s] = segments[s].continues ? begins[s - 1] : static_cast<int>(s);
    if (!segments[s].continues) in_zone[bound.places[s].zone] += segments[s].repeat > 1 ? 2 : 1;
  }
  for (size_t s = 0; s < segments.size(); ++s) {
    const bool goes_on = s + 1 < segments.size() && segments[s + 1].continues;
    if (goes_on || in_zone[bound.places[begins[s]].zone] < 2) begins[s] = -1;
  }
  return begins;
}

// Layouts in which tensors cross from segment to segment: as the first reader wants them,
// which may come after modules that only hand them on; whole if nobody reads them.
std::vector<std::vector<Layout>> PortLayouts(
    const BoundModel& bound,
    const std::vector<std::shared_ptr<const DifferentiatedBody>>& differentiated,
    const std::vector<int>& hand_on) {
  const std::vector<Segment>& segments = bound.graph.segments;
  std::vector<std::vector<Layout>> in_ports(segments.size() + 1);
  const Body& last = bound.graph.bodies[segments.back().body];
  in_ports.back() = MadeOutPorts(last, *differentiated[segments.size() - 1], bound.mesh);
  for (size_t s = segments.size(); s-- > 0;) {
    const Body& body = bound.graph.bodies[segments[s].body];
    const std::vector<std::optional<Layout>> wanted = WantedInPorts(body, *differentiated[s]);
    std::vector<Layout> made;  // by the module before
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (wanted[i].has_value() && wanted[i]->has_on()) {
        // Read on some ranks only: it comes as it is made.
        if (made.empty()) {
          made = MadeOutPorts(bound.graph.bodies[segments[s - 1].body], *differentiated[s - 1],
                              bound.mesh);
        }
        in_ports[s].push_back(made[i].WithoutHalos());
        continue;
      }
      const auto out = std::find(body.out_ports.begin(), body.out_ports.end(), body.in_ports[i]);
      in_ports[s].push_back(wanted[i].has_value() ? *wanted[i]
                            : out != body.out_ports.end()
                                ? in_ports[s + 1][out - body.out_ports.begin()]
                                : Layout::Replicated(bound.mesh.num_axes()));
    }
  }
  for (size_t s = 1; s < segments.size(); ++s) {
    if (const int zone = bound.places[s].zone; zone < static_cast<int>(s)) {
      in_ports[s] = in_ports[zone];
    } else if (hand_on[s - 1] >= 0) {
      in_ports[s] = in_ports[hand_on[s - 1]];
    }
  }
  return in_ports;
}

void MeasurePorts(const LowerContext& context, CompiledBody* compiled) {
  for (int value : compiled->plan.out_ports) {
    const Value& v = compiled->plan.values[value];
    compiled->out_port_bytes.push_back(static_cast<int64_t>(std::ceil(context.LocalBytes(v))));
    const size_t port = compiled->grad_port_bytes.size();
    compiled->grad_port_bytes.push_back(
        compiled->plan.grad_in_ports[port] < 0 ? 0 : compiled->out_port_bytes.back());
    for (int axis : context.mesh->AxesOf("tp")) {
      compiled->out_ports_replicated &= v.layout.placements[axis].is_replicate();
    }
  }
}

class BodyCompilation {
 public:
  BodyCompilation(const CompileRequest& request, Session& session, const PassObserver& observer)
      : request_(request), session_(session), observer_(observer) {}

  absl::StatusOr<PlanBodies> Run() {
    ASSIGN_OR_RETURN(bound_, Bind(*request_.graph, *request_.tree, *request_.options,
                                  request_.profile->kernels.whole_rules));
    Report("bind", [&] { return bound_.DebugString(); });
    any_dp_ = OnlyBatchIsDataParallel(bound_);
    for (const BoundBody& body : bound_.bodies) {
      ASSIGN_OR_RETURN(texts_.emplace_back(), TextOf(body));
      keys_.push_back(BodyKey(bound_, body, request_, any_dp_, *texts_.back()));
    }
    RETURN_IF_ERROR(DifferentiateAll());
    RETURN_IF_ERROR(CompileAll());
    RETURN_IF_ERROR(CheckLoops());
    ASSIGN_OR_RETURN(std::vector<SharedParameter> shared, Shared());
    const bool depends = std::any_of(compiled_.begin(), compiled_.end(),
                                     [](const auto& body) { return body->depends_on_data_ranks; });
    return PlanBodies{std::move(bound_), std::move(compiled_), std::move(shared), depends};
  }

 private:
  template <typename Dump>
  void Report(absl::string_view pass, Dump&& dump) {
    if (observer_) observer_(pass, dump());
  }

  const Body& BodyOf(size_t bound_body) const {
    return bound_.graph.bodies[bound_.bodies[bound_body].body];
  }

  template <typename Dump>
  void ReportBodies(absl::string_view pass, Dump&& dump) {
    Report(pass, [&] {
      std::string out;
      for (size_t b = 0; b < bound_.bodies.size(); ++b) {
        if (bound_.Holds(b)) absl::StrAppend(&out, dump(b));
      }
      return out;
    });
  }

  absl::Status DifferentiateAll() {
    for (size_t b = 0; b < bound_.bodies.size(); ++b) {
      auto body = session_.Memo<DifferentiatedBody>(absl::StrCat("partition|", keys_[b]),
                                                    [&] { return DifferentiateAndPartition(b); });
      if (!body.ok() && bound_.Holds(b)) return body.status();
      differentiated_.push_back(body.ok() ? *std::move(body)
                                          : std::make_shared<const DifferentiatedBody>());
    }
    ReportBodies("differentiate", [&](size_t b) {
      return differentiated_[b]->DebugString(bound_.graph, BodyOf(b));
    });
    ReportBodies("partition", [&](size_t b) {
      std::string out = absl::StrCat("body ", BodyOf(b).name, "\n");
      for (const auto* steps : {&differentiated_[b]->forward, &differentiated_[b]->backward}) {
        for (const OpStep& step : *steps) {
          absl::StrAppend(&out, "  ", BodyOf(b).ops[step.op].name, " ", step.rule->name(), "\n",
                          step.partition.DebugString(*step.rule, bound_.mesh));
        }
      }
      return out;
    });
    return absl::OkStatus();
  }

  absl::StatusOr<std::shared_ptr<const std::string>> TextOf(const BoundBody& body) const {
    const auto make = [&]() -> absl::StatusOr<std::string> {
      return BodyText(bound_.graph.bodies[body.body]);
    };
    // Joined bodies are the plan's own.
    const bool own = body.body >= static_cast<int>(request_.graph->bodies.size());
    if (own || request_.graph_key.empty()) return std::make_shared<const std::string>(*make());
    return session_.Memo<std::string>(absl::StrCat("text|", body.body, "|", request_.graph_key),
                                      make);
  }

  absl::StatusOr<DifferentiatedBody> DifferentiateAndPartition(size_t b) {
    const BoundBody& body = bound_.bodies[b];
    ASSIGN_OR_RETURN(const auto steps,
                     session_.Memo<DifferentiatedBody>(StepsKey(body, request_, *texts_[b]), [&] {
                       return DifferentiateBody(bound_.graph, body,
                                                request_.profile->kernels.fusions, session_,
                                                {request_.profile->recompute.replays_only_needed,
                                                 request_.profile->recompute.keeps_unread});
                     }));
    return PartitionBody(bound_.graph, bound_.mesh, body, *steps);
  }

  absl::Status CompileAll() {
    const std::vector<int> hand_on = HandOnAsTheyRead(bound_);
    const std::vector<std::vector<Layout>> ports = PortLayouts(bound_, differentiated_, hand_on);
    std::vector<int> segment_of(bound_.bodies.size(), -1);  // the first that runs as this
    std::iota(segment_of.begin(), segment_of.begin() + bound_.graph.segments.size(), 0);
    for (const std::vector<StageRun>& runs : bound_.stages) {
      for (const StageRun& run : runs) {
        if (int& first = segment_of[run.bound_body]; first < 0) first = run.segment;
      }
    }
    for (size_t b = 0; b < bound_.bodies.size(); ++b) {
      if (!bound_.Holds(b) || segment_of[b] < 0) {  // as no stage runs variants that are joined
        compiled_.push_back(std::make_shared<const CompiledBody>());
        continue;
      }
      const int s = segment_of[b], last = bound_.LastOf(b, s);
      const std::vector<Layout>& out = hand_on[last] >= 0 ? ports[hand_on[last]] : ports[last + 1];
      const std::string key = absl::StrCat(
          "blocks|", LayoutsKey(ports[s], bound_.mesh), "|", LayoutsKey(out, bound_.mesh), "|",
          ModelGraph::PathOf(bound_.graph.segments[s]), "|", keys_[b],
          bound_.bodies[b].on.empty() ? "" : absl::StrCat("|at ", request_.place.DebugString()),
          bound_.bodies[b].pieces.empty() || !bound_.EndsModel(b, s) ? "" : "|ends");
      const auto make = [&] { return CompileBody(b, s, ports[s], out); };
      ASSIGN_OR_RETURN(auto body, session_.Memo<CompiledBody>(key, make));
      if (any_dp_ && body->depends_on_data_ranks) {  // the first's who asked: others have their own
        ASSIGN_OR_RETURN(body, session_.Memo<CompiledBody>(
                                   absl::StrCat("of ", request_.options->dp, "|", key), make));
      }
      compiled_.push_back(std::move(body));
    }
    ReportBodies("relayout", [&](size_t b) {
      const auto whole = whole_plans_.find(b);
      const BodyPlan& plan = whole == whole_plans_.end() ? compiled_[b]->plan : whole->second;
      return plan.DebugString(bound_.graph, BodyOf(b), bound_.mesh);
    });
    ReportBodies("synchronise", [&](size_t b) {
      return absl::StrCat("body ", BodyOf(b).name, ": ",
                          compiled_[b]->state.DebugString(bound_.mesh), "\n");
    });
    return absl::OkStatus();
  }

  absl::StatusOr<CompiledBody> CompileBody(size_t b, int segment,
                                           const std::vector<Layout>& in_ports,
                                           const std::vector<Layout>& out_ports) {
    CompiledBody compiled;
    ASSIGN_OR_RETURN(
        compiled.plan,
        InsertRelayouts(bound_.graph, bound_.mesh, bound_.bodies[b], *differentiated_[b], in_ports,
                        out_ports, *request_.profile, DelaysExperts(*request_.options)));
    RETURN_IF_ERROR(LoopOverParts(bound_.graph, bound_.mesh, bound_.bodies[b], &compiled.plan));
    LowerContext context{&bound_.graph,
                         &bound_.mesh,
                         &bound_.bodies[b],
                         request_.profile,
                         request_.dtype,
                         bound_.load.empty() ? nullptr : &bound_.load,
                         request_.options->splits_backward()};
    context.hides_context = HidesContext(*request_.options);
    context.documents = DealOf(*request_.options);
    if (OverlapsProducts(*request_.options)) {
      TpTransports transports = request_.profile->kernels.tp_transports;
      if (!GathersInParts(context)) transports.gather = transports.gradient_gather = {};
      LoopOverProducts(bound_.graph, bound_.mesh, bound_.bodies[b], transports, &compiled.plan);
    }
    RETURN_IF_ERROR(FuseComms(bound_.graph, bound_.bodies[b], &compiled.plan));
    BodyPlan whole;  // of all ranks, where pieces are cut from it
    const bool some = !bound_.bodies[b].on.empty();
    if (some) {
      if (bound_.bodies[b].pieces.empty()) JoinRooted(bound_.bodies[b], &compiled.plan);
      if (!bound_.bodies[b].pieces.empty()) whole = compiled.plan;
      if (observer_) whole_plans_[b] = compiled.plan;
      compiled.plan = PlanAt(std::move(compiled.plan), bound_.bodies[b], request_.place);
    }
    LeaveSumsOut(segment, &context);
    compiled.state =
        SummariseState(bound_.graph, bound_.mesh, BodyOf(b), compiled.plan, *request_.profile);
    const std::string path = ModelGraph::PathOf(bound_.graph.segments[segment]);
    if (bound_.bodies[b].pieces.empty()) {
      compiled.blocks = LowerBody(context, compiled.plan, BodyOf(b).name, path);
    } else {
      ASSIGN_OR_RETURN(BodyInPieces cut,
                       RunInPieces(bound_.graph, bound_.mesh, bound_.bodies[b],
                                   some ? whole : compiled.plan, bound_.EndsModel(b, segment)));
      if (some) cut.plan = PlanAt(std::move(cut.plan), cut.bound, request_.place);
      LowerContext of_pieces = context;
      of_pieces.graph = &cut.graph;
      of_pieces.bound = &cut.bound;
      compiled.blocks = LowerBody(of_pieces, cut.plan, BodyOf(b).name, path);
    }
    for (BlockTemplate* block :
         {&compiled.blocks.forward, &compiled.blocks.backward, &compiled.blocks.weights}) {
      *block = RunLoops(std::move(*block));
      block->block.layers = bound_.bodies[b].layers;
    }
    const HeldMemory held = HeldBy(context, compiled.plan.place);
    compiled.held_bytes = held.each;
    compiled.held_shared_bytes = held.shared;
    MeasurePorts(context, &compiled);
    compiled.is_layer = bound_.graph.segments[segment].in_list();
    compiled.depends_on_data_ranks =
        request_.options->dp > 1 &&
        DependsOnDataRanks(bound_, bound_.bodies[b], compiled.plan, compiled.blocks);
    return compiled;
  }

  // What nodes say of tensors that come in parts holds for some op.
  absl::Status CheckLoops() const {
    std::map<std::string, bool> holds;  // by node
    std::map<std::string, std::string> said;
    for (size_t b = 0; b < bound_.bodies.size(); ++b) {
      const auto& loops = bound_.bodies[b].loops;
      if (loops.empty() || !bound_.Holds(b)) continue;
      const std::set<int> in_parts = OpsInParts(compiled_[b]->plan);
      for (size_t o = 0; o < loops.size(); ++o) {
        const auto& [loop, source] = loops[o];
        if (loop.empty() || source.empty()) continue;
        said[source] = loop.DebugString();
        holds[source] = holds[source] || in_parts.count(static_cast<int>(o)) > 0;
      }
    }
    for (const auto& [source, taken] : holds) {
      if (taken) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "`", source, "`: `communicate: ", said[source],
          "`: nothing that is read there is gathered so. Split what makes it along the loop's "
          "factor (`explain` says how ops are split), or leave it out."));
    }
    return absl::OkStatus();
  }

  // Of a vocabulary that is spread over the stages: these sum what each has made of its part.
  void LeaveSumsOut(int segment, LowerContext* context) const {
    const PlanOptions& options = *request_.options;
    if (!options.spreads_vocabulary() || !bound_.IsSpread(segment)) return;
    context->outside = bound_.mesh.FindAxis("pp").value();
    const bool output = segment >= bound_.begins[2];
    context->splits_backward = output && options.splits_output();
    context->sums_outside = output && options.vocab_parallel != VocabParallel::kInterlaced;
  }

  // With the elements that their last users have on a device, of users that the plan's stages hold.
  absl::StatusOr<std::vector<SharedParameter>> Shared() const {
    std::vector<SharedParameter> shared = SharedParametersOf(bound_.graph);
    for (SharedParameter& parameter : shared) {
      RETURN_IF_ERROR(CheckKeptAlike(bound_, compiled_, parameter));
      const auto held = std::find_if(parameter.uses.rbegin(), parameter.uses.rend(),
                                     [&](const auto& use) { return bound_.Holds(use.segment); });
      const bool holds = held != parameter.uses.rend();
      const SharedParameter::Use& last = holds ? *held : parameter.uses.back();
      const Body& body = bound_.graph.bodies[bound_.graph.segments[last.segment].body];
      parameter.frozen = body.tensors[last.tensor].frozen;
      if (!holds) continue;
      const TensorFacts facts = FactsOf(bound_.graph, body, {last.tensor, -1, false, false});
      const BodyPlan& plan = compiled_[last.segment]->plan;
      const Layout& layout = plan.parameter_layouts[last.tensor];
      parameter.elements =
          plan.place.Holds(layout)
              ? static_cast<int64_t>(layout.LocalElements(bound_.mesh, facts.shape))
              : 0;
    }
    return shared;
  }

  const CompileRequest& request_;
  Session& session_;
  const PassObserver& observer_;
  BoundModel bound_;
  bool any_dp_ = false;
  std::vector<std::shared_ptr<const std::string>> texts_;  // BodyText, per bound body
  std::vector<std::string> keys_;
  std::vector<std::shared_ptr<const DifferentiatedBody>> differentiated_;
  std::vector<std::shared_ptr<const CompiledBody>> compiled_;
  std::map<size_t, BodyPlan> whole_plans_;  // to be seen: of all places
};

// Whether no op has two factors that run over the batch: the first alone is cut.
bool BatchIsCutWhole(const ModelGraph& graph) {
  const auto batch = graph.FindDim("batch");
  if (!batch.ok()) return true;
  for (const Body& body : graph.bodies) {
    for (const OpNode& op : body.ops) {
      if (std::count(op.factor_dims.begin(), op.factor_dims.end(), *batch) > 1) return false;
    }
  }
  return true;
}

// Without a word on single nodes, `dp` cuts the batch and nothing else, and `pp` cuts
// nothing: shards do not change with the number of their ranks.
bool IsPlain(const CompileRequest& request) {
  return !request.options->spreads_vocabulary() && request.tree->nodes().empty() &&
         request.tree->loads().empty() && !request.options->has_expert_mesh() &&
         ShardCuts(*request.options).empty() && BatchIsCutWhole(*request.graph);
}

// The options, less those that change no body. `any_ranks`: with any number of stages, and of
// data-parallel ranks above one. `joins`: nodes or the plan join layers to units.
PlanOptions BodyOptions(PlanOptions options, bool any_ranks, bool joins) {
  const PlanOptions usual;
  // Which layers of a stage run again depends on where they are.
  const bool placed = options.regroups_layers() && !PlacementOf(options).Loops();
  options.etp = options.expert_tp();
  if (!placed) {
    options.vpp = usual.vpp;
    options.schedule = usual.schedule;
    options.schedule_table.clear();
    options.most_ongoing.clear();
  }
  // Which units are joined depends on what is sharded; the cuts of that are PlanKey's.
  if (!joins) options.zero = usual.zero;
  options.node_zero = usual.node_zero;
  options.hsdp = usual.hsdp;
  options.reshard = usual.reshard;
  options.reshard_ranks = usual.reshard_ranks;
  options.prefetch = usual.prefetch;
  options.sync_each = usual.sync_each;
  options.sync_whole_each = usual.sync_whole_each;
  options.micro_batches = usual.micro_batches;
  options.search_memory = usual.search_memory;
  options.offload = usual.offload;
  options.offload_layers = usual.offload_layers;
  options.attention = usual.attention;  // the model is drawn with it
  options.bucket_bytes = usual.bucket_bytes, options.first_bucket_bytes = 0;
  options.optimizer = usual.optimizer;
  options.overlap.clear();
  if (any_ranks) options.dp = 2;
  // Which layers of each stage run again, and which together, depends on the layout, and so does
  // what some stages hold.
  if (!joins && !options.regroups_layers() && options.own_stages.empty()) {
    options.layout.clear();
    if (any_ranks) options.pp = usual.pp;
  }
  return options;
}

// All that bodies depend on but the graph, whose key is given. `any_ranks`: BodyOptions.
std::string PlanKey(const CompileRequest& request, bool any_ranks) {
  const PlanOptions& options = *request.options;
  const bool joins = options.unit_layers > 1 || request.tree->SaysUnits();
  std::string key =
      absl::StrCat("bodies|", request.graph_key, "|", DTypeName(request.dtype), "|",
                   request.profile->StructureKey(), "|", any_ranks, OverlapsProducts(options),
                   DelaysExperts(options), options.splits_backward() ? "|split|" : "|",
                   HidesContext(options) ? "cp|" : "", DealKey(*request.graph, options),
                   MemoKey(BodyOptions(options, any_ranks, joins)), MemoKey(ShardCuts(options)),
                   "|", request.place.DebugString());
  if (!request.tree->nodes().empty() || !request.tree->loads().empty()) {
    absl::StrAppend(&key, "|", request.tree->ToJson());
  }
  return key;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const PlanBodies>> CompileBodies(const CompileRequest& request,
                                                                Session& session,
                                                                const PassObserver& observer) {
  const auto make = [&] { return BodyCompilation(request, session, observer).Run(); };
  // The passes must run to be seen.
  if (observer || request.graph_key.empty()) {
    ASSIGN_OR_RETURN(PlanBodies bodies, make());
    return std::make_shared<const PlanBodies>(std::move(bodies));
  }
  const bool plain = IsPlain(request) && request.graph->documents.empty();
  if (plain && request.options->dp == 1 && request.options->unit_layers == 1) {
    // As those of two data-parallel ranks that have nothing to say to each other.
    PlanOptions options = *request.options;
    options.dp = 2;
    CompileRequest of_two = request;
    of_two.options = &options;
    const auto bodies = CompileBodies(of_two, session, observer);
    if (bodies.ok() && !(*bodies)->depends_on_data_ranks) return *bodies;
  }
  if (plain && request.options->dp > 1) {
    ASSIGN_OR_RETURN(auto bodies, session.Memo<PlanBodies>(PlanKey(request, true), make));
    if (!bodies->depends_on_data_ranks) return bodies;
  }
  return session.Memo<PlanBodies>(PlanKey(request, false), make);
}

}  // namespace plancast
