#include "compiler/bind/shard_units.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/bind/piece_runs.h"
#include "graph/model/cut_segments.h"

namespace plancast {
namespace {

// Whether two layers that are told as those of segment `s`, with its body or others, are next to
// each other.
bool HasNeighbours(const ModelGraph& graph, const std::vector<ZonedModel::Place>& places, int s) {
  const std::vector<Segment>& segments = graph.segments;
  const auto same = [&](size_t other) {
    return other < segments.size() && segments[other].in_list() &&
           segments[other].path == segments[s].path && places[other].zone == places[s].zone;
  };
  for (size_t i = 0; i < segments.size(); ++i) {
    if (same(i) && (segments[i].repeat > 1 || same(i + 1))) return true;
  }
  return false;
}

}  // namespace

bool ShardUnits::HasRanks(const Home& home) const {
  const std::vector<std::string> axes = home.axes();
  return std::any_of(axes.begin(), axes.end(), [&](const std::string& axis) {
    if (axis == "dp") return options_.dp * options_.cp > 1;
    const std::vector<int> own = mesh_.AxesOf(axis);
    return std::any_of(own.begin(), own.end(), [&](int a) { return mesh_.size(a) > 1; });
  });
}

bool ShardUnits::GoesByUnits(const Resolved& told, bool frozen, bool here) const {
  for (const HomeKind kind : {HomeKind::kWeights, HomeKind::kGradients}) {
    if (frozen && kind == HomeKind::kGradients) continue;
    if (told.home_sources[static_cast<int>(kind)].empty()) {  // the plan decides
      const bool shards = options_.zero >= (kind == HomeKind::kWeights ? 3 : 2);
      if (shards && (!here || options_.dp * options_.cp > 1)) return true;
      continue;
    }
    const Home& home = told.homes[kind];
    if (home.sharded() ? !here || HasRanks(home) : home.on_host) return true;
  }
  return false;
}

absl::StatusOr<int64_t> ShardUnits::Of(const ModelGraph& graph,
                                       const std::vector<ZonedModel::Place>& places, int s,
                                       const std::vector<Resolved>& told) {
  const Segment& segment = graph.segments[s];
  if (!says() || !segment.in_list() || told.empty()) return 1;
  const Body& body = graph.bodies[segment.body];
  const std::string& source = told[0].unit_source;
  for (size_t o = 0; o < told.size(); ++o) {
    if (told[o].unit_source == source) continue;
    const std::string& part =
        source.size() > told[o].unit_source.size() ? source : told[o].unit_source;
    return absl::InvalidArgumentError(absl::StrCat(
        "`", part, "`: `unit` counts whole layers, and this is a part of one. Say it at `",
        ModelGraph::PathOf(segment), "`."));
  }
  // Pieces run through it.
  const bool pieces = std::any_of(
      told[0].pieces.begin(), told[0].pieces.end(),
      [&](const ResolvedPieces& said) { return GoesThroughUnit(said, told[0], segment); });
  bool shards = pieces, here = pieces, host = false;
  for (size_t o = 0; o < told.size(); ++o) {
    for (const int t : body.ops[o].inputs) {
      if (body.tensors[t].kind != TensorInfo::Kind::kParameter) continue;
      shards = shards || GoesByUnits(told[o], body.tensors[t].frozen, /*here=*/false);
      here = here || GoesByUnits(told[o], body.tensors[t].frozen, /*here=*/true);
    }
    host = host || (!told[o].home_sources[static_cast<int>(HomeKind::kActivations)].empty() &&
                    told[o].homes[HomeKind::kActivations].on_host);
  }
  const int64_t layers = source.empty() ? options_.unit_layers : *told[0].unit_layers;
  Reach& reach = reach_[source];
  reach.layers = true;
  reach.shards = reach.shards || shards;
  // A piece of a layer is a unit by itself.
  reach.neighbours = reach.neighbours || (HasNeighbours(graph, places, s) && !IsPiece(graph, s));
  if (!here || layers == 1) return 1;
  joins_ = true;
  const bool offloads = options_.offload.count(Offload::kActivations) > 0;
  if (host || offloads) {
    return absl::UnimplementedError(absl::StrCat(
        "not supported yet: units of ", layers, " layers of `", segment.path, "` with ",
        host ? "`activations: host`" : "offload=activations",
        ", which copies what single layers keep. Use `unit: 1` there, or leave the host out."));
  }
  return layers;
}

absl::Status ShardUnits::Check(const ModelGraph& graph) const {
  if (!says()) return absl::OkStatus();
  constexpr char kShardThem[] =
      "no weights or gradients there are sharded or whole on the host, so nothing goes unit by "
      "unit. Use zero=2 or zero=3, say `home: {weights: shard(dp)}`, or `micro_batches` beside it, "
      "or "
      "leave it out.";
  const auto plan = reach_.find("");
  if (options_.unit_layers > 1 && (plan == reach_.end() || !plan->second.shards)) {
    return absl::InvalidArgumentError(
        absl::StrCat("unit=", options_.unit_layers, " has no effect: ",
                     plan != reach_.end() ? kShardThem
                     : tree_.SaysUnits()  ? "nodes say otherwise of all layers. Leave it out."
                                          : "the model has no list of layers. Leave it out."));
  }
  for (const auto& [path, node] : tree_.nodes()) {
    if (path.empty() || !node.unit_layers.has_value()) continue;
    const std::string said = absl::StrCat("`", path, "`: `unit: ", *node.unit_layers, "` ");
    const auto known = reach_.find(path);
    const Reach reach = known == reach_.end() ? Reach() : known->second;
    if (!reach.shards || (!reach.neighbours && *node.unit_layers > 1)) {
      return absl::InvalidArgumentError(absl::StrCat(
          said, "has no effect: ",
          !reach.layers
              ? "it is said of no whole layers of a list. Say it of some, or leave it out."
          : !reach.shards
              ? kShardThem
              : "no two neighbouring layers there are told the same. Name layers that follow one "
                "another, or leave it out."));
    }
    if (options_.recompute_joined == 1) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        said, "beside recompute=uniform:", options_.recompute_joined,
        ", which runs layers of the whole plan together. Say unit=", options_.recompute_joined,
        " in the plan, or use recompute=full."));
  }
  for (const TiedParameter& tie : graph.tied) {
    for (const int s : {tie.first_segment, tie.second_segment}) {
      if (!joins_ || !graph.segments[s].in_list() || IsPiece(graph, s)) continue;
      return absl::UnimplementedError(
          absl::StrCat("not supported yet: units of several layers where layers of `",
                       graph.segments[s].path, "` share parameters. Leave `unit` out."));
    }
  }
  return absl::OkStatus();
}

}  // namespace plancast
