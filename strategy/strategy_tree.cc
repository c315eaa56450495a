#include "strategy/strategy_tree.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "strategy/byte_size.h"
#include "strategy/plan_names.h"
#include "strategy/recompute_set.h"

namespace plancast {
namespace {

using Components = std::vector<absl::string_view>;

Components Split(absl::string_view path) {
  if (path.empty()) return {};
  return absl::StrSplit(path, '.');
}

absl::Status CheckPath(absl::string_view path) {
  for (absl::string_view component : Split(path)) {
    if (component == "*") continue;
    if (component.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("`", path, "` has an empty component. Write paths as in `layers.*.attn`."));
    }
    if (std::all_of(component.begin(), component.end(), absl::ascii_isdigit)) {
      return absl::UnimplementedError(
          absl::StrCat("not supported yet: directives for one layer (`", path,
                       "`). Write `*` for the layer index: they hold for all layers."));
    }
    for (char c : component) {
      if (absl::ascii_isalnum(c) || c == '_') continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "`", path, "` has `", std::string(1, c),
          "` in a component. Components are names or `*`, joined by dots: `layers.*.attn`."));
    }
  }
  return absl::OkStatus();
}

// Whether `pattern` is `path` or an ancestor of it.
bool Covers(const Components& pattern, const Components& path) {
  if (pattern.size() > path.size()) return false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != "*" && pattern[i] != path[i]) return false;
  }
  return true;
}

// A node that holds for the op asked about.
struct Candidate {
  const std::string* path;
  const Directives* node;
  int length = 0;
  int stars = 0;

  // Longer paths first, then fewer stars.
  std::pair<int, int> rank() const { return {-length, stars}; }
};

// Most specific first. The root comes from `root`, not from `nodes`.
std::vector<Candidate> Candidates(const std::map<std::string, Directives>& nodes,
                                  const std::pair<const std::string, Directives>& root,
                                  absl::string_view op) {
  std::vector<Candidate> found = {{&root.first, &root.second, 0, 0}};
  const Components path = Split(op);
  for (const auto& [pattern, node] : nodes) {
    const Components components = Split(pattern);
    if (pattern.empty() || !Covers(components, path)) continue;
    found.push_back({&pattern, &node, static_cast<int>(components.size()),
                     static_cast<int>(std::count(components.begin(), components.end(), "*"))});
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Candidate& a, const Candidate& b) { return a.rank() < b.rank(); });
  return found;
}

// What a node says about one thing, as text; nothing if it is silent.
using Says = std::function<std::optional<std::string>(const Directives&)>;

// The most specific of `candidates` that says something, nullptr if none does.
absl::StatusOr<const Candidate*> Decide(const std::vector<Candidate>& candidates,
                                        absl::string_view op, absl::string_view what,
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

std::string DimsText(const SplitDirective& split) {
  return split.dims.empty() ? "-" : absl::StrJoin(split.dims, " | ");
}

std::optional<std::string> RecomputeText(const Directives& node) {
  if (!node.recompute.has_value()) return std::nullopt;
  return PrintRecompute(*node.recompute, node.recompute_ops);
}

std::optional<std::string> BucketText(const Directives& node) {
  if (!node.bucket_bytes.has_value()) return std::nullopt;
  return PrintByteSize(*node.bucket_bytes);
}

std::string NodeText(const Directives& node) {
  std::vector<std::string> parts;
  for (const SplitDirective& split : node.split) {
    parts.push_back(absl::StrCat("split ", split.axis, ": ", DimsText(split)));
  }
  if (const auto text = RecomputeText(node)) parts.push_back(absl::StrCat("recompute: ", *text));
  if (node.home.has_value()) parts.push_back(absl::StrCat("home: ", *node.home));
  if (const auto text = BucketText(node)) parts.push_back(absl::StrCat("bucket: ", *text));
  return absl::StrCat("{ ", absl::StrJoin(parts, "; "), " }");
}

std::string SourceText(absl::string_view source) {
  return source.empty() ? "root" : absl::StrCat("`", source, "`");
}

}  // namespace

