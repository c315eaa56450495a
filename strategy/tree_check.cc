#include "strategy/tree_check.h"

#include <algorithm>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "base/suggest.h"
#include "strategy/byte_size.h"

namespace plancast {
namespace {

absl::Status CheckAxis(absl::string_view axis, absl::Span<const SizedAxis> mesh) {
  std::vector<std::string> names, sizes;
  for (const auto& [name, size] : mesh) {
    if (name == axis) return absl::OkStatus();
    names.push_back(name);
    sizes.push_back(absl::StrCat("`", name, "` (", size, ")"));
  }
  return absl::InvalidArgumentError(absl::StrCat("no mesh axis `", axis, "`; the mesh has ",
                                                 absl::StrJoin(sizes, ", "), ".",
                                                 DidYouMean(axis, names)));
}

bool Matches(absl::string_view pattern, absl::string_view component) {
  return pattern == "*" || pattern == component;
}

// Every path that a node could have: the ops' own and their ancestors'.
std::set<std::string> Modules(absl::Span<const std::string> ops) {
  std::set<std::string> modules;
  for (const std::string& op : ops) {
    for (size_t dot = op.find('.'); dot != std::string::npos; dot = op.find('.', dot + 1)) {
      modules.insert(op.substr(0, dot));
    }
    modules.insert(op);
  }
  return modules;
}

absl::Status CheckPath(absl::string_view path, const std::set<std::string>& modules) {
  const std::vector<absl::string_view> pattern = absl::StrSplit(path, '.');
  std::vector<std::string> as_deep;
  for (const std::string& module : modules) {
    const std::vector<absl::string_view> parts = absl::StrSplit(module, '.');
    if (parts.size() != pattern.size()) continue;
    if (std::equal(pattern.begin(), pattern.end(), parts.begin(), Matches)) {
      return absl::OkStatus();
    }
    as_deep.push_back(module);
  }
  std::string suggestion = DidYouMean(path, as_deep);
  if (suggestion.empty()) suggestion = DidYouMean(path, modules);
  if (suggestion.empty()) {
    std::vector<std::string> top;
    for (const std::string& module : modules) {
      if (std::count(module.begin(), module.end(), '.') <= 2) top.push_back(module);
    }
    suggestion = absl::StrCat(" There are ", JoinQuoted(top), ".");
  }
  return absl::InvalidArgumentError(
      absl::StrCat("nothing in the model is at `", path, "`.", suggestion));
}

// Stages hold layers: what a pipeline axis cuts is no dim of an op.
absl::Status CheckSplit(const SplitDirective& split, absl::Span<const SizedAxis> mesh) {
  RETURN_IF_ERROR(CheckAxis(split.axis, mesh));
  if (split.axis != "pp" || split.dims.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "`pp` splits no dim (`", absl::StrJoin(split.dims, "`, `"),
      "`): it deals whole layers to stages. Leave `pp` out of `split`, and say how many "
      "layers a stage has with `layout` in the plan."));
}

// All parameters of a plan have one home; a node may say which, and no other.
absl::Status CheckHome(absl::string_view home, bool shards, absl::Span<const SizedAxis> mesh) {
  ASSIGN_OR_RETURN(const std::string axis, HomeAxis(home));
  if (!axis.empty()) {
    RETURN_IF_ERROR(CheckAxis(axis, mesh));
  }
  if (!axis.empty() && axis != "dp") {
    return absl::UnimplementedError(
        absl::StrCat("not supported yet: `home: ", home,
                     "`; parameters' state is sharded over `dp` alone. Leave `home` out, and write "
                     "`zero=1` in the plan for `shard(dp)`."));
  }
  if (axis.empty() != shards) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(
      "not supported yet: `home: ", home, "` where the plan has ",
      shards ? "`shard(dp)`, by its `zero`" : "`replicate`",
      ": all parameters have one home. Leave `home` out, and ",
      shards ? "`zero` too if nothing is to be sharded." : "write `zero=1` in the plan."));
}

absl::Status CheckBucket(int64_t bytes, std::optional<int64_t> plan) {
  if (plan == bytes) return absl::OkStatus();
  const std::string size = PrintByteSize(bytes);
  return absl::UnimplementedError(
      absl::StrCat("not supported yet: `bucket: ", size,
                   "` of a node; all gradients have buckets of one size. Write `bucket=", size,
                   "` in the plan instead."));
}

}  // namespace

absl::StatusOr<std::string> HomeAxis(absl::string_view home) {
  if (home == "replicate") return std::string();
  absl::string_view axis = home;
  if (absl::ConsumePrefix(&axis, "shard(") && absl::ConsumeSuffix(&axis, ")") && !axis.empty()) {
    return std::string(axis);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "`", home, "` is not a home layout. Write `replicate`, or `shard(dp)` for an axis `dp`."));
}

absl::Status CheckTree(const StrategyTree& tree, absl::Span<const SizedAxis> mesh,
                       absl::Span<const std::string> ops) {
  if (tree.nodes().empty()) return absl::OkStatus();
  const std::set<std::string> modules = Modules(ops);
  for (const auto& [path, node] : tree.nodes()) {
    const std::string place = path.empty() ? "the root" : absl::StrCat("`", path, "`");
    if (!path.empty() && !ops.empty()) {
      RETURN_IF_ERROR(CheckPath(path, modules));
    }
    for (const SplitDirective& split : node.split) {
      RETURN_IF_ERROR(CheckSplit(split, mesh)) << place;
    }
    if (node.home.has_value()) {
      RETURN_IF_ERROR(CheckHome(*node.home, tree.plan().zero.value_or(0) >= 1, mesh)) << place;
    }
    if (node.bucket_bytes.has_value()) {
      RETURN_IF_ERROR(CheckBucket(*node.bucket_bytes, tree.plan().bucket_bytes)) << place;
    }
  }
  return absl::OkStatus();
}

}  // namespace plancast
