#include "compiler/bind/bind.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "base/suggest.h"
#include "compiler/bind/joined_layers.h"
#include "compiler/bind/layer_zones.h"
#include "compiler/bind/plan_mesh.h"
#include "compiler/bind/recompute.h"
#include "graph/model/cut_segments.h"
#include "graph/model/trained.h"
#include "graph/split/halo_inference.h"
#include "strategy/nodes/op_path.h"

namespace plancast {
namespace {

// Axes of the expert mesh.
bool IsView(absl::string_view axis) { return axis == "ep" || axis == "etp" || axis == "edp"; }

// Only vocabularies (`vocab`, `vocab_3` of the third table), which frameworks pad, and
// the slots of experts may end in a shorter last shard.
bool MayBeUneven(absl::string_view dim) { return absl::StartsWith(dim, "vocab") || dim == "slots"; }

std::string Divisors(int64_t n) {
  std::vector<int64_t> divisors;
  for (int64_t d = 1; d <= n && d <= 4096; ++d) {
    if (n % d == 0) divisors.push_back(d);
  }
  return absl::StrJoin(divisors, ", ");
}

int FactorOfDim(const ModelGraph& graph, const OpNode& op, absl::string_view dim) {
  for (size_t f = 0; f < op.factor_dims.size(); ++f) {
    if (op.factor_dims[f] >= 0 && graph.dims[op.factor_dims[f]].name == dim) {
      return static_cast<int>(f);
    }
  }
  return -1;
}

// Whether a directive may name this dim for `op`.
bool KnowsDim(const ModelGraph& graph, const OpNode& op, absl::string_view dim) {
  absl::ConsumePrefix(&dim, "!");
  if (absl::StartsWith(dim, ".")) return op.rule->FindFactor(dim.substr(1)).ok();
  return dim == kCompoundHeads || std::any_of(graph.dims.begin(), graph.dims.end(),
                                              [&](const ModelDim& d) { return d.name == dim; });
}

absl::Status CheckDim(const ModelGraph& graph, const OpNode& op, const std::string& path,
                      absl::string_view dim) {
  if (KnowsDim(graph, op, dim)) return absl::OkStatus();
  if (absl::StartsWith(dim, ".")) return op.rule->FindFactor(dim.substr(1)).status();
  std::vector<std::string> known;
  for (const ModelDim& d : graph.dims) known.push_back(d.name);
  known.emplace_back(kCompoundHeads);
  return absl::InvalidArgumentError(
      absl::StrCat("`", path, "`: no dim `", dim, "` to split; the model has ", JoinQuoted(known),
                   " (a factor of the op's rule is written `.k`).", DidYouMean(dim, known)));
}

absl::Status CheckDivides(const std::string& path, absl::string_view name, absl::string_view axis,
                          int64_t extent, int64_t parts) {
  if (parts == 1 || extent % parts == 0 || MayBeUneven(name)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("`", path, "` cannot shard dim `", name, "` (",
                                                 extent, ") over axis `", axis, "` of size ", parts,
                                                 ": ", extent, " is not divisible by ", parts,
                                                 ". Sizes that work: ", Divisors(extent), "."));
}

// Puts the compound `heads` on the axes of one root name. Returns false if the
// op has neither head dim.
absl::StatusOr<bool> SplitHeads(const ModelGraph& graph, const OpNode& op, const std::string& path,
                                absl::string_view axis, const std::vector<int>& axes,
                                const DeviceMesh& mesh, FactorSplit* split) {
  const int outer = FactorOfDim(graph, op, kHeadDims[0]);
  if (outer < 0 || !op.rule->may_cut(outer)) return false;
  const int inner = FactorOfDim(graph, op, kHeadDims[1]);
  const int64_t kv_heads = graph.dims[op.factor_dims[outer]].size;
  auto per_kv_dim = graph.FindDim(kHeadDims[1]);
  const int64_t per_kv = per_kv_dim.ok() ? graph.dims[*per_kv_dim].size : 1;
  const int64_t parts = mesh.SizeOf(axes);
  if (axes.size() == 1 && kv_heads % parts != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "`", path, "` cannot shard dim `heads` (", kv_heads * per_kv, " in ", kv_heads,
        " key/value groups) over axis `", axis, "` of size ", parts, ". Sizes that work: ",
        Divisors(kv_heads), " and ", kv_heads, " times a divisor of ", per_kv, "."));
  }
  // Outer sub-axes cut the key heads as long as these last, the rest the query heads.
  int64_t cut = 1;
  for (int axis : axes) {
    const bool over_keys = kv_heads % (cut * mesh.size(axis)) == 0;
    if (over_keys) cut *= mesh.size(axis);
    if (over_keys || inner >= 0) split->axes[over_keys ? outer : inner].push_back(axis);
  }
  return true;
}

