#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "strategy/byte_size.h"
#include "strategy/plan_names.h"
#include "strategy/strategy_tree.h"

// What holds for one op, line by line, with the nodes that say it.

namespace plancast {
namespace {

std::string SourceText(absl::string_view source) {
  return source.empty() ? "root" : absl::StrCat("`", source, "`");
}

}  // namespace

absl::StatusOr<std::string> StrategyTree::Explain(absl::string_view path, int64_t layers) const {
  ModulePath module = ModulePath::Of(path);
  module.count = layers;
  ASSIGN_OR_RETURN(const Resolved resolved, Resolve(module));
  std::vector<std::pair<std::string, std::string>> lines;
  for (const ResolvedSplit& split : resolved.splits) {
    const std::optional<int64_t> size = AxisSize(plan_, split.directive.axis);
    const std::string& axis = split.directive.axis;
    const std::string source =
        absl::StrCat(SourceText(split.source),
                     size.has_value() ? absl::StrCat(" (", axis, "=", *size, ")") : "");
    const auto parts = split.directive.Sizes(size.value_or(1));
    for (size_t i = 0; i < split.directive.levels.size(); ++i) {
      const SplitLevel& level = split.directive.levels[i];
      const int64_t ranks = parts.ok() ? (*parts)[i] : level.parts;
      const std::string part =
          split.directive.is_hierarchy() && ranks > 0 ? absl::StrCat(axis, " /", ranks) : axis;
      lines.emplace_back(
          absl::StrCat("split ", part, ": ", SplitDirective(axis, level.dims).DebugString()),
          source);
    }
  }
  for (const ResolvedOn& on : resolved.on) {
    lines.emplace_back(absl::StrCat("on ", on.directive.axis, ": ", PrintOn(on.directive)),
                       SourceText(on.source));
  }
  lines.emplace_back(
      absl::StrCat("recompute: ", PrintRecompute(resolved.recompute, resolved.recompute_ops)),
      SourceText(resolved.recompute_source));
  for (auto said = resolved.pieces.rbegin(); said != resolved.pieces.rend(); ++said) {
    lines.emplace_back(absl::StrCat("micro_batches: ", said->directive.DebugString()),
                       SourceText(said->source));
  }
  if (!resolved.loop.empty()) {
    lines.emplace_back(absl::StrCat("communicate: ", resolved.loop.DebugString()),
                       SourceText(resolved.loop_source));
  }
  if (!resolved.compute_at.empty()) {
    lines.emplace_back(absl::StrCat("compute_at: ", resolved.compute_at),
                       SourceText(resolved.compute_at_source));
  }
  if (!resolved.rewrites.empty()) {
    lines.emplace_back(absl::StrCat("rewrite: ", plancast::DebugString(resolved.rewrites)),
                       SourceText(resolved.rewrite_source));
  }
  for (const HomeKind kind : kHomeKindNames.Values()) {
    lines.emplace_back(
        absl::StrCat("home ", kHomeKindNames[kind], ": ", PrintHome(kind, resolved.homes[kind])),
        SourceText(resolved.home_sources[static_cast<int>(kind)]));
  }
  if (resolved.bucket_bytes.has_value()) {
    lines.emplace_back(absl::StrCat("bucket: ", PrintByteSize(*resolved.bucket_bytes)),
                       SourceText(resolved.bucket_source));
  }
  if (resolved.unit_layers.has_value() && module.list >= 0) {
    lines.emplace_back(absl::StrCat("unit: ", *resolved.unit_layers),
                       SourceText(resolved.unit_source));
  }
  for (size_t s = 0; s < stages_.size(); ++s) {
    for (const std::string& node : stages_[s].nodes) {
      ASSIGN_OR_RETURN(const NodePath at, NodePath::Parse(node));
      if (!at.Covers(module)) continue;
      lines.emplace_back(absl::StrCat("virtual stage: ", s),
                         absl::StrCat("`stages[", s, "]`, `", node, "`"));
    }
  }
  if (fine_tunes()) {
    lines.emplace_back(resolved.train ? "train: true" : "train: false",
                       SourceText(resolved.train_source));
  }
  if (resolved.lora.has_value()) {
    lines.emplace_back(absl::StrCat("lora: ", resolved.lora->DebugString()),
                       SourceText(resolved.lora_source));
  }
  size_t width = 0;
  for (const auto& line : lines) width = std::max(width, line.first.size());
  std::string text;
  for (const auto& [what, source] : lines) {
    absl::StrAppendFormat(&text, "%-*s   from %s\n", static_cast<int>(width), what, source);
  }
  for (const auto& [node, at] : paths_) {
    if (!at.CoversSomeLayers(module)) continue;
    if (module.index < 0) {
      absl::StrAppend(&text, "some layers are told otherwise by `", node, "`\n");
    } else if (module.count == 0 && at.CountsFromEnd(module.list)) {
      absl::StrAppend(&text, "`", node, "` counts from the end of the list: whether it holds ",
                      "here depends on the number of layers\n");
    }
  }
  return text;
}

}  // namespace plancast
