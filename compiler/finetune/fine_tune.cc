#include "compiler/finetune/fine_tune.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/suggest.h"
#include "compiler/finetune/adapter.h"
#include "graph/model/trained.h"
#include "strategy/nodes/op_path.h"

namespace plancast {
namespace {

// What one op of a layer is told.
struct Told {
  bool trains = true;
  int64_t rank = 0;  // of its adapter; 0: it has none
  bool dropout = false;
  bool trains_a = true, trains_b = true;
  AtRest at_rest = AtRest::kAsUsed;  // of its matrices

  friend bool operator<(const Told& a, const Told& b) { return a.Key() < b.Key(); }

 private:
  std::tuple<bool, int64_t, bool, bool, bool, AtRest> Key() const {
    return {trains, rank, dropout, trains_a, trains_b, at_rest};
  }
};

class FineTuner {
 public:
  FineTuner(const ModelGraph& graph, const StrategyTree& tree) : tree_(tree), out_(graph) {}

  absl::StatusOr<ModelGraph> Run() && {
    std::vector<Segment> segments;
    std::vector<int> first_of;  // per segment as it was
    const std::vector<Segment> given = out_.segments;
    for (size_t s = 0; s < given.size(); ++s) {
      first_of.push_back(static_cast<int>(segments.size()));
      RETURN_IF_ERROR(Cut(given[s], PlaceOf(given, s), &segments));
    }
    out_.segments = std::move(segments);
    MoveTied(first_of, &out_);
    RETURN_IF_ERROR(CheckOps());
    RETURN_IF_ERROR(CheckTied());
    if (out_.TrainedParameterCount() == 0) {
      return absl::InvalidArgumentError(
          "nothing of the model is trained. Say `train: true` at a node, or `lora`.");
    }
    DetachFrozen(&out_);
    return std::move(out_);
  }

 private:
  // Where a segment is in its list.
  struct Place {
    int64_t first = 0;   // layer
    int64_t layers = 1;  // of the list
  };

  static Place PlaceOf(const std::vector<Segment>& segments, size_t s) {
    const auto beside = [&](size_t other) {
      return segments[other].in_list() && segments[other].path == segments[s].path;
    };
    Place place{0, segments[s].repeat};
    for (size_t i = s; segments[s].in_list() && i > 0 && beside(i - 1); --i) {
      place.first += segments[i - 1].repeat;
    }
    place.layers += place.first;
    for (size_t i = s + 1; segments[s].in_list() && i < segments.size() && beside(i); ++i) {
      place.layers += segments[i].repeat;
    }
    return place;
  }

  // Runs of layers that are told the same.
  absl::Status Cut(const Segment& segment, const Place& place, std::vector<Segment>* pieces) {
    const std::string path = absl::StrCat(segment.path, ".*");
    const ModulePath module = ModulePath::Of(path);
    std::vector<const NodePath*> nodes;
    if (segment.in_list()) nodes = tree_.NodesOfLayers(module);
    std::map<std::vector<bool>, int> bodies;  // by the nodes that hold
    const size_t before = pieces->size();
    const int64_t step = nodes.empty() ? segment.repeat : 1;
    for (int64_t done = 0; done < segment.repeat; done += step) {
      const Place layer{place.first + done, place.layers};
      std::vector<bool> hold;
      for (const NodePath* node : nodes) {
        hold.push_back(node->HoldsLayer(module.list, layer.first, layer.layers));
      }
      const auto [known, inserted] = bodies.try_emplace(std::move(hold), 0);
      if (inserted) {
        ASSIGN_OR_RETURN(known->second, BodyOf(segment, layer));
      }
      if (pieces->size() > before && pieces->back().body == known->second) {
        pieces->back().repeat += step;
      } else {
        pieces->push_back({segment.path, known->second, step, segment.in_list()});
      }
    }
    if (pieces->size() == before + 1) pieces->back().list = segment.list;
    return absl::OkStatus();
  }