absl::StatusOr<bool> ApplySplit(const ModelGraph& graph, const OpNode& op, const std::string& path,
                                const SplitDirective& directive, const std::vector<int>& axes,
                                const DeviceMesh& mesh, FactorSplit* split) {
  for (const std::string& dim : directive.dims) {
    RETURN_IF_ERROR(CheckDim(graph, op, path, dim));
    if (dim[0] == '!') {
      if (FactorOfDim(graph, op, absl::string_view(dim).substr(1)) >= 0) return false;
      continue;
    }
    if (dim == kCompoundHeads) {
      ASSIGN_OR_RETURN(const bool done,
                       SplitHeads(graph, op, path, directive.axis, axes, mesh, split));
      if (done) return true;
      continue;
    }
    int factor = -1;
    if (absl::StartsWith(dim, ".")) {
      ASSIGN_OR_RETURN(factor, op.rule->FindFactor(absl::string_view(dim).substr(1)));
    } else {
      factor = FactorOfDim(graph, op, dim);
    }
    if (factor < 0 || !op.rule->may_cut(factor)) continue;
    const int model_dim = op.factor_dims[factor];
    const int64_t extent = model_dim < 0 ? 1 : graph.dims[model_dim].size;
    int64_t parts = mesh.SizeOf(axes) * mesh.SizeOf(split->axes[factor]);
    RETURN_IF_ERROR(CheckDivides(path, model_dim < 0 ? dim : graph.dims[model_dim].name,
                                 directive.axis, extent, parts));
    split->axes[factor].insert(split->axes[factor].end(), axes.begin(), axes.end());
    return true;
  }
  return false;
}

// The layers of a pipeline stage that run again, told one by one in the order of its
// chunks: the first N (full:N), or every Nth from the Nth on (every:N), as torchtitan
// counts them.
class ReplayedLayers {
 public:
  explicit ReplayedLayers(const PlanOptions& options)
      : first_(options.recompute_layers), every_(options.recompute_every) {}

  // How many of the next `count` layers are alike, and whether they run again.
  std::pair<int64_t, bool> Next(int64_t count) {
    bool again;
    int64_t alike = count;
    if (every_ > 0) {
      const int64_t before = every_ - 1 - seen_ % every_;  // the next that runs again
      again = before == 0;
      if (every_ > 1) alike = again ? 1 : before;
    } else {
      again = seen_ < first_;
      if (again) alike = first_ - seen_;
    }
    const int64_t taken = std::min(count, alike);
    seen_ += taken;
    return {taken, again};
  }

 private:
  int64_t first_, every_, seen_ = 0;
};

