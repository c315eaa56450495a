#include "compiler/bind/plan_mesh.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace plancast {
namespace {

// Per axis: places to cut it at, as numbers of consecutive ranks that stay together.
using Cuts = std::map<std::string, std::vector<int64_t>>;

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

// Where some op spreads an axis over both head dims and the outer one is too small.
void AddHeadCuts(const ModelGraph& graph, const StrategyTree& tree, const DeviceMesh& mesh,
                 Cuts* cuts) {
  auto kv = graph.FindDim(kHeadDims[0]);
  auto per_kv = graph.FindDim(kHeadDims[1]);
  if (!kv.ok() || !per_kv.ok()) return;
  const int64_t kv_heads = graph.dims[*kv].size;
  std::vector<SplitDirective> splits = tree.Root().split;
  for (const auto& [path, node] : tree.nodes()) {
    splits.insert(splits.end(), node.split.begin(), node.split.end());
  }
  for (const SplitDirective& split : splits) {
    if (std::find(split.dims.begin(), split.dims.end(), kCompoundHeads) == split.dims.end()) {
      continue;
    }
    const auto axis = mesh.FindAxis(split.axis);
    if (!axis.ok()) continue;  // reported by SplitOp
    const int64_t size = mesh.size(*axis);
    if (kv_heads % size == 0) continue;
    const int64_t inner = size / std::gcd(kv_heads, size);
    if (graph.dims[*per_kv].size % inner != 0) continue;  // reported by SplitOp
    (*cuts)[split.axis].push_back(inner);
  }
}

constexpr absl::string_view kExpertOrder[] = {"tp", "cp", "dp"};  // innermost first

void AddExpertCuts(const PlanOptions& options, const DeviceMesh& mesh, Cuts* cuts) {
  if (!options.has_expert_mesh()) return;
  int64_t base = 1;
  for (absl::string_view name : kExpertOrder) {
    const auto axis = mesh.FindAxis(name);
    if (!axis.ok()) continue;
    for (const int64_t end : {options.expert_tp(), options.expert_tp() * options.ep}) {
      if (end > base && end < base * mesh.size(*axis)) {
        (*cuts)[std::string(name)].push_back(end / base);
      }
    }
    base *= mesh.size(*axis);
  }
}

void AddShardCuts(const PlanOptions& options, Cuts* cuts) {
  for (const int64_t end : ShardCuts(options)) (*cuts)["dp"].push_back(end);
}

absl::StatusOr<DeviceMesh> Cut(DeviceMesh mesh, const Cuts& cuts) {
  for (const auto& [name, places] : cuts) {
    ASSIGN_OR_RETURN(const int axis, mesh.FindAxis(name));
    std::vector<int64_t> ends = places;
    ends.push_back(mesh.size(axis));
    std::sort(ends.begin(), ends.end());
    ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
    std::vector<int64_t> sizes;
    int64_t before = 1;
    for (const int64_t end : ends) {
      if (end % before != 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("axis `", name, "` of size ", mesh.size(axis), " is cut into parts of ",
                         before, " ranks and into parts of ", end,
                         ", and neither divides the other. Use sizes that do."));
      }
      sizes.insert(sizes.begin(), end / before);
      before = end;
    }
    // Key heads that share no divisor with the axis leave its outer part empty.
    if (sizes.size() == 1) sizes.insert(sizes.begin(), 1);
    ASSIGN_OR_RETURN(mesh, mesh.Subdivide(axis, sizes));
  }
  return mesh;
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
  Cuts cuts;
  AddHeadCuts(graph, tree, mesh, &cuts);
  AddExpertCuts(options, mesh, &cuts);
  AddShardCuts(options, &cuts);
  ASSIGN_OR_RETURN(mesh, Cut(std::move(mesh), cuts));
  AddExpertViews(options, &mesh);
  return mesh;
}

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
