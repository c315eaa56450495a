#include "strategy/tree_check.h"

#include <algorithm>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "base/suggest.h"

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

// Every path that a node could have: the ops' own and their ancestors'.
struct Modules {
  std::set<std::string> paths;
  std::vector<ListOfLayers> lists;

  int64_t LayersOf(const ModulePath& module) const {
    if (module.list < 0) return 0;
    const std::string list =
        absl::StrJoin(module.parts.begin(), module.parts.begin() + module.list, ".");
    for (const ListOfLayers& known : lists) {
      if (known.path == list) return known.layers;
    }
    return 0;
  }
};

Modules ModulesOf(const ModelPaths& model) {
  Modules modules;
  modules.lists = model.lists;
  for (const std::string& op : model.ops) {
    for (size_t dot = op.find('.'); dot != std::string::npos; dot = op.find('.', dot + 1)) {
      modules.paths.insert(op.substr(0, dot));
    }
    modules.paths.insert(op);
  }
  return modules;
}

// Layers that a node says and the list at `module` does not have.
absl::Status CheckLayers(const NodePath& node, const ModulePath& module, int64_t layers) {
  const std::string list =
      absl::StrJoin(module.parts.begin(), module.parts.begin() + module.list, ".");
  if (const auto missing = node.MissingLayer(module.list, layers)) {
    return absl::InvalidArgumentError(absl::StrCat("`", list, "` has no layer ", *missing,
                                                   ": it has ", layers, ", 0 to ", layers - 1,
                                                   ", or -", layers, " to -1 from the end."));
  }
  for (int64_t layer = 0; layer < layers; ++layer) {
    if (node.HoldsLayer(module.list, layer, layers)) return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "no layer of `", list, "` is in it. A slice [a:b] is the layers from a to b - 1."));
}

absl::Status CheckPath(const NodePath& node, absl::string_view path, const Modules& modules) {
  std::vector<std::string> as_deep;
  absl::Status layers = absl::OkStatus();
  for (const std::string& text : modules.paths) {
    ModulePath module = ModulePath::Of(text);
    module.count = modules.LayersOf(module);
    if (static_cast<int>(module.parts.size()) != node.length()) continue;
    as_deep.push_back(text);
    if (module.count > 0 && node.CoversSomeLayers(module)) {
      layers = CheckLayers(node, module, module.count);
      if (layers.ok()) return layers;
    } else if (node.Covers(module)) {
      return absl::OkStatus();
    }
  }
  RETURN_IF_ERROR(layers) << "`" << path << "`";
  std::string suggestion = DidYouMean(path, as_deep);
  if (suggestion.empty()) suggestion = DidYouMean(path, modules.paths);
  if (suggestion.empty()) {
    std::vector<std::string> top;
    for (const std::string& module : modules.paths) {
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
  if (split.axis != "pp" || split.cuts_nothing()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "`pp` splits no dim (`", absl::StrJoin(split.Entries(), "`, `"),
      "`): it deals whole layers to stages. Leave `pp` out of `split`, and say how many "
      "layers a stage has with `layout` in the plan."));
}

// Ops are on ranks of the axes that their tensors are laid out over.
absl::Status CheckOn(const Directives& node, absl::Span<const SizedAxis> mesh, bool root) {
  for (const OnDirective& on : node.on) {
    RETURN_IF_ERROR(CheckAxis(on.axis, mesh));
    if (root) {
      return absl::InvalidArgumentError(
          absl::StrCat("says `on` of the whole model, which would leave devices idle. Take fewer "
                       "devices, or name the node that has some of them."));
    }
    if (on.axis == "pp") {
      return absl::InvalidArgumentError(
          "`on` names ranks of `pp`: what a stage holds is said by `stages`. Name ranks of `dp`, "
          "`cp` or `tp`.");
    }
    if (on.axis != "dp" && on.axis != "cp" && on.axis != "tp") {
      return absl::InvalidArgumentError(
          absl::StrCat("`on` names ranks of `", on.axis,
                       "`, a view of others. Name ranks of `dp`, `cp` or "
                       "`tp`."));
    }
    const auto size = std::find_if(mesh.begin(), mesh.end(),
                                   [&](const SizedAxis& axis) { return axis.first == on.axis; });
    RETURN_IF_ERROR(RanksOf(on, size->second).status());
    const SplitDirective* split = node.FindSplit(on.axis);
    if (split == nullptr || split->cuts_nothing() || RanksOf(on, size->second)->count > 1) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("splits over `", on.axis,
                     "` what is on one rank of it. Leave `split` or `on` "
                     "out, or give it several ranks (`on: {",
                     on.axis, ": 0/2}`)."));
  }
  return absl::OkStatus();
}