// Where only some layers of a stage run again the rest runs the same body without.
void RecomputeSomeLayers(const PlanOptions& options, BoundModel* bound) {
  std::vector<int> plain_of(bound->bodies.size(), -1);
  std::vector<ReplayedLayers> layers(options.pp, ReplayedLayers(options));
  for (size_t v = 0; v < bound->stages.size(); ++v) {
    std::vector<StageRun> split_runs;
    for (const StageRun& run : bound->stages[v]) {
      if (!bound->graph.segments[run.segment].in_list()) {
        split_runs.push_back(run);
        continue;
      }
      for (int64_t done = 0; done < run.count;) {
        const auto [count, again] = layers[v % options.pp].Next(run.count - done);
        int body = run.bound_body;
        if (!again) {
          int& plain = plain_of[run.bound_body];
          if (plain < 0) {
            plain = static_cast<int>(bound->bodies.size());
            BoundBody without = bound->bodies[run.bound_body];
            std::fill(without.replays.begin(), without.replays.end(), OpReplay());
            bound->bodies.push_back(std::move(without));
          }
          body = plain;
        }
        split_runs.push_back({run.segment, body, run.layer_begin + done, count});
        done += count;
      }
    }
    bound->stages[v] = std::move(split_runs);
  }
}

// The segments between those that begin virtual stages.
std::vector<std::vector<StageRun>> DealSegments(const BoundModel& bound) {
  std::vector<std::vector<StageRun>> stages;
  for (size_t i = 0; i < bound.graph.segments.size(); ++i) {
    const int index = static_cast<int>(i);
    if (stages.size() < bound.begins.size() && bound.begins[stages.size()] == index) {
      stages.emplace_back();
    }
    const ZonedModel::Place& place = bound.places[i];
    stages.back().push_back(
        {index, place.alike, place.first_layer, bound.graph.segments[i].repeat});
  }
  return stages;
}

// The coordinates of the ranks that run an op. Sub-axes are those that nodes ask for (MeshOf), so
// that the ranks of a part are all of the inner ones.
absl::StatusOr<OnRanksOf> RanksOfOp(const Resolved& resolved, const std::string& path,
                                    const DeviceMesh& mesh) {
  OnRanksOf ranks;
  for (const ResolvedOn& on : resolved.on) {
    const std::vector<int> axes = mesh.AxesOf(on.directive.axis);
    ASSIGN_OR_RETURN(const plancast::OnRanks run, RanksOf(on.directive, mesh.SizeOf(axes)),
                     _ << "`" << path << "`");
    int64_t inner = mesh.SizeOf(axes), rest = run.first;
    for (const int axis : axes) {
      if (inner == run.count) break;
      inner /= mesh.size(axis);
      if (mesh.size(axis) > 1) ranks.emplace_back(axis, static_cast<int32_t>(rest / inner));
      rest %= inner;
    }
    if (inner == run.count) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "`", path, "` is on ", run.count, " ranks of `", on.directive.axis,
        "`, which other nodes or `ep`, `hsdp` cut otherwise (", mesh.DebugString(),
        "). Take parts that nest in these."));
  }
  return ranks;
}

OpHomes HomesOfOp(const Resolved& resolved) {
  OpHomes op;
  op.homes = resolved.homes;
  op.sources = resolved.home_sources;
  if (!resolved.bucket_source.empty()) {
    op.bucket_bytes = resolved.bucket_bytes;
    op.bucket_source = resolved.bucket_source;
  }
  return op;
}

}  // namespace

