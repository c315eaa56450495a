#include "compiler/bind/bind.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "compiler/bind/joined_layers.h"
#include "compiler/bind/layer_zones.h"
#include "compiler/bind/op_places.h"
#include "compiler/bind/piece_runs.h"
#include "compiler/bind/plan_mesh.h"
#include "compiler/bind/recompute.h"
#include "compiler/bind/shard_units.h"
#include "compiler/bind/split_op.h"
#include "compiler/bind/vocabulary.h"
#include "compiler/rewrite/bind_rewrites.h"
#include "graph/model/cut_segments.h"
#include "graph/model/trained.h"
#include "strategy/nodes/op_path.h"
#include "strategy/schedule/stage_placement.h"

namespace plancast {
namespace {

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
  const StagePlacement placement = PlacementOf(options);
  for (size_t v = 0; v < bound->stages.size(); ++v) {
    std::vector<StageRun> split_runs;
    for (const StageRun& run : bound->stages[v]) {
      if (!bound->graph.segments[run.segment].in_list()) {
        split_runs.push_back(run);
        continue;
      }
      for (int64_t done = 0; done < run.count;) {
        const auto [count, again] =
            layers[placement.StageOf(static_cast<int64_t>(v))].Next(run.count - done);
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

// Where all stages hold parts of the input and the output layer.
void SpreadVocabulary(const BoundModel& bound, int64_t pp,
                      std::vector<std::vector<StageRun>>* stages) {
  std::vector<StageRun> input, output;
  for (std::vector<StageRun>& runs : *stages) {
    const auto spread = [&](const StageRun& run) { return bound.IsSpread(run.segment); };
    for (const StageRun& run : runs) {
      if (spread(run)) (run.segment < bound.begins[1] ? input : output).push_back(run);
    }
    runs.erase(std::remove_if(runs.begin(), runs.end(), spread), runs.end());
  }
  stages->insert(stages->end(), pp, output);
  stages->insert(stages->end(), pp, input);
}

// BoundModel::held, of what `stages` run that the plan writes, beside what is held already:
// segments that are joined later are, since what they share with other stages they say by
// themselves.
void HoldBodies(const std::vector<std::vector<StageRun>>& stages, const PlanOptions& options,
                BoundModel* bound) {
  const size_t segments = bound->graph.segments.size();
  std::vector<bool>& held = bound->held;
  held.resize(std::max(segments, bound->bodies.size()));
  const StagePlacement placement = PlacementOf(options);
  for (size_t v = 0; v < stages.size(); ++v) {
    if (!options.Writes(placement.StageOf(static_cast<int64_t>(v)))) continue;
    for (const StageRun& run : stages[v]) {
      held[run.bound_body] = held[bound->places[run.segment].alike] = true;
    }
  }
  for (size_t s = 0; s < segments; ++s) held[s] = held[bound->places[s].alike];
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

// The split of an op that another mesh runs: axes of this one that it cannot be cut over are left
// out. There it may take all of them.
FactorSplit WhatDivides(const ModelGraph& graph, const OpNode& op, const std::string& path,
                        Resolved resolved, const DeviceMesh& mesh, SplitUse* use) {
  std::vector<ResolvedSplit> works;
  for (const ResolvedSplit& split : std::exchange(resolved.splits, {})) {
    for (size_t i = 0; i < split.directive.levels.size(); ++i) use->Note(split, i, op, true);
    resolved.splits = {split};
    if (SplitOp(graph, op, path, resolved, mesh).ok()) works.push_back(split);
  }
  resolved.splits = std::move(works);
  const auto together = SplitOp(graph, op, path, resolved, mesh);
  return together.ok() ? *together : FactorSplit::None(*op.rule);
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
  if (options.spreads_vocabulary()) SpreadVocabulary(bound, options.pp, &stages);
  for (size_t v = 0; v < stages.size(); ++v) {
    if (!stages[v].empty()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("virtual stage ", v,
                     " is empty: `layout` gives it no layer and the model has "
                     "nothing else to put there. Give it one layer at least."));
  }
  return stages;
}

absl::StatusOr<BoundModel> Bind(const ModelGraph& graph, const StrategyTree& tree,
                                const PlanOptions& options,
                                const std::set<std::string>& whole_rules) {
  BoundModel bound;
  std::vector<ModelCut> cuts = options.cuts;
  if (options.spreads_vocabulary()) {
    ASSIGN_OR_RETURN(cuts, VocabularyCuts(graph));
  }
  ASSIGN_OR_RETURN(
      CutModel cut,
      CutSegments(graph.WithBatch(options.micro_batch * options.dp, options.dp), cuts));
  if (!options.cuts.empty()) {  // pieces of modules that are not trained have no gradients either
    const std::vector<int> pieces = DetachFrozen(&cut.graph);
    for (int& begin : cut.begins) begin = pieces[begin];
  }
  ASSIGN_OR_RETURN(ZonedModel zoned, CutIntoZones(std::move(cut.graph), tree));
  bound.graph = std::move(zoned.graph);
  bound.places = std::move(zoned.places);
  for (int begin : cut.begins) bound.begins.push_back(zoned.firsts[begin]);
  ASSIGN_OR_RETURN(bound.mesh, MeshOf(graph, tree, options));

  if (!options.own_stages.empty()) {
    ASSIGN_OR_RETURN(const std::vector<std::vector<StageRun>> dealt, DealLayers(bound, options));
    HoldBodies(dealt, options, &bound);
  }
  // Where no node below the root says anything, all ops are told the same.
  const bool alike = std::all_of(tree.nodes().begin(), tree.nodes().end(),
                                 [](const auto& node) { return node.first.empty(); });
  const bool homes = std::any_of(tree.nodes().begin(), tree.nodes().end(), [](const auto& node) {
    return !node.first.empty() &&
           (!node.second.home.empty() || node.second.bucket_bytes.has_value());
  });
  std::optional<Resolved> resolved;
  int resolved_for = -1;  // the body that it was made fit for, with cp
  const bool by_hand = std::any_of(tree.nodes().begin(), tree.nodes().end(),
                                   [](const auto& node) { return !node.second.split.empty(); });
  RETURN_IF_ERROR(CheckRootDims(bound.graph, tree));
  SplitUse use;
  ShardUnits units(tree, options, bound.mesh);
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
      if (!alike || !resolved.has_value() || (options.cp > 1 && resolved_for != segment.body)) {
        ASSIGN_OR_RETURN(resolved, tree.Resolve(module));
        if (options.cp > 1) {
          CutInBlocksWhereNeeded(bound.graph, bound.graph.bodies[segment.body], &resolved->splits);
        }
        resolved_for = segment.body;
      }
      const bool spread = options.spreads_vocabulary() && bound.IsSpread(static_cast<int>(i));
      Resolved with_vocabulary;
      if (spread) {
        with_vocabulary = *resolved;
        with_vocabulary.splits.push_back(VocabularySplit());
      }
      const Resolved& told = spread ? with_vocabulary : *resolved;
      ASSIGN_OR_RETURN(OnRanksOf on, RanksOfOp(*resolved, path, bound.mesh));
      absl::StatusOr<FactorSplit> split =
          SplitOp(bound.graph, op, path, told, bound.mesh, whole_rules.count(op.rule->name()) > 0,
                  by_hand ? &use : nullptr, on);
      if (!split.ok() && bound.Holds(i)) return split.status();
      body.splits.push_back(split.ok()
                                ? *std::move(split)
                                : WhatDivides(bound.graph, op, path, *resolved, bound.mesh, &use));
      if (!on.empty() || !body.on.empty()) {
        body.on.resize(body.splits.size());
        body.on.back() = std::move(on);
      }
      if (homes) body.homes.push_back(HomesOfOp(*resolved));
      directives.push_back(*resolved);
    }
    if (!body.on.empty()) body.on.resize(body.splits.size());
    for (size_t o = 0; o < directives.size(); ++o) {
      if (directives[o].loop.empty()) continue;
      // What the plan says of all ops is of those that have such a loop.
      const auto has = [&](const auto& said) {
        return bound.graph.bodies[segment.body].ops[o].rule->FindFactor(said.first).ok();
      };
      const auto& turned = directives[o].loop.rotate;
      if (directives[o].loop_source.empty() && !turned.empty() &&
          std::none_of(turned.begin(), turned.end(), has)) {
        continue;
      }
      body.loops.resize(directives.size());
      body.loops[o] = {directives[o].loop, directives[o].loop_source};
    }
    std::vector<OpRewrites> rewrites;
    for (const Resolved& told : directives) {
      rewrites.push_back({told.rewrites, told.rewrite_source});
    }
    if (SaysRewrites(rewrites)) {
      RETURN_IF_ERROR(BindRewrites(bound.graph, bound.mesh, rewrites, &body));
    }
    ASSIGN_OR_RETURN(body.replays,
                     ReplaysOf(bound.graph.bodies[segment.body], segment.in_list(), directives,
                               body.splits, bound.mesh, selective, options.norms_in_products));
    ASSIGN_OR_RETURN(body.unit,
                     units.Of(bound.graph, bound.places, static_cast<int>(i), directives));
    ASSIGN_OR_RETURN(body.pieces, PieceRunsOf(bound.graph, segment, directives));
    bound.bodies.push_back(std::move(body));
  }
  RETURN_IF_ERROR(use.Check(bound.graph, tree));
  RETURN_IF_ERROR(units.Check(bound.graph));
  ASSIGN_OR_RETURN(bound.load, LoadOf(bound.graph, tree, bound.bodies, bound.mesh));
  ASSIGN_OR_RETURN(bound.stages, DealLayers(bound, options));

  if (options.recompute == Recompute::kFull && options.recomputes_some_layers()) {
    RecomputeSomeLayers(options, &bound);
  }
  const bool by_units = std::any_of(bound.bodies.begin(), bound.bodies.end(),
                                    [](const BoundBody& body) { return body.unit > 1; });
  if (options.recompute_joined > 1) {
    JoinLayers(options.recompute_joined, &bound);
  } else if (by_units) {
    JoinUnits(&bound);
  }
  if (!options.own_stages.empty()) HoldBodies(bound.stages, options, &bound);
  return bound;
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
