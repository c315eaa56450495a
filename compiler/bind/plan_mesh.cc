#include "compiler/bind/plan_mesh.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/bind/axis_cuts.h"

namespace plancast {
namespace {

absl::StatusOr<DeviceMesh> PlainMesh(const PlanOptions& options) {
  std::vector<MeshAxis> axes;
  for (auto it = options.order.rbegin(); it != options.order.rend(); ++it) {
    const int64_t size = *it == "dp"   ? options.dp
                         : *it == "tp" ? options.tp
                         : *it == "pp" ? options.pp
                         : *it == "cp" ? options.cp
                                       : 1;
    const bool core = *it == "dp" || *it == "tp" || *it == "pp";
    if (core || size > 1) axes.push_back({*it, size});
  }
  return DeviceMesh::Create(std::move(axes));
}

// What nodes say of splits, and who they are.
struct SaidSplit {
  std::string node;
  const SplitDirective* split;
};

std::vector<SaidSplit> SaidSplits(const StrategyTree& tree, const Directives& root) {
  std::vector<SaidSplit> said;
  const auto add = [&](const std::string& node, const Directives& directives) {
    for (const SplitDirective& split : directives.split) said.push_back({node, &split});
  };
  add("the root", root);
  for (const auto& [path, node] : tree.nodes()) {
    if (!path.empty()) add(absl::StrCat("`", path, "`"), node);
  }
  return said;
}

// Each level of a hierarchy is sub-axes of its own.
absl::Status AddLevelCuts(const SaidSplit& said, const DeviceMesh& mesh, AxisCuts* cuts) {
  const SplitDirective& split = *said.split;
  if (!split.is_hierarchy()) return absl::OkStatus();
  if (split.axis == "pp" || IsExpertView(split.axis)) {
    return absl::UnimplementedError(absl::StrCat(
        said.node, ": not supported yet: levels of `", split.axis, "` (`", split.DebugString(),
        "`). Levels are parts of `dp` and `tp`; give `", split.axis, "` dims alone."));
  }
  const auto axis = mesh.FindAxis(split.axis);
  if (!axis.ok() && split.axis != "cp") return absl::OkStatus();  // reported by SplitOp
  const int64_t ranks = axis.ok() ? mesh.size(*axis) : 1;
  ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, split.Sizes(ranks), _ << said.node);
  int64_t inside = 1;
  for (size_t i = sizes.size(); i-- > 1;) {
    inside *= sizes[i];
    if (inside > 1 && inside < ranks) {
      cuts->Add(split.axis, inside, absl::StrCat("`", split.DebugString(), "` of ", said.node));
    }
  }
  return absl::OkStatus();
}

// The ranks that run a node are all of an inner part of the axis.
absl::Status AddPartCuts(const std::string& node, const std::vector<OnDirective>& on,
                         const DeviceMesh& mesh, AxisCuts* cuts) {
  for (const OnDirective& said : on) {
    const auto axis = mesh.FindAxis(said.axis);
    if (!axis.ok()) continue;  // of one rank, or reported by CheckTree
    ASSIGN_OR_RETURN(const OnRanks ranks, RanksOf(said, mesh.size(*axis)), _ << node);
    if (ranks.count == 1 || ranks.count == mesh.size(*axis)) continue;
    cuts->Add(said.axis, ranks.count, absl::StrCat("`on` of ", node));
  }
  return absl::OkStatus();
}

// Where some op spreads a level over both head dims and the outer one is too small.
absl::Status AddHeadCuts(const ModelGraph& graph, const SaidSplit& said, const DeviceMesh& mesh,
                         AxisCuts* cuts) {
  auto kv = graph.FindDim(kHeadDims[0]);
  auto per_kv = graph.FindDim(kHeadDims[1]);
  const auto axis = mesh.FindAxis(said.split->axis);
  // An axis that is not there is reported by SplitOp.
  if (!kv.ok() || !per_kv.ok() || !axis.ok()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, said.split->Sizes(mesh.size(*axis)));
  int64_t kv_heads = graph.dims[*kv].size, inside = mesh.size(*axis);
  // Heads that are cut over tp as well are cut there first.
  const auto tp = mesh.FindAxis("tp");
  if (said.split->axis == "cp" && tp.ok()) kv_heads /= std::gcd(kv_heads, mesh.size(*tp));
  for (size_t i = 0; i < sizes.size(); ++i) {
    inside /= sizes[i];
    const std::vector<std::string>& dims = said.split->levels[i].dims;
    const bool cuts_heads = std::any_of(dims.begin(), dims.end(), [](absl::string_view dim) {
      return dim.substr(dim.find(':') + 1) == kCompoundHeads;
    });
    if (!cuts_heads) continue;
    const int64_t over_keys = std::gcd(kv_heads, sizes[i]), inner = sizes[i] / over_keys;
    kv_heads /= over_keys;
    // What does not divide is reported by SplitOp.
    if (inner == 1 || graph.dims[*per_kv].size % inner != 0) continue;
    cuts->Add(said.split->axis, inside * inner, "fewer key/value heads than ranks");
  }
  return absl::OkStatus();
}

constexpr absl::string_view kExpertOrder[] = {"tp", "cp", "dp"};  // innermost first

void AddExpertCuts(const PlanOptions& options, const DeviceMesh& mesh, AxisCuts* cuts) {
  if (!options.has_expert_mesh()) return;
  int64_t base = 1;
  for (absl::string_view name : kExpertOrder) {
    const auto axis = mesh.FindAxis(name);
    if (!axis.ok()) continue;
    for (const int64_t end : {options.expert_tp(), options.expert_tp() * options.ep}) {
      if (end > base && end < base * mesh.size(*axis)) {
        cuts->Add(name, end / base, "`ep` and `etp`");
      }
    }
    base *= mesh.size(*axis);
  }
}

void AddExpertViews(const PlanOptions& options, DeviceMesh* mesh) {
  std::vector<int> etp, ep, edp;
  int64_t base = 1;
  for (absl::string_view name : kExpertOrder) {
    const std::vector<int> axes = mesh->AxesOf(name);
    for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
      if (mesh->size(*axis) == 1) continue;
      (base < options.expert_tp()                ? etp
       : base < options.expert_tp() * options.ep ? ep
                                                 : edp)
          .push_back(*axis);
      base *= mesh->size(*axis);
    }
  }
  for (auto& [view, axes] : {std::make_pair("etp", &etp), {"ep", &ep}, {"edp", &edp}}) {
    std::sort(axes->begin(), axes->end());
    mesh->AddView(view, *axes);
  }
}

}  // namespace