absl::StatusOr<std::vector<std::vector<StageRun>>> DealLayers(const BoundModel& bound,
                                                              const PlanOptions& options) {
  if (!options.cuts.empty()) return DealSegments(bound);
  const ModelGraph& graph = bound.graph;
  std::vector<int64_t> layout = options.layout;
  const bool lists = graph.HasLists();
  const int64_t layers = graph.LayerCount();
  if (layout.empty()) layout = {layers};
  const int64_t given = std::accumulate(layout.begin(), layout.end(), int64_t{0});
  if (given != layers) {
    return absl::InvalidArgumentError(
        absl::StrCat("`layout` places ", given, " layers and the model has ", layers,
                     ". Give one count per virtual stage that sum to ", layers, "."));
  }
  size_t last_layers = 0;  // the last segment that counts as layers
  for (size_t i = 0; i < graph.segments.size(); ++i) {
    if (graph.segments[i].in_list() || !lists) last_layers = i;
  }
  std::vector<std::vector<StageRun>> stages(layout.size());
  size_t stage = 0;
  int64_t left = layout[0];
  for (size_t i = 0; i < graph.segments.size(); ++i) {
    const Segment& segment = graph.segments[i];
    const int index = static_cast<int>(i), body = bound.places[i].alike;
    if (i > last_layers) stage = layout.size() - 1;
    if (!segment.in_list() && lists) {
      stages[stage].push_back({index, body, 0, 1});
      continue;
    }
    for (int64_t begin = 0; begin < segment.repeat;) {
      while (left == 0 && stage + 1 < layout.size()) left = layout[++stage];
      const int64_t count = std::min(left, segment.repeat - begin);
      stages[stage].push_back({index, body, bound.places[i].first_layer + begin, count});
      begin += count;
      left -= count;
    }
  }
  for (size_t v = 0; v < stages.size(); ++v) {
    if (!stages[v].empty()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("virtual stage ", v,
                     " is empty: `layout` gives it no layer and the model has "
                     "nothing else to put there. Give it one layer at least."));
  }
  return stages;
}

absl::StatusOr<FactorSplit> SplitOp(const ModelGraph& graph, const OpNode& op,
                                    const std::string& path, const Resolved& resolved,
                                    const DeviceMesh& mesh, bool whole, const OnRanksOf& on) {
  FactorSplit split = FactorSplit::None(*op.rule);
  // What nodes say goes before what the root does, and the expert mesh before the
  // axes that it is cut out of: they get what it leaves.
  std::vector<const ResolvedSplit*> ordered;
  for (const ResolvedSplit& r : resolved.splits) {
    if (!(whole && r.source.empty() && r.directive.axis == "tp")) ordered.push_back(&r);
  }
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const ResolvedSplit* a, const ResolvedSplit* b) {
                     const auto rank = [](const ResolvedSplit& r) {
                       return (r.source.empty() ? 2 : 0) + (IsView(r.directive.axis) ? 0 : 1);
                     };
                     return rank(*a) < rank(*b);
                   });
  std::vector<const ResolvedSplit*> taken(mesh.num_axes());
  for (const ResolvedSplit* next : ordered) {
    const ResolvedSplit& r = *next;
    std::vector<int> axes = mesh.AxesOf(r.directive.axis);
    if (axes.empty()) {
      // Axes of the language that the mesh leaves out have size 1.
      if (r.directive.axis == "cp" || IsView(r.directive.axis)) continue;
      std::vector<std::string> names;
      std::vector<std::string> shown;
      for (const MeshAxis& axis : mesh.axes()) {
        names.push_back(axis.name);
        shown.push_back(absl::StrCat("`", axis.name, "` (", axis.size, ")"));
      }
      return absl::InvalidArgumentError(absl::StrCat("no mesh axis `", r.directive.axis,
                                                     "`; the mesh has ", absl::StrJoin(shown, ", "),
                                                     ".", DidYouMean(r.directive.axis, names)));
    }
    const bool view = IsView(r.directive.axis);
    const auto gone = [&](int a) {
      const bool placed = std::any_of(on.begin(), on.end(), [a](const auto& r) { return r.first == a; });
      return placed ||
             (taken[a] != nullptr && (view || IsView(taken[a]->directive.axis)));
    };
    axes.erase(std::remove_if(axes.begin(), axes.end(), gone), axes.end());
    if (mesh.SizeOf(axes) == 1) continue;
    SplitDirective directive = r.directive;
    // The root speaks of the dims of transformers; a model built by hand may
    // lack some.
    if (r.source.empty()) {
      auto unknown = [&](const std::string& dim) { return !KnowsDim(graph, op, dim); };
      directive.dims.erase(std::remove_if(directive.dims.begin(), directive.dims.end(), unknown),
                           directive.dims.end());
    }
    ASSIGN_OR_RETURN(const bool cut, ApplySplit(graph, op, path, directive, axes, mesh, &split));
    for (int a : axes) taken[a] = cut ? &r : taken[a];
  }
  for (std::vector<int>& axes : split.axes) std::sort(axes.begin(), axes.end());
  AlignTiedCuts(*op.rule, &split);
  return split;
}

