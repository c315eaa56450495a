#include "compiler/rewrite/bind_rewrites.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/suggest.h"
#include "compiler/body/partition.h"
#include "graph/layout/layout.h"
#include "graph/split/op_split.h"

namespace plancast {
namespace {

bool Contains(const std::vector<int>& list, int value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// Cuts a factor over more axes; a list of axes begins with the outermost.
void Cut(const std::vector<int>& over, std::vector<int>* axes) {
  axes->insert(axes->end(), over.begin(), over.end());
  std::sort(axes->begin(), axes->end());
}

absl::Status Refuse(const std::string& why) { return absl::InvalidArgumentError(why); }

// A sum that an op leaves on the ranks of some axes, and what becomes of it.
struct Sum {
  int tensor = -1;  // of the body
  Layout layout;    // as the op makes it
  std::vector<int> axes;
  int dim = -1;  // of the tensor, whose parts the ranks keep; -1: it is not split
};

class Binder {
 public:
  Binder(const ModelGraph& graph, const DeviceMesh& mesh, BoundBody* bound)
      : graph_(graph), mesh_(mesh), bound_(*bound), body_(graph.bodies[bound->body]) {}

  absl::Status Run(int op, const OpRewrites& said) {
    std::optional<Sum> sum;
    for (const Rewrite& rewrite : said.said) {
      const absl::Status done = Apply(op, rewrite, said.source, &sum);
      if (done.ok()) continue;
      return absl::Status(done.code(), absl::StrCat("`", said.source, "`: `", rewrite.DebugString(),
                                                    "`: ", done.message()));
    }
    return absl::OkStatus();
  }

 private:
  const std::string& NameOf(int op) const { return body_.ops[op].name; }
  const std::string& DimName(int tensor, int dim) const {
    return graph_.dims[body_.tensors[tensor].dims[dim]].name;
  }
  std::string AxesText(const std::vector<int>& axes) const {
    return absl::StrJoin(axes, "*", [&](std::string* out, int axis) {
      absl::StrAppend(out, mesh_.axis(axis).name);
    });
  }

  absl::Status Apply(int op, const Rewrite& rewrite, const std::string& source,
                     std::optional<Sum>* sum) {
    ASSIGN_OR_RETURN(const std::vector<int> ops, Named(op, rewrite.ops));
    switch (rewrite.kind) {
      case Rewrite::Kind::kSplit: {
        ASSIGN_OR_RETURN(*sum, SplitSum(op, rewrite));
        bound_.in_two.emplace_back((*sum)->tensor, PartsOf(**sum));
        break;
      }
      case Rewrite::Kind::kReorder:
        if (!sum->has_value()) {
          return Refuse(absl::StrCat("there is no all_gather behind `", NameOf(op),
                                     "` yet. Say `split(all_reduce)` before it."));
        }
        RETURN_IF_ERROR(Reorder(**sum, ops));
        break;
      case Rewrite::Kind::kOverlap:
        RETURN_IF_ERROR(Overlap(op, ops[0], rewrite, source));
        break;
      case Rewrite::Kind::kFuse:
        break;
    }
    bound_.rewrites.push_back({op, rewrite, ops, source});
    return absl::OkStatus();
  }

  // Ops of the body by their names, or the ends of them, in the order of the body.
  absl::StatusOr<std::vector<int>> Named(int op, const std::vector<std::string>& names) const {
    std::vector<int> found;
    for (const std::string& name : names) {
      std::vector<int> matches;
      std::vector<std::string> known;
      for (size_t o = 0; o < body_.ops.size(); ++o) {
        const std::string& full = body_.ops[o].name;
        known.push_back(full);
        if (full == name || absl::EndsWith(full, absl::StrCat(".", name))) {
          matches.push_back(static_cast<int>(o));
        }
      }
      if (matches.size() > 1 && Contains(matches, op)) matches = {op};
      if (matches.size() != 1) {
        return Refuse(absl::StrCat(
            matches.empty() ? "no op" : "more than one op", " `", name, "` in the module of `",
            NameOf(op), "`.",
            matches.empty() ? DidYouMean(name, known) : std::string(" Write more of its name.")));
      }
      found.push_back(matches[0]);
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  absl::StatusOr<OpPartition> Partition(int op, const FactorSplit& split) const {
    const OpNode& node = body_.ops[op];
    return PartitionOp(*node.rule, split, mesh_, FactorExtents(graph_, node, *node.rule));
  }

  absl::StatusOr<Sum> SumOf(int op) const {
    const OpNode& node = body_.ops[op];
    ASSIGN_OR_RETURN(const OpPartition partition, Partition(op, bound_.splits[op]));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      Sum sum;
      sum.tensor = node.outputs[i];
      sum.layout = partition.tensors[node.rule->outputs()[i]];
      for (const auto& [axis, coordinate] : bound_.OnOf(op)) {
        sum.layout.placements[axis] = Placement::On(coordinate);
      }
      for (int axis = 0; axis < mesh_.num_axes(); ++axis) {
        if (sum.layout.placements[axis].is_partial() && mesh_.size(axis) > 1) {
          sum.axes.push_back(axis);
        }
      }
      if (!sum.axes.empty()) return sum;
    }
    return Refuse(absl::StrCat("`", NameOf(op),
                               "` leaves no sum to be reduced: as it is split, every rank has the "
                               "whole of what it makes or a part. Split a factor that it sums "
                               "over (`explain` says how it is split)."));
  }

  absl::StatusOr<Sum> SplitSum(int op, const Rewrite& rewrite) const {
    ASSIGN_OR_RETURN(Sum sum, SumOf(op));
    const TensorInfo& tensor = body_.tensors[sum.tensor];
    const int64_t ranks = mesh_.SizeOf(sum.axes);
    std::vector<std::string> sizes;
    for (size_t d = 0; d < tensor.dims.size() && sum.dim < 0; ++d) {
      const int dim = static_cast<int>(d);
      const ModelDim& model_dim = graph_.dims[tensor.dims[d]];
      if (!rewrite.along.empty() && model_dim.name != rewrite.along) continue;
      int64_t size = model_dim.size;
      bool inside = true;  // parts are of what a device has
      for (int axis = 0; axis < mesh_.num_axes(); ++axis) {
        const Placement& placement = sum.layout.placements[axis];
        if (!placement.is_shard() || placement.dim != dim) continue;
        size /= mesh_.size(axis);
        inside = inside && axis < sum.axes[0];
      }
      sizes.push_back(absl::StrCat("`", model_dim.name, "` (", size,
                                   inside ? ")" : ", cut over ranks inside of these)"));
      if (size % ranks == 0 && inside) sum.dim = dim;
    }
    if (sum.dim >= 0) return sum;
    return Refuse(
        absl::StrCat("no dim of `", tensor.name, "` has parts for the ", ranks, " ranks of ",
                     AxesText(sum.axes), sizes.empty() ? "" : ": ", absl::StrJoin(sizes, ", "),
                     sizes.empty() ? absl::StrCat(": it has no dim `", rewrite.along, "`.")
                                   : " on a device does not divide."));
  }

  // The layout between reduce-scatter and all-gather.
  static Layout PartsOf(const Sum& sum) {
    Layout parts = sum.layout;
    for (const int axis : sum.axes) parts.placements[axis] = Placement::Shard(sum.dim);
    return parts;
  }

  std::vector<int> ReadersOf(int tensor) const {
    std::vector<int> readers;
    for (size_t o = 0; o < body_.ops.size(); ++o) {
      if (Contains(body_.ops[o].inputs, tensor)) readers.push_back(static_cast<int>(o));
    }
    return readers;
  }

  // The ops in a row work on parts, where so far each rank works on the whole.
  absl::Status Reorder(const Sum& sum, const std::vector<int>& ops) {
    std::map<int, int> parts = {{sum.tensor, sum.dim}};  // tensors that come in parts: of which dim
    for (const int op : ops) RETURN_IF_ERROR(GoPast(sum, op, &parts));
    for (const int reader : ReadersOf(sum.tensor)) {
      if (Contains(ops, reader)) continue;
      return Refuse(
          absl::StrCat("`", NameOf(reader), "` reads all of `", body_.tensors[sum.tensor].name,
                       "`, so that it is gathered before it all the same. Name it too, or "
                       "leave the reorder out."));
    }
    KeepInParts(sum, ops, parts);
    return absl::OkStatus();
  }

  absl::Status GoPast(const Sum& sum, int op, std::map<int, int>* parts) {
    const OpNode& node = body_.ops[op];
    const OpRule& rule = *node.rule;
    int factor = -1;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const auto in = parts->find(node.inputs[i]);
      if (in == parts->end()) continue;
      const int cut = rule.tensors()[rule.inputs()[i]].factors[in->second];
      if (factor >= 0 && rule.ties()[factor] != rule.ties()[cut]) {
        return Refuse(absl::StrCat("`", node.name,
                                   "` reads two tensors that come in parts, along `",
                                   rule.factors()[factor], "` and `", rule.factors()[cut],
                                   "`: a rank has not the parts that go together."));
      }
      factor = cut;
    }
    if (factor < 0) {
      return Refuse(absl::StrCat("`", node.name,
                                 "` reads nothing that comes in parts there: "
                                 "`past` goes from op to op."));
    }
    const std::string& name = rule.factors()[factor];
    if (!rule.may_cut(factor)) {
      return Refuse(absl::StrCat("`", node.name, "` takes `", name,
                                 "` as a whole (it is opaque). Leave it out of `past`."));
    }
    FactorSplit split = bound_.splits[op];
    for (size_t f = 0; f < split.axes.size(); ++f) {
      for (const int axis : sum.axes) {
        if (!Contains(split.axes[f], axis)) continue;
        return Refuse(absl::StrCat("`", node.name, "` is cut along `", rule.factors()[f],
                                   "` over `", mesh_.axis(axis).name,
                                   "` already and reads no whole. Leave it out of `past`."));
      }
    }
    Cut(sum.axes, &split.axes[factor]);
    ASSIGN_OR_RETURN(const OpPartition partition, Partition(op, split),
                     _ << "`" << node.name << "`");
    for (const int input : rule.inputs()) {
      if (!partition.tensors[input].has_halo()) continue;
      return Refuse(absl::StrCat("`", node.name, "` reads `", rule.tensors()[input].name,
                                 "` beyond its part of `", name, "`. Leave it out of `past`."));
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const RuleTensor& made = rule.tensors()[rule.outputs()[i]];
      const Layout& layout = partition.tensors[rule.outputs()[i]];
      for (const int axis : sum.axes) {
        const Placement& placement = layout.placements[axis];
        if (placement.is_partial()) {
          return Refuse(absl::StrCat("`", node.name, "` reduces over `", name,
                                     "`, of which each rank has a part: its `", made.name,
                                     "` would be a share of the result on every rank of ",
                                     AxesText(sum.axes), ". Leave it out of `past`."));
        }
        if (placement.is_shard()) (*parts)[node.outputs[i]] = placement.dim;
      }
    }
    bound_.splits[op] = std::move(split);
    return absl::OkStatus();
  }

  // Whether an op only gives a model input a name.
  bool IsGiven(int op) const {
    const OpNode& node = body_.ops[op];
    const std::vector<Statement>& statements = node.rule->statements();
    return node.inputs.size() == 1 && statements.size() == 1 &&
           IsRenaming(*node.rule, statements[0]) &&
           body_.tensors[node.inputs[0]].kind == TensorInfo::Kind::kInput;
  }

  // What is given and now read in parts alone is there in parts from the start.
  void KeepInParts(const Sum& sum, const std::vector<int>& ops, const std::map<int, int>& parts) {
    for (size_t o = 0; o < body_.ops.size(); ++o) {
      const int op = static_cast<int>(o);
      if (!IsGiven(op)) continue;
      const int tensor = body_.ops[op].outputs[0];
      std::optional<int> dim;
      bool alike = parts.count(tensor) == 0;
      for (const int reader : ReadersOf(tensor)) {
        alike = alike && Contains(ops, reader);
        const absl::StatusOr<OpPartition> partition = Partition(reader, bound_.splits[reader]);
        const OpNode& node = body_.ops[reader];
        for (size_t i = 0; i < node.inputs.size() && alike; ++i) {
          if (node.inputs[i] != tensor) continue;
          const Placement& placement =
              partition->tensors[node.rule->inputs()[i]].placements[sum.axes[0]];
          alike = placement.is_shard() && dim.value_or(placement.dim) == placement.dim;
          dim = placement.dim;
        }
      }
      if (!alike || !dim.has_value()) continue;
      const OpRule& rule = *body_.ops[op].rule;
      const int factor = rule.tensors()[rule.outputs()[0]].factors[*dim];
      Cut(sum.axes, &bound_.splits[op].axes[factor]);
    }
  }

  // A product whose result leaves piece by piece, or one that takes a gathered tensor in so.
  absl::Status Overlap(int op, int runs, const Rewrite& rewrite, const std::string& source) {
    const bool behind = runs == op;
    const bool gathers = rewrite.comms[0] == CollectiveKind::kAllGather;
    if (behind == gathers) {
      return Refuse(absl::StrCat(
          "`", NameOf(runs), behind ? "` makes what is gathered" : "` reads what is reduced",
          " whole. A reduction overlaps with the op that makes the sum, a gather with one that "
          "reads it."));
    }
    const OpNode& node = body_.ops[runs];
    const OpRule& rule = *node.rule;
    const int made = body_.ops[op].outputs[0];
    const std::vector<int>& tensors = behind ? node.outputs : node.inputs;
    const std::vector<int>& of_rule = behind ? rule.outputs() : rule.inputs();
    const auto at = std::find(tensors.begin(), tensors.end(), made);
    if (at == tensors.end()) {
      return Refuse(
          absl::StrCat("`", NameOf(runs), "` does not read what `", NameOf(op), "` makes."));
    }
    const RuleTensor& tensor = rule.tensors()[of_rule[at - tensors.begin()]];
    if (rewrite.tuned()) {
      return Refuse(
          "nothing is simulated here that could tell. Give a number, or see which one "
          "`predict` chooses.");
    }
    const int64_t pieces = rewrite.pieces;
    if (pieces == 1) return absl::OkStatus();
    const std::vector<int64_t> extents =
        LocalExtents(graph_, mesh_, node, bound_.splits[runs], rule);
    int best = -1;  // the longest that divides: parts of it stay large
    for (const int factor : tensor.factors) {
      if (!rule.may_cut(factor) || extents[factor] % pieces != 0) continue;
      if (best < 0 || extents[factor] > extents[best]) best = factor;
    }
    if (best < 0 && behind) {
      return Refuse(absl::StrCat("no dim of `", tensor.name, "` divides into ", pieces,
                                 " pieces on a device. Give fewer."));
    }
    if (bound_.loops.empty()) bound_.loops.resize(body_.ops.size());
    auto& [loop, node_of] = bound_.loops[runs];
    if (!loop.empty()) {
      return Refuse(absl::StrCat("`", NameOf(runs), "` is a loop already (`", loop.DebugString(),
                                 "`). Leave one of the two out."));
    }
    // What is gathered comes along the dim that it is gathered along.
    const std::string along = behind ? rule.factors()[best] : LoopDirective::kAll;
    loop.communicate[tensor.name] = along;
    loop.pieces[along] = pieces;
    node_of = source;
    return absl::OkStatus();
  }

  const ModelGraph& graph_;
  const DeviceMesh& mesh_;
  BoundBody& bound_;
  const Body& body_;
};

}  // namespace

bool SaysRewrites(const std::vector<OpRewrites>& said) {
  return std::any_of(said.begin(), said.end(),
                     [](const OpRewrites& op) { return !op.said.empty(); });
}

absl::Status BindRewrites(const ModelGraph& graph, const DeviceMesh& mesh,
                          const std::vector<OpRewrites>& said, BoundBody* bound) {
  Binder binder(graph, mesh, bound);
  for (size_t op = 0; op < said.size(); ++op) {
    if (said[op].said.empty()) continue;
    RETURN_IF_ERROR(binder.Run(static_cast<int>(op), said[op]));
  }
  return absl::OkStatus();
}

}  // namespace plancast