std::vector<int64_t> ShardCuts(const PlanOptions& options) {
  std::vector<int64_t> cuts;
  const auto add = [&](int64_t ranks) {
    if (ranks > 1 && ranks < options.dp) cuts.push_back(ranks);
  };
  if (options.most_zero() >= 1) add(options.hsdp);
  // Of the ranks of a shard group those of cp are innermost.
  if (options.most_zero() == 3 && options.reshard_ranks > options.cp) {
    add(options.reshard_ranks / options.cp);
  }
  return cuts;
}

absl::StatusOr<DeviceMesh> MeshOf(const ModelGraph& graph, const StrategyTree& tree,
                                  const PlanOptions& options) {
  ASSIGN_OR_RETURN(DeviceMesh mesh, PlainMesh(options));
  AxisCuts cuts;
  const Directives root = tree.Root();
  for (const SaidSplit& said : SaidSplits(tree, root)) {
    RETURN_IF_ERROR(AddLevelCuts(said, mesh, &cuts));
    RETURN_IF_ERROR(AddHeadCuts(graph, said, mesh, &cuts));
  }
  for (const auto& [path, node] : tree.nodes()) {
    RETURN_IF_ERROR(AddPartCuts(absl::StrCat("`", path, "`"), node.on, mesh, &cuts));
  }
  AddExpertCuts(options, mesh, &cuts);
  for (const int64_t ranks : ShardCuts(options)) cuts.Add("dp", ranks, "`hsdp` and `reshard`");
  ASSIGN_OR_RETURN(mesh, cuts.Cut(std::move(mesh)));
  AddExpertViews(options, &mesh);
  return mesh;
}

bool IsExpertView(absl::string_view axis) { return axis == "ep" || axis == "etp" || axis == "edp"; }

bool IsDataAxis(const DeviceMesh& mesh, int axis) {
  const absl::string_view root = mesh.root(axis);
  return root == "dp" || root == "cp";
}

std::vector<int> DataAxes(const DeviceMesh& mesh) {
  std::vector<int> axes;
  for (int a = 0; a < mesh.num_axes(); ++a) {
    if (mesh.size(a) > 1 && IsDataAxis(mesh, a)) axes.push_back(a);
  }
  return axes;
}

}  // namespace plancast