absl::StatusOr<BoundModel> Bind(const ModelGraph& graph, const StrategyTree& tree,
                                const PlanOptions& options,
                                const std::set<std::string>& whole_rules) {
  BoundModel bound;
  ASSIGN_OR_RETURN(
      CutModel cut,
      CutSegments(graph.WithBatch(options.micro_batch * options.dp, options.dp), options.cuts));
  if (!options.cuts.empty()) {  // pieces of modules that are not trained have no gradients either
    const std::vector<int> pieces = DetachFrozen(&cut.graph);
    for (int& begin : cut.begins) begin = pieces[begin];
  }
  ASSIGN_OR_RETURN(ZonedModel zoned, CutIntoZones(std::move(cut.graph), tree));
  bound.graph = std::move(zoned.graph);
  bound.places = std::move(zoned.places);
  for (int begin : cut.begins) bound.begins.push_back(zoned.firsts[begin]);
  ASSIGN_OR_RETURN(bound.mesh, MeshOf(graph, tree, options));

  // Where no node below the root says anything, all ops are told the same.
  const bool alike = std::all_of(tree.nodes().begin(), tree.nodes().end(),
                                 [](const auto& node) { return node.first.empty(); });
  const bool homes = std::any_of(tree.nodes().begin(), tree.nodes().end(), [](const auto& node) {
    return !node.first.empty() &&
           (!node.second.home.empty() || node.second.bucket_bytes.has_value());
  });
  std::optional<Resolved> resolved;
  std::vector<std::string> selective = options.recompute_ops;
  if (selective.empty()) selective = {"core_attn"};
  for (size_t i = 0; i < bound.graph.segments.size(); ++i) {
    const Segment& segment = bound.graph.segments[i];
    const ZonedModel::Place& place = bound.places[i];
    if (place.alike < static_cast<int>(i)) {
      bound.bodies.push_back(bound.bodies[place.alike]);
      continue;
    }
    BoundBody body;
    body.body = segment.body;
    std::vector<Resolved> directives;
    for (const OpNode& op : bound.graph.bodies[segment.body].ops) {
      std::string path;
      const ModulePath module = PathOf(segment, op, place.first_layer, place.layers, &path);
      if (!alike || !resolved.has_value()) {
        ASSIGN_OR_RETURN(resolved, tree.Resolve(module));
      }
      ASSIGN_OR_RETURN(OnRanksOf on, RanksOfOp(*resolved, path, bound.mesh));
      ASSIGN_OR_RETURN(FactorSplit split,
                       SplitOp(bound.graph, op, path, *resolved, bound.mesh,
                               whole_rules.count(op.rule->name()) > 0, on));
      body.splits.push_back(std::move(split));
      if (!on.empty() || !body.on.empty()) {
        body.on.resize(body.splits.size());
        body.on.back() = std::move(on);
      }
      if (homes) body.homes.push_back(HomesOfOp(*resolved));
      directives.push_back(*resolved);
    }
    if (!body.on.empty()) body.on.resize(body.splits.size());
    ASSIGN_OR_RETURN(body.replays, ReplaysOf(bound.graph.bodies[segment.body], segment.in_list(),
                                             directives, body.splits, bound.mesh, selective));
    bound.bodies.push_back(std::move(body));
  }
  ASSIGN_OR_RETURN(bound.load, LoadOf(bound.graph, tree, bound.bodies, bound.mesh));
  ASSIGN_OR_RETURN(bound.stages, DealLayers(bound, options));

  if (options.recompute == Recompute::kFull && options.recomputes_some_layers()) {
    RecomputeSomeLayers(options, &bound);
  }
  if (options.recompute_joined > 1) JoinLayers(options.recompute_joined, &bound);
  return bound;
}