// Homes are on ranks of the axes that split work, those of activations on stages.
absl::Status CheckRank(const OnDirective& rank, absl::Span<const SizedAxis> mesh) {
  const bool splits = rank.axis == "dp" || rank.axis == "cp" || rank.axis == "tp";
  if (!splits && rank.axis != "pp") {
    return absl::InvalidArgumentError(absl::StrCat(
        "`", rank.axis, "` is a view of other axes. Name a rank of `dp`, `cp` or `tp`."));
  }
  const auto size = std::find_if(mesh.begin(), mesh.end(),
                                 [&](const SizedAxis& axis) { return axis.first == rank.axis; });
  if (rank.part < size->second) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("`", rank.axis, "` has ", size->second,
                                                 " ranks here, 0 to ", size->second - 1, "."));
}

// Copies of a weight are shared out over axes that work with it; what they have no copies of is
// seen where layouts are known (HomePlan).
absl::Status CheckHome(const HomeDirective& home, bool root, absl::Span<const SizedAxis> mesh) {
  for (const HomeKind kind : kHomeKindNames.Values()) {
    if (!home[kind].has_value()) continue;
    const std::string said =
        absl::StrCat("`", kHomeKindNames[kind], ": ", PrintHome(kind, *home[kind]), "`");
    for (const std::string& axis : home[kind]->axes()) {
      RETURN_IF_ERROR(CheckAxis(axis, mesh));
      const bool activations = kind == HomeKind::kActivations;
      if (axis != "pp" || (activations && home[kind]->rank.has_value())) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(said, ": `pp` deals whole layers to stages, so no two have copies of one ",
                       activations ? "tensor to share out. Write `on(pp=1)` for stage 1."
                                   : "weight to share out. Write `shard(dp)`."));
    }
    if (home[kind]->rank.has_value()) {
      RETURN_IF_ERROR(CheckRank({home[kind]->axis, *home[kind]->rank, 0}, mesh)) << said;
    }
    // What the plan's `zero` and `offload` say is the root's.
    const bool whole_on_host =
        kind <= HomeKind::kGradients && home[kind]->on_host && !home[kind]->sharded();
    const bool over_others = home[kind]->sharded() && !home[kind]->SharedAs({"dp"});
    if (root && (whole_on_host || over_others)) {
      return absl::InvalidArgumentError(
          absl::StrCat(said,
                       " at the root, whose homes are `zero` and `offload` of the plan: these "
                       "shard over `dp`. Say it at `*`, which is every module."));
    }
  }
  return home.Check();
}

// Micro-batches of the root are those of the plan.
absl::Status CheckRootPieces(const PiecesDirective& pieces, const ShortForm& plan) {
  if (!pieces.max_ongoing.empty() && plan.schedule.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "says `max_ongoing`, which makes a schedule, and the plan schedule=", *plan.schedule,
        ". Leave one of the two out."));
  }
  for (const int64_t most : pieces.max_ongoing) {
    if (most >= 1 && most <= 1'000'000) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("says `max_ongoing` with ", most, ". Give numbers from 1 to a million."));
  }
  if (pieces.micro_batches == 0 ||
      pieces.micro_batches == plan.accum.value_or(pieces.micro_batches))
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("says `micro_batches: ", pieces.micro_batches,
                                                 "` and the plan accum=", *plan.accum,
                                                 ". Leave one of the two out."));
}

}  // namespace

absl::Status CheckNodePath(const NodePath& node, absl::string_view path, const ModelPaths& model) {
  return CheckPath(node, path, ModulesOf(model));
}

absl::Status CheckTree(const StrategyTree& tree, absl::Span<const SizedAxis> mesh,
                       const ModelPaths& model) {
  if (tree.nodes().empty()) return absl::OkStatus();
  const Modules modules = ModulesOf(model);
  for (const auto& [path, node] : tree.nodes()) {
    const std::string place = path.empty() ? "the root" : absl::StrCat("`", path, "`");
    if (!path.empty() && !model.ops.empty()) {
      RETURN_IF_ERROR(CheckPath(tree.PathOf(path), path, modules));
    }
    for (const SplitDirective& split : node.split) {
      RETURN_IF_ERROR(CheckSplit(split, mesh)) << place;
    }
    RETURN_IF_ERROR(CheckOn(node, mesh, path.empty())) << place;
    RETURN_IF_ERROR(CheckHome(node.home, path.empty(), mesh)) << place;
    RETURN_IF_ERROR(path.empty() ? CheckRootPieces(node.pieces, tree.plan()) : node.pieces.Check())
        << place;
  }
  return absl::OkStatus();
}

}  // namespace plancast