  absl::StatusOr<int> BodyOf(const Segment& segment, const Place& layer) {
    const std::vector<OpNode> ops = out_.bodies[segment.body].ops;
    std::vector<Told> told;
    for (const OpNode& op : ops) {
      ASSIGN_OR_RETURN(told.emplace_back(), ToldOf(segment, layer, op));
    }
    const auto [known, inserted] = variants_.try_emplace({segment.body, std::move(told)}, 0);
    if (inserted) {
      ASSIGN_OR_RETURN(known->second, Variant(segment, known->first.second));
    }
    return known->second;
  }

  absl::StatusOr<Resolved> Resolve(const Segment& segment, const Place& layer,
                                   const OpNode& op) const {
    std::string text;
    return tree_.Resolve(PathOf(segment, op, layer.first, layer.layers, &text));
  }

  absl::StatusOr<Told> ToldOf(const Segment& segment, const Place& layer, const OpNode& op) {
    ASSIGN_OR_RETURN(const Resolved resolved, Resolve(segment, layer, op));
    Told told;
    told.trains = resolved.train;
    if (!resolved.lora.has_value()) return told;
    for (const std::string& on : resolved.lora->on) {
      auto& named = named_[{resolved.lora_source, on}];
      if (!NamesOp(on, op.name)) continue;
      named = true;
      told.rank = resolved.lora->rank;
    }
    if (AdapterOf(*op.rule).ok()) {
      takes_adapters_[resolved.lora_source].insert(op.name);
      const bool layer_of_list = segment.in_list() || !out_.HasLists();
      if (resolved.lora->base == "nf4" && layer_of_list) told.at_rest = AtRest::kNf4;
    }
    told.dropout = told.rank > 0 && resolved.lora->dropout > 0;
    if (told.rank == 0) return told;
    ASSIGN_OR_RETURN(told.trains_a, TrainsAdapter(segment, layer, op, "lora_a"));
    ASSIGN_OR_RETURN(told.trains_b, TrainsAdapter(segment, layer, op, "lora_b"));
    return told;
  }

  // Adapters are trained unless a node that is theirs alone says otherwise.
  absl::StatusOr<bool> TrainsAdapter(const Segment& segment, const Place& layer, OpNode op,
                                     absl::string_view part) const {
    absl::StrAppend(&op.name, ".", part);
    ASSIGN_OR_RETURN(const Resolved resolved, Resolve(segment, layer, op));
    return resolved.train || !absl::EndsWith(resolved.train_source, part);
  }

  // The body with frozen parameters and adapters; the same where nothing changes.
  absl::StatusOr<int> Variant(const Segment& segment, const std::vector<Told>& told) {
    Body body = out_.bodies[segment.body];
    bool changed = false;
    for (size_t t = 0; t < body.tensors.size(); ++t) {
      if (body.tensors[t].kind != TensorInfo::Kind::kParameter) continue;
      ASSIGN_OR_RETURN(const bool trains, Trains(segment, body, static_cast<int>(t), told));
      body.tensors[t].frozen = !trains;
      changed = changed || !trains;
    }
    for (size_t o = 0; o < told.size(); ++o) {
      for (const int t : body.ops[o].inputs) {
        TensorInfo& tensor = body.tensors[t];
        if (tensor.frozen && tensor.dims.size() > 1) tensor.at_rest = told[o].at_rest;
      }
    }
    for (size_t o = told.size(); o-- > 0;) {
      if (told[o].rank == 0) continue;
      const AdapterOptions options{RankDim(told[o].rank), told[o].dropout, told[o].trains_a,
                                   told[o].trains_b};
      RETURN_IF_ERROR(AddAdapter(static_cast<int>(o), options, &body))
          << "`" << ModelGraph::PathOf(segment) << "." << body.ops[o].name << "`";
      changed = true;
    }
    if (!changed) return segment.body;
    out_.bodies.push_back(std::move(body));
    return static_cast<int>(out_.bodies.size()) - 1;
  }

