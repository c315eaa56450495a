#include "strategy/strategy_tree.h"

#include <algorithm>
#include <functional>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "strategy/byte_size.h"
#include "strategy/plan_names.h"
#include "strategy/recompute/recompute_set.h"

namespace plancast {
namespace {

// A node that holds for the op asked about.
struct Candidate {
  const std::string* path;
  const Directives* node;
  int length = 0;
  int stars = 0;
  int slices = 0;

  // Longer paths first, then fewer stars, then fewer slices.
  std::tuple<int, int, int> rank() const { return {-length, stars, slices}; }
};

// What a node says about one thing, as text; nothing if it is silent.
using Says = std::function<std::optional<std::string>(const Directives&)>;

// The most specific of `candidates` that says something, nullptr if none does.
absl::StatusOr<const Candidate*> Decide(const std::vector<Candidate>& candidates,
                                        const std::string& op, absl::string_view what,
                                        const Says& says) {
  const Candidate* decided = nullptr;
  for (const Candidate& candidate : candidates) {
    const std::optional<std::string> said = says(*candidate.node);
    if (!said.has_value()) continue;
    if (decided == nullptr) {
      decided = &candidate;
    } else if (candidate.rank() != decided->rank()) {
      break;
    } else if (const std::string first = *says(*decided->node); first != *said) {
      return absl::InvalidArgumentError(absl::StrCat(
          "`", *decided->path, "` and `", *candidate.path,
          "` are equally specific and disagree about the ", what, " of `", op, "`: `", first,
          "` and `", *said, "`. Say it at `", op, "` itself, or make the two agree."));
    }
  }
  return decided;
}

std::optional<std::string> RecomputeText(const Directives& node) {
  if (!node.recompute.has_value()) return std::nullopt;
  return PrintRecompute(*node.recompute, node.recompute_ops);
}

std::optional<std::string> BucketText(const Directives& node) {
  if (!node.bucket_bytes.has_value()) return std::nullopt;
  return PrintByteSize(*node.bucket_bytes);
}

std::optional<std::string> UnitText(const Directives& node) {
  if (!node.unit_layers.has_value()) return std::nullopt;
  return absl::StrCat(*node.unit_layers);
}

std::optional<std::string> PiecesText(const Directives& node) {
  if (node.pieces.empty()) return std::nullopt;
  return node.pieces.DebugString();
}

std::optional<std::string> LoopText(const Directives& node) {
  if (node.loop.empty()) return std::nullopt;
  return node.loop.DebugString();
}

std::optional<std::string> RewriteText(const Directives& node) {
  if (node.rewrites.empty()) return std::nullopt;
  return DebugString(node.rewrites);
}

std::optional<std::string> ComputeText(const Directives& node) {
  if (node.compute_at.empty()) return std::nullopt;
  return node.compute_at;
}

std::optional<std::string> TrainText(const Directives& node) {
  if (!node.train.has_value()) return std::nullopt;
  return *node.train ? "true" : "false";
}

std::optional<std::string> LoraText(const Directives& node) {
  if (!node.lora.has_value()) return std::nullopt;
  return node.lora->DebugString();
}

std::optional<std::string> OnText(const Directives& node, absl::string_view axis) {
  const OnDirective* on = node.FindOn(axis);
  if (on == nullptr) return std::nullopt;
  return PrintOn(*on);
}

std::string NodeText(const Directives& node) {
  std::vector<std::string> parts;
  for (const SplitDirective& split : node.split) {
    parts.push_back(absl::StrCat("split ", split.axis, ": ", split.DebugString()));
  }
  for (const OnDirective& on : node.on) {
    parts.push_back(absl::StrCat("on ", on.axis, ": ", PrintOn(on)));
  }
  if (const auto text = RecomputeText(node)) parts.push_back(absl::StrCat("recompute: ", *text));
  if (const auto text = PiecesText(node)) {
    parts.push_back(absl::StrCat("micro_batches: ", *text));
  }
  if (const auto text = LoopText(node)) parts.push_back(absl::StrCat("communicate: ", *text));
  if (const auto text = RewriteText(node)) parts.push_back(absl::StrCat("rewrite: ", *text));
  if (const auto text = ComputeText(node)) parts.push_back(absl::StrCat("compute_at: ", *text));
  if (!node.home.empty()) parts.push_back(absl::StrCat("home: ", node.home.DebugString()));
  if (const auto text = BucketText(node)) parts.push_back(absl::StrCat("bucket: ", *text));
  if (const auto text = UnitText(node)) parts.push_back(absl::StrCat("unit: ", *text));
  if (const auto text = TrainText(node)) parts.push_back(absl::StrCat("train: ", *text));
  if (const auto text = LoraText(node)) parts.push_back(absl::StrCat("lora: ", *text));
  return absl::StrCat("{ ", absl::StrJoin(parts, "; "), " }");
}

// The pieces of an op: nodes of one depth decide together, those of others cut what these leave.
absl::Status ResolvePieces(const std::vector<Candidate>& candidates, const std::string& op,
                           Resolved* resolved) {
  for (auto begin = candidates.begin(); begin != candidates.end() && begin->length > 0;) {
    const auto end = std::find_if(begin, candidates.end(), [&](const Candidate& candidate) {
      return candidate.length != begin->length;
    });
    const std::vector<Candidate> as_deep(begin, end);
    ASSIGN_OR_RETURN(const Candidate* pieces, Decide(as_deep, op, "micro_batches", PiecesText));
    if (pieces != nullptr) {
      resolved->pieces.push_back({pieces->node->pieces, pieces->length, *pieces->path});
    }
    begin = end;
  }
  return absl::OkStatus();
}

// The homes of an op: over which axis, and whether on the host, each decided by itself.
absl::Status ResolveHomes(const std::vector<Candidate>& candidates, const std::string& op,
                          Resolved* resolved) {
  for (const HomeKind kind : kHomeKindNames.Values()) {
    const std::string what = absl::StrCat("home of ", kHomeKindNames[kind]);
    Home& home = resolved->homes[kind];
    ASSIGN_OR_RETURN(
        const Candidate* axis,
        Decide(candidates, op, what, [&](const Directives& node) -> std::optional<std::string> {
          const std::optional<Home> sharing = node.home.SharingOf(kind);
          if (!sharing.has_value()) return std::nullopt;
          return PrintHome(kind, *sharing);
        }));
    ASSIGN_OR_RETURN(
        const Candidate* place,
        Decide(candidates, op, what, [&](const Directives& node) -> std::optional<std::string> {
          const std::optional<bool> on_host = node.home.OnHost(kind);
          if (!on_host.has_value()) return std::nullopt;
          return *on_host ? "host" : "device";
        }));
    if (axis != nullptr) home = *axis->node->home.SharingOf(kind);
    if (place != nullptr) home.on_host = *place->node->home.OnHost(kind);
    // What is sharded to the host and then left whole by a nearer node is on the device.
    const bool shards = kind <= HomeKind::kGradients && place != nullptr &&
                        !place->node->home.AxisOf(kind).value_or("").empty();
    if (shards && !home.sharded()) home.on_host = false;
    const bool nearer = axis != nullptr && (place == nullptr || axis->rank() < place->rank());
    const Candidate* const source = nearer ? axis : place;
    if (source != nullptr) resolved->home_sources[static_cast<int>(kind)] = *source->path;
  }
  SettlePlaces(&resolved->homes);
  return absl::OkStatus();
}

std::string TextOf(const ModulePath& path) {
  std::string text = absl::StrJoin(path.parts, ".");
  if (path.list < 0 || path.index < 0) return text;
  std::vector<std::string> parts(path.parts.begin(), path.parts.end());
  parts[path.list] = absl::StrCat(path.index);
  return absl::StrJoin(parts, ".");
}

}  // namespace

bool Directives::empty() const {
  return split.empty() && on.empty() && home.empty() && !recompute.has_value() &&
         !bucket_bytes.has_value() && !unit_layers.has_value() && !train.has_value() &&
         !lora.has_value() && pieces.empty() && loop.empty() && rewrites.empty() &&
         compute_at.empty();
}

const SplitDirective* Directives::FindSplit(absl::string_view axis) const {
  for (const SplitDirective& directive : split) {
    if (directive.axis == axis) return &directive;
  }
  return nullptr;
}

void Directives::SetSplit(SplitDirective directive) {
  for (SplitDirective& said : split) {
    if (said.axis == directive.axis) {
      said = std::move(directive);
      return;
    }
  }
  split.push_back(std::move(directive));
}

const OnDirective* Directives::FindOn(absl::string_view axis) const {
  const auto said =
      std::find_if(on.begin(), on.end(), [&](const auto& o) { return o.axis == axis; });
  return said == on.end() ? nullptr : &*said;
}

void Directives::SetOn(OnDirective directive) {
  const auto after = std::lower_bound(
      on.begin(), on.end(), directive.axis,
      [](const OnDirective& said, const std::string& axis) { return said.axis < axis; });
  if (after != on.end() && after->axis == directive.axis) {
    *after = std::move(directive);
  } else {
    on.insert(after, std::move(directive));
  }
}

StrategyTree StrategyTree::FromShortForm(const ShortForm& form) {
  StrategyTree tree;
  tree.plan_ = form;
  return tree;
}

int StrategyTree::MostShardedBelow() const {
  int most = 0;
  for (const auto& [path, node] : nodes_) {
    if (path.empty()) continue;
    // What is whole on the host goes there and back unit by unit, as shards do.
    const auto shards = [&home = node.home](HomeKind kind) {
      return !home.AxisOf(kind).value_or("").empty() ||
             (kind <= HomeKind::kGradients && home.OnHost(kind).value_or(false));
    };
    most = std::max(most, shards(HomeKind::kWeights)     ? 3
                          : shards(HomeKind::kGradients) ? 2
                          : shards(HomeKind::kState)     ? 1
                                                         : 0);
  }
  return most;
}

bool StrategyTree::SaysUnits() const {
  return std::any_of(nodes_.begin(), nodes_.end(), [](const auto& node) {
    return !node.first.empty() && node.second.unit_layers.has_value();
  });
}

bool StrategyTree::has_lora() const {
  return std::any_of(nodes_.begin(), nodes_.end(),
                     [](const auto& node) { return node.second.lora.has_value(); });
}

bool StrategyTree::JoinsOps() const {
  return std::any_of(nodes_.begin(), nodes_.end(),
                     [](const auto& node) { return !node.second.compute_at.empty(); });
}

bool StrategyTree::fine_tunes() const {
  return std::any_of(nodes_.begin(), nodes_.end(), [](const auto& node) {
    return node.second.lora.has_value() || node.second.train.has_value();
  });
}

absl::Status Directives::SetRecompute(absl::string_view mode) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(mode, absl::MaxSplits(':', 1));
  const std::optional<Recompute> found = kRecomputeNames.Find(parts.first);
  const bool sets = parts.first.size() < mode.size();
  if (!found.has_value() || (sets && *found != Recompute::kSelective)) {
    return absl::InvalidArgumentError(
        absl::StrCat("no recompute mode `", mode,
                     "`; there are `none`, `selective`, `selective:WORD+WORD` and `full`."));
  }
  recompute_ops.clear();
  if (sets) recompute_ops = absl::StrSplit(parts.second, '+');
  for (const std::string& word : recompute_ops) RETURN_IF_ERROR(FindRecomputeSet(word).status());
  recompute = found;
  return absl::OkStatus();
}