std::vector<Place> PlacesOf(const BoundModel& bound) {
  std::vector<bool> named(bound.mesh.num_axes(), false);
  for (const BoundBody& body : bound.bodies) {
    for (const OnRanksOf& on : body.on) {
      for (const auto& [axis, coordinate] : on) named[axis] = true;
    }
  }
  std::vector<Place> places(1);
  for (int a = 0; a < bound.mesh.num_axes(); ++a) {
    if (!named[a]) continue;
    std::vector<Place> finer;
    for (Place& place : places) {
      place.at.resize(bound.mesh.num_axes(), -1);
      for (int32_t c = 0; c < bound.mesh.size(a); ++c) {
        finer.push_back(place);
        finer.back().at[a] = c;
      }
    }
    places = std::move(finer);
  }
  return places;
}

bool OnlyBatchIsDataParallel(const BoundModel& bound) {
  const auto dp = bound.mesh.FindAxis("dp");
  const auto batch = bound.graph.FindDim("batch");
  if (!dp.ok() || !batch.ok()) return false;
  if (bound.mesh.size(*dp) == 1) return true;
  for (const BoundBody& body : bound.bodies) {
    const std::vector<OpNode>& ops = bound.graph.bodies[body.body].ops;
    for (size_t o = 0; o < ops.size(); ++o) {
      for (size_t f = 0; f < ops[o].factor_dims.size(); ++f) {
        const std::vector<int>& axes = body.splits[o].axes[f];
        const bool cut = std::find(axes.begin(), axes.end(), *dp) != axes.end();
        if (cut != (ops[o].factor_dims[f] == *batch)) return false;
      }
    }
  }
  return true;
}

std::string BoundModel::DebugString() const {
  std::string out = absl::StrCat("mesh ", mesh.DebugString(), "\n");
  for (size_t s = 0; s < stages.size(); ++s) {
    absl::StrAppend(&out, "virtual stage ", s, ":");
    for (const StageRun& run : stages[s]) {
      absl::StrAppend(&out, " ", graph.segments[run.segment].path);
      if (graph.segments[run.segment].in_list()) {
        absl::StrAppend(&out, "[", run.layer_begin, ":",
                        run.layer_begin + run.count * bodies[run.bound_body].layers, "]");
      }
      if (IsPiece(graph, run.segment)) {
        absl::StrAppend(&out, " (", graph.bodies[graph.segments[run.segment].body].name, ")");
      }
      if (const int layers = bodies[run.bound_body].layers; layers > 1) {
        absl::StrAppend(&out, " by ", layers);
      } else if (run.bound_body >= static_cast<int>(graph.segments.size())) {
        absl::StrAppend(&out, " (no recompute)");
      }
    }
    absl::StrAppend(&out, "\n");
  }
  for (size_t i = 0; i < graph.segments.size(); ++i) {
    if (places[i].alike < static_cast<int>(i)) continue;
    const Body& body = graph.bodies[bodies[i].body];
    for (size_t o = 0; o < body.ops.size(); ++o) {
      const OpNode& op = body.ops[o];
      std::vector<std::string> parts;
      for (size_t f = 0; f < bodies[i].splits[o].axes.size(); ++f) {
        const std::vector<int>& axes = bodies[i].splits[o].axes[f];
        if (axes.empty()) continue;
        parts.push_back(absl::StrCat(
            op.rule->factors()[f],
            op.factor_dims[f] < 0 ? "" : absl::StrCat("(", graph.dims[op.factor_dims[f]].name, ")"),
            "/", absl::StrJoin(axes, "*", [this](std::string* s, int a) {
              absl::StrAppend(s, mesh.axis(a).name);
            })));
      }
      absl::StrAppend(&out, graph.segments[i].path, ".", op.name, ": ",
                      parts.empty() ? "replicated" : absl::StrJoin(parts, " "),
                      bodies[i].replays[o] ? " recomputed" : "", "\n");
    }
  }
  return out;
}

}  // namespace plancast
