#include "compiler/bind/routed_load.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace plancast {
namespace {

// A dim of pieces (body_pieces.h), which the graph is given after the load was bound, is none.
bool IsSlot(const std::vector<bool>& slots, int dim) {
  return dim >= 0 && dim < static_cast<int>(slots.size()) && slots[dim];
}

// The factor of `op` that runs over a slot dim beside one that runs over `dim`; the
// latter, or -1.
int RoutedFactor(const OpNode& op, int dim, const std::vector<bool>& slots) {
  int factor = -1;
  bool has_slots = false;
  for (size_t f = 0; f < op.factor_dims.size(); ++f) {
    if (op.factor_dims[f] < 0) continue;
    if (op.factor_dims[f] == dim) factor = static_cast<int>(f);
    has_slots = has_slots || IsSlot(slots, op.factor_dims[f]);
  }
  return has_slots ? factor : -1;
}

// Marks the dims of factors that follow others, and those of the tables that name
// what they follow.
void FindSlots(const OpNode& op, std::vector<bool>* slots, std::vector<bool>* tables) {
  for (const Statement& s : op.rule->statements()) {
    for (const Condition& c : s.where) {
      if (!c.is_promise() || op.factor_dims[c.left] < 0) continue;
      (*slots)[op.factor_dims[c.left]] = true;
      for (int t : TensorsOf(s.value)) {
        const RuleTensor& table = op.rule->tensors()[t];
        if (table.dtype != DType::kInt64) continue;
        for (int f : table.factors) {
          if (op.factor_dims[f] >= 0) (*tables)[op.factor_dims[f]] = true;
        }
      }
    }
  }
}

absl::StatusOr<std::vector<double>> PartLoads(const std::string& name, int64_t extent,
                                              const std::vector<double>& loads, int64_t parts) {
  if (static_cast<int64_t>(loads.size()) != extent) {
    return absl::InvalidArgumentError(absl::StrCat("`load` of `", name, "` lists ", loads.size(),
                                                   " numbers, and there are ", extent, "."));
  }
  const double total = std::accumulate(loads.begin(), loads.end(), 0.0);
  const bool negative = std::any_of(loads.begin(), loads.end(), [](double l) { return !(l >= 0); });
  if (negative || !(total > 0) || total > 1e15) {
    return absl::InvalidArgumentError(
        absl::StrCat("`load` of `", name,
                     "` has numbers that are no loads; give shares of the tokens, each 0 "
                     "or more."));
  }
  std::vector<double> of_parts(parts);
  const int64_t size = extent / parts;
  for (int64_t i = 0; i < extent; ++i) {
    of_parts[i / size] += loads[i] / total * static_cast<double>(parts);
  }
  return of_parts;
}

}  // namespace

RowCopies CopiesIn(const ModelGraph& graph, const Body& body, const TensorInfo& tensor,
                   bool deals) {
  const auto has = [&tensor](int dim) {
    return std::find(tensor.dims.begin(), tensor.dims.end(), dim) != tensor.dims.end();
  };
  for (const OpNode& op : body.ops) {
    for (const Statement& s : op.rule->statements()) {
      for (const Condition& c : s.where) {
        if (!c.is_promise() || op.factor_dims[c.left] < 0 || !has(op.factor_dims[c.left])) continue;
        // Slots of all that is routed over, for each of what they follow.
        double receivers = 1;
        for (int t : TensorsOf(s.value)) {
          const RuleTensor& table = op.rule->tensors()[t];
          if (table.dtype != DType::kInt64) continue;
          for (int f : table.factors) {
            const bool batch = graph.dims[op.factor_dims[f]].name == "batch";
            if (f != c.left && !batch)
              receivers *= static_cast<double>(graph.dims[op.factor_dims[f]].size);
          }
        }
        const double copies = receivers *
                              static_cast<double>(graph.dims[op.factor_dims[c.left]].size) /
                              static_cast<double>(graph.dims[op.factor_dims[c.right()]].size);
        RowCopies rows;
        rows.each = std::max(1, static_cast<int>(std::lround(copies)));
        rows.groups = static_cast<int>(graph.expert_groups);
        rows.chosen = static_cast<int>(graph.groups_per_token);
        if (deals) rows.dealt = static_cast<int>(receivers);
        return rows;
      }
    }
  }
  return {};
}

bool RoutedLoad::Holds(const OpNode& op, const FactorSplit& split) const {
  if (empty()) return false;
  const int factor = RoutedFactor(op, dim, slots);
  return factor >= 0 && split.axes[factor] == skew.axes;
}

bool RoutedLoad::Holds(const TensorInfo& tensor, const Layout& layout) const {
  if (empty()) return false;
  bool cut = false, has_slots = false;
  for (size_t d = 0; d < tensor.dims.size(); ++d) {
    has_slots = has_slots || IsSlot(slots, tensor.dims[d]);
    if (tensor.dims[d] != dim) continue;
    const Placement& p = layout.placements[skew.axes.back()];
    cut = p.is_shard() && p.dim == static_cast<int>(d);
  }
  return cut && has_slots;
}

absl::StatusOr<RoutedLoad> LoadOf(const ModelGraph& graph, const StrategyTree& tree,
                                  const std::vector<BoundBody>& bodies, const DeviceMesh& mesh) {
  RoutedLoad load;
  if (tree.loads().empty()) return load;
  if (tree.loads().size() > 1) {
    return absl::UnimplementedError(
        "not supported yet: unlike loads of several dims. Give `load` of one.");
  }
  const auto& [name, numbers] = *tree.loads().begin();
  ASSIGN_OR_RETURN(load.dim, graph.FindDim(name));
  load.slots.resize(graph.dims.size());
  std::vector<bool> tables(graph.dims.size());
  for (const Body& body : graph.bodies) {
    for (const OpNode& op : body.ops) FindSlots(op, &load.slots, &tables);
  }
  if (!tables[load.dim] || load.slots[load.dim]) {
    return absl::InvalidArgumentError(
        absl::StrCat("`load` of `", name, "`: nothing is routed over it."));
  }
  for (const BoundBody& body : bodies) {
    const std::vector<OpNode>& ops = graph.bodies[body.body].ops;
    for (size_t o = 0; o < ops.size(); ++o) {
      const int factor = RoutedFactor(ops[o], load.dim, load.slots);
      if (factor < 0 || body.splits[o].axes[factor].empty()) continue;
      const std::vector<int>& axes = body.splits[o].axes[factor];
      if (!load.skew.empty() && load.skew.axes != axes) {
        return absl::InvalidArgumentError(
            absl::StrCat("`load` of `", name,
                         "`: ops cut it over different axes, so that no device has one "
                         "part. Cut it alike everywhere."));
      }
      load.skew.axes = axes;
    }
  }
  const int64_t parts = mesh.SizeOf(load.skew.axes);
  ASSIGN_OR_RETURN(load.skew.loads, PartLoads(name, graph.dims[load.dim].size, numbers, parts));
  const bool alike = std::all_of(load.skew.loads.begin(), load.skew.loads.end(),
                                 [&](double l) { return l == load.skew.loads[0]; });
  if (alike) load.skew = Skew();
  return load;
}

}  // namespace plancast