bool Resolved::SaysAs(const Resolved& other) const {
  const auto same_split = [](const ResolvedSplit& a, const ResolvedSplit& b) {
    // What nodes say goes before what the root does.
    return a.directive == b.directive && a.source.empty() == b.source.empty();
  };
  // How many layers the plan offloads is its own affair.
  const auto from_plan = [](const Resolved& resolved) {
    return resolved.home_sources[static_cast<int>(HomeKind::kActivations)].empty();
  };
  // Units begin anew where another node's word begins.
  const bool same_unit = unit_layers == other.unit_layers && unit_source == other.unit_source;
  return same_unit &&
         std::equal(splits.begin(), splits.end(), other.splits.begin(), other.splits.end(),
                    same_split) &&
         on == other.on && recompute == other.recompute && recompute_ops == other.recompute_ops &&
         pieces == other.pieces && loop == other.loop && rewrites == other.rewrites &&
         compute_at == other.compute_at && homes == other.homes &&
         bucket_bytes == other.bucket_bytes && from_plan(*this) == from_plan(other);
}

absl::StatusOr<Directives*> StrategyTree::Node(absl::string_view path) {
  ASSIGN_OR_RETURN(NodePath parsed, NodePath::Parse(path));
  std::string canonical = parsed.DebugString();
  paths_[canonical] = std::move(parsed);
  return &nodes_[std::move(canonical)];
}