  static absl::StatusOr<bool> Trains(const Segment& segment, const Body& body, int tensor,
                                     const std::vector<Told>& told) {
    int reader = -1;
    for (size_t o = 0; o < told.size(); ++o) {
      const std::vector<int>& inputs = body.ops[o].inputs;
      if (std::find(inputs.begin(), inputs.end(), tensor) == inputs.end()) continue;
      if (reader >= 0 && told[reader].trains != told[o].trains) {
        const std::string path = ModelGraph::PathOf(segment);
        return absl::InvalidArgumentError(
            absl::StrCat("`", body.tensors[tensor].name, "` is read by `", path, ".",
                         body.ops[reader].name, "` and by `", path, ".", body.ops[o].name,
                         "`, and one of them is trained. Say the same `train` at both."));
      }
      reader = static_cast<int>(o);
    }
    return reader < 0 || told[reader].trains;
  }

  int RankDim(int64_t rank) {
    for (size_t d = 0; d < out_.dims.size(); ++d) {
      if (absl::StartsWith(out_.dims[d].name, kRankDim) && out_.dims[d].size == rank) {
        return static_cast<int>(d);
      }
    }
    const bool first = !out_.FindDim(kRankDim).ok();
    out_.dims.push_back({first ? kRankDim : absl::StrCat(kRankDim, "_", rank), rank});
    return static_cast<int>(out_.dims.size()) - 1;
  }

  // Every word of every `on` has named an op.
  absl::Status CheckOps() const {
    for (const auto& [said, used] : named_) {
      if (used) continue;
      const auto& [source, on] = said;
      const std::string lora =
          absl::StrCat("`lora` of ", source.empty() ? "the root" : absl::StrCat("`", source, "`"));
      const auto takes = takes_adapters_.find(source);
      if (takes == takes_adapters_.end()) {
        return absl::InvalidArgumentError(absl::StrCat(
            lora, " has no effect: no op below can have adapters, but for those that nodes with ",
            "longer paths decide. Say it where products with weights are, or leave it out."));
      }
      return absl::InvalidArgumentError(
          absl::StrCat(lora, " names no op with `", on, "`; adapters can stand beside ",
                       JoinQuoted(takes->second), ".", DidYouMean(on, takes->second)));
    }
    return absl::OkStatus();
  }

  absl::Status CheckTied() const {
    for (const TiedParameter& tie : out_.tied) {
      const Segment &first = out_.segments[tie.first_segment],
                    &second = out_.segments[tie.second_segment];
      const TensorInfo& a = out_.bodies[first.body].tensors[tie.first_tensor];
      const TensorInfo& b = out_.bodies[second.body].tensors[tie.second_tensor];
      if (a.frozen == b.frozen) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "`", first.path, ".", a.name, "` and `", second.path, ".", b.name,
          "` are one parameter, and one of them is trained. Say the same `train` at both."));
    }
    return absl::OkStatus();
  }

  const StrategyTree& tree_;
  ModelGraph out_;
  std::map<std::pair<int, std::vector<Told>>, int> variants_;
  std::map<std::pair<std::string, std::string>, bool> named_;    // by node and word: some op
  std::map<std::string, std::set<std::string>> takes_adapters_;  // by node: names of ops
};

}  // namespace

absl::StatusOr<ModelGraph> FineTuned(const ModelGraph& graph, const StrategyTree& tree) {
  return FineTuner(graph, tree).Run();
}

std::string FineTuneKey(const StrategyTree& tree) {
  std::string key;
  for (const auto& [path, node] : tree.nodes()) {
    if (!node.train.has_value() && !node.lora.has_value()) continue;
    absl::StrAppend(&key, "|", path, ":");
    if (node.train.has_value()) key += *node.train ? "train" : "freeze";
    if (node.lora.has_value()) key += node.lora->DebugString();
  }
  return key;
}

}  // namespace plancast