bool Directives::empty() const {
  return split.empty() && !home.has_value() && !recompute.has_value() && !bucket_bytes.has_value();
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

StrategyTree StrategyTree::FromShortForm(const ShortForm& form) {
  StrategyTree tree;
  tree.plan_ = form;
  return tree;
}

Directives StrategyTree::Root() const {
  Directives root;
  root.SetSplit({"dp", {"batch"}});
  // Column- and row-parallel linears, attention heads, the vocabulary; what has
  // none of them (norms, dropouts, residuals) is cut along the sequence or not.
  const int64_t tp = plan_.tp.value_or(1), etp = plan_.etp.value_or(tp);
  root.SetSplit({"tp", {"heads", "ffn", "shared_ffn", "expert_ffn", "vocab"}});
  std::vector<std::string>& over_tp = root.split.back().dims;
  if (plan_.sp) over_tp.push_back("seq");
  if (etp != tp) over_tp.erase(std::find(over_tp.begin(), over_tp.end(), "expert_ffn"));
  // The slots of experts are what is left of the sequence.
  if (plan_.sp || etp != tp) over_tp.push_back("slots");
  if (plan_.ep.value_or(1) > 1) root.SetSplit({"ep", {"!seq", "experts"}});
  if (etp != tp && etp > 1) root.SetSplit({"etp", {"expert_ffn"}});
  if (plan_.zero.value_or(0) >= 1) root.home = "shard(dp)";
  if (plan_.recompute.has_value()) {
    const bool layers = plan_.recompute == "every" || plan_.recompute == "uniform";
    root.recompute = layers ? Recompute::kFull : kRecomputeNames.Find(*plan_.recompute);
    root.recompute_ops = plan_.recompute_ops;
  }
  root.bucket_bytes = plan_.bucket_bytes;

  const auto said = nodes_.find("");
  if (said == nodes_.end()) return root;
  for (const SplitDirective& split : said->second.split) root.SetSplit(split);
  if (said->second.home.has_value()) root.home = said->second.home;
  if (said->second.recompute.has_value()) {
    root.recompute = said->second.recompute;
    root.recompute_ops = said->second.recompute_ops;
  }
  if (said->second.bucket_bytes.has_value()) root.bucket_bytes = said->second.bucket_bytes;
  return root;
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

absl::StatusOr<Directives*> StrategyTree::Node(absl::string_view path) {
  RETURN_IF_ERROR(CheckPath(path));
  return &nodes_[std::string(path)];
}

absl::StatusOr<Resolved> StrategyTree::Resolve(absl::string_view path) const {
  const std::pair<const std::string, Directives> root("", Root());
  const std::vector<Candidate> candidates = Candidates(nodes_, root, path);
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
                              return DimsText(*split);
                            }));
    resolved.splits.push_back({*decided->node->FindSplit(axis), *decided->path});
  }

  ASSIGN_OR_RETURN(const Candidate* recompute,
                   Decide(candidates, path, "recompute", RecomputeText));
  if (recompute != nullptr) {
    resolved.recompute = *recompute->node->recompute;
    resolved.recompute_ops = recompute->node->recompute_ops;
    resolved.recompute_source = *recompute->path;
  }
  ASSIGN_OR_RETURN(const Candidate* home,
                   Decide(candidates, path, "home", [](const Directives& d) { return d.home; }));
  if (home != nullptr) {
    resolved.home = *home->node->home;
    resolved.home_source = *home->path;
  }
  ASSIGN_OR_RETURN(const Candidate* bucket, Decide(candidates, path, "bucket", BucketText));
  if (bucket != nullptr) {
    resolved.bucket_bytes = bucket->node->bucket_bytes;
    resolved.bucket_source = *bucket->path;
  }
  return resolved;
}

absl::StatusOr<std::string> StrategyTree::Explain(absl::string_view path) const {
  ASSIGN_OR_RETURN(const Resolved resolved, Resolve(path));
  std::vector<std::pair<std::string, std::string>> lines;
  for (const ResolvedSplit& split : resolved.splits) {
    const std::optional<int64_t> size = AxisSize(plan_, split.directive.axis);
    lines.emplace_back(
        absl::StrCat("split ", split.directive.axis, ": ", DimsText(split.directive)),
        absl::StrCat(
            SourceText(split.source),
            size.has_value() ? absl::StrCat(" (", split.directive.axis, "=", *size, ")") : ""));
  }
  lines.emplace_back(
      absl::StrCat("recompute: ", PrintRecompute(resolved.recompute, resolved.recompute_ops)),
      SourceText(resolved.recompute_source));
  lines.emplace_back(absl::StrCat("home: ", resolved.home), SourceText(resolved.home_source));
  if (resolved.bucket_bytes.has_value()) {
    lines.emplace_back(absl::StrCat("bucket: ", PrintByteSize(*resolved.bucket_bytes)),
                       SourceText(resolved.bucket_source));
  }
  size_t width = 0;
  for (const auto& line : lines) width = std::max(width, line.first.size());
  std::string text;
  for (const auto& [what, source] : lines) {
    absl::StrAppendFormat(&text, "%-*s   from %s\n", static_cast<int>(width), what, source);
  }
  return text;
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
  return a.plan_ == b.plan_ && a.loads_ == b.loads_ && a.DebugString() == b.DebugString();
}

}  // namespace plancast