absl::Status StrategyTree::SetStages(std::vector<StageNodes> stages) {
  for (size_t s = 0; s < stages.size(); ++s) {
    const std::string place = absl::StrCat("`stages[", s, "]`");
    if (stages[s].nodes.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(place,
                       " holds no nodes. Give each stage some of the model, or leave the "
                       "stage out and lower pp."));
    }
    for (std::string& node : stages[s].nodes) {
      ASSIGN_OR_RETURN(const NodePath path, NodePath::Parse(node), _ << place);
      if (path.length() == 0) {
        return absl::InvalidArgumentError(
            absl::StrCat(place, " has an empty path. Name a module, as in `layers[0:8]`."));
      }
      node = path.DebugString();
    }
  }
  if (!stages.empty() && !plan_.layout.empty()) {
    return absl::InvalidArgumentError(
        "`layout` in the plan and `stages` both say what stages hold. Leave one of them out.");
  }
  stages_ = std::move(stages);
  return absl::OkStatus();
}

std::vector<const NodePath*> StrategyTree::NodesOfLayers(const ModulePath& path) const {
  std::vector<const NodePath*> found;
  for (const auto& [text, node] : paths_) {
    if (node.TellsLayersApart(path)) found.push_back(&node);
  }
  return found;
}

bool StrategyTree::NamesRanks() const {
  return std::any_of(nodes_.begin(), nodes_.end(), [](const auto& node) {
    const auto& homes = node.second.home.of;
    return !node.second.on.empty() ||
           std::any_of(homes.begin(), homes.end(), [](const std::optional<Home>& home) {
             return home.has_value() && home->rank.has_value() && home->axis != "pp";
           });
  });
}

absl::Status StrategyTree::SetIdle(std::vector<DeviceRange> idle) {
  if (!idle.empty() && !HasStagePlaces()) {
    return absl::InvalidArgumentError(
        "`idle` needs `stages` with `mesh` or `devices`. Say those, or take a smaller machine.");
  }
  idle_ = std::move(idle);
  return absl::OkStatus();
}

bool StrategyTree::HasStagePlaces() const {
  return std::any_of(stages_.begin(), stages_.end(),
                     [](const StageNodes& stage) { return !stage.place.empty(); });
}

absl::StatusOr<Resolved> StrategyTree::Resolve(const ModulePath& module) const {
  const std::string root_path;
  const Directives root = Root();
  std::vector<Candidate> candidates = {{&root_path, &root, 0, 0, 0}};
  for (const auto& [text, node] : nodes_) {
    const NodePath& at = paths_.at(text);
    if (text.empty() || !at.Covers(module)) continue;
    candidates.push_back({&text, &node, at.length(), at.stars(), at.slices()});
  }
  // Most specific first.
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.rank() < b.rank(); });
  const std::string path = TextOf(module);
  Resolved resolved;

  std::vector<std::string> axes;
  for (auto it = candidates.rbegin(); it != candidates.rend(); ++it) {
    for (const SplitDirective& split : it->node->split) {
      if (std::find(axes.begin(), axes.end(), split.axis) == axes.end()) axes.push_back(split.axis);
    }
  }
  for (const std::string& axis : axes) {
    ASSIGN_OR_RETURN(const Candidate* decided,
                     Decide(candidates, path, absl::StrCat("split over `", axis, "`"),
                            [&](const Directives& node) -> std::optional<std::string> {
                              const SplitDirective* split = node.FindSplit(axis);
                              if (split == nullptr) return std::nullopt;
                              return split->DebugString();
                            }));
    resolved.splits.push_back({*decided->node->FindSplit(axis), *decided->path});
  }

  std::set<std::string> placed;
  for (const Candidate& candidate : candidates) {
    for (const OnDirective& on : candidate.node->on) placed.insert(on.axis);
  }
  for (const std::string& axis : placed) {
    ASSIGN_OR_RETURN(const Candidate* decided,
                     Decide(candidates, path, absl::StrCat("the ranks of `", axis, "`"),
                            [&](const Directives& node) { return OnText(node, axis); }));
    resolved.on.push_back({*decided->node->FindOn(axis), *decided->path});
  }

  ASSIGN_OR_RETURN(const Candidate* recompute,
                   Decide(candidates, path, "recompute", RecomputeText));
  if (recompute != nullptr) {
    resolved.recompute = *recompute->node->recompute;
    resolved.recompute_ops = recompute->node->recompute_ops;
    resolved.recompute_source = *recompute->path;
  }
  RETURN_IF_ERROR(ResolvePieces(candidates, path, &resolved));
  ASSIGN_OR_RETURN(const Candidate* loop, Decide(candidates, path, "communicate", LoopText));
  if (loop != nullptr) {
    resolved.loop = loop->node->loop;
    resolved.loop_source = *loop->path;
  }
  ASSIGN_OR_RETURN(const Candidate* rewrite, Decide(candidates, path, "rewrite", RewriteText));
  if (rewrite != nullptr) {
    resolved.rewrites = rewrite->node->rewrites;
    resolved.rewrite_source = *rewrite->path;
  }
  ASSIGN_OR_RETURN(const Candidate* at, Decide(candidates, path, "compute_at", ComputeText));
  if (at != nullptr) {
    resolved.compute_at = at->node->compute_at;
    resolved.compute_at_source = *at->path;
  }
  RETURN_IF_ERROR(ResolveHomes(candidates, path, &resolved));
  ASSIGN_OR_RETURN(const Candidate* bucket, Decide(candidates, path, "bucket", BucketText));
  if (bucket != nullptr) {
    resolved.bucket_bytes = bucket->node->bucket_bytes;
    resolved.bucket_source = *bucket->path;
  }
  ASSIGN_OR_RETURN(const Candidate* unit, Decide(candidates, path, "unit", UnitText));
  if (unit != nullptr) {
    resolved.unit_layers = unit->node->unit_layers;
    resolved.unit_source = *unit->path;
  }
  if (!fine_tunes()) return resolved;
  ASSIGN_OR_RETURN(const Candidate* train, Decide(candidates, path, "training", TrainText));
  resolved.train = train == nullptr ? !has_lora() : *train->node->train;
  if (train != nullptr) resolved.train_source = *train->path;
  ASSIGN_OR_RETURN(const Candidate* lora, Decide(candidates, path, "adapters", LoraText));
  if (lora != nullptr) {
    resolved.lora = lora->node->lora;
    resolved.lora_source = *lora->path;
  }
  return resolved;
}

std::string StrategyTree::DebugString() const {
  std::string text =
      absl::StrCat("plan ", PrintShortForm(plan_), "\nroot ", NodeText(Root()), "\n");
  for (const auto& [path, node] : nodes_) {
    if (!path.empty()) absl::StrAppend(&text, path, " ", NodeText(node), "\n");
  }
  return text;
}

bool operator==(const StrategyTree& a, const StrategyTree& b) {
  return a.plan_ == b.plan_ && a.loads_ == b.loads_ && a.stages_ == b.stages_ &&
         a.idle_ == b.idle_ && a.DebugString() == b.DebugString();
}

}  // namespace plancast
