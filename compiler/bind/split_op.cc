#include "compiler/bind/split_op.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "base/suggest.h"
#include "compiler/bind/axis_cuts.h"
#include "compiler/bind/plan_mesh.h"
#include "graph/split/halo_inference.h"

namespace plancast {
namespace {

// Only vocabularies (`vocab`, `vocab_3` of the third table), which frameworks pad, and
// the slots of experts may end in a shorter last shard.
bool MayBeUneven(absl::string_view dim) { return absl::StartsWith(dim, "vocab") || dim == "slots"; }

std::string Divisors(int64_t n) {
  std::vector<int64_t> divisors;
  for (int64_t d = 1; d <= n && d <= 4096; ++d) {
    if (n % d == 0) divisors.push_back(d);
  }
  return absl::StrJoin(divisors, ", ");
}

int FactorOfDim(const ModelGraph& graph, const OpNode& op, absl::string_view dim) {
  for (size_t f = 0; f < op.factor_dims.size(); ++f) {
    if (op.factor_dims[f] >= 0 && graph.dims[op.factor_dims[f]].name == dim) {
      return static_cast<int>(f);
    }
  }
  return -1;
}

// `kv_seq:heads`, heads of what has a kv_seq: takes the condition off.
absl::string_view TakeCondition(absl::string_view* dim) {
  const size_t colon = dim->find(':');
  if (colon == absl::string_view::npos) return "";
  const absl::string_view condition = dim->substr(0, colon);
  dim->remove_prefix(colon + 1);
  return condition;
}

// `zigzag(seq)`, a piece from each end: takes the pattern off.
ShardPattern TakePattern(absl::string_view* dim) {
  if (!absl::ConsumePrefix(dim, "zigzag(")) return ShardPattern::kBlock;
  absl::ConsumeSuffix(dim, ")");
  return ShardPattern::kMirrored;
}

// Whether pieces from both ends may be worked on alone: nothing runs along the factor, and no index
// map reaches from one of its indices to others.
bool MayBeMirrored(const OpRule& rule, int factor) {
  const std::vector<int>& ties = rule.ties();
  const bool tied = std::count(ties.begin(), ties.end(), ties[factor]) > 1;
  return std::none_of(rule.statements().begin(), rule.statements().end(), [&](const Statement& s) {
    if (s.combine == Combine::kScan && s.scan.factor == factor) return true;
    return std::any_of(s.where.begin(), s.where.end(), [&](const Condition& c) {
      return tied && c.is_map() && ties[c.left] == ties[factor];
    });
  });
}

// Whether a directive may name this dim for `op`.
bool KnowsDim(const ModelGraph& graph, const OpNode& op, absl::string_view dim) {
  absl::ConsumePrefix(&dim, "!");
  TakeCondition(&dim);
  TakePattern(&dim);
  if (absl::StartsWith(dim, ".")) return op.rule->FindFactor(dim.substr(1)).ok();
  return dim == kCompoundHeads || std::any_of(graph.dims.begin(), graph.dims.end(),
                                              [&](const ModelDim& d) { return d.name == dim; });
}

absl::Status NoDim(const ModelGraph& graph, const std::string& path, absl::string_view dim) {
  std::vector<std::string> known;
  for (const ModelDim& d : graph.dims) known.push_back(d.name);
  known.emplace_back(kCompoundHeads);
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": no dim `", dim, "` to split; the model has ", JoinQuoted(known),
                   " (a factor of the op's rule is written `.k`).", DidYouMean(dim, known)));
}

absl::Status CheckDim(const ModelGraph& graph, const OpNode& op, const std::string& path,
                      absl::string_view dim) {
  if (KnowsDim(graph, op, dim)) return absl::OkStatus();
  if (absl::StartsWith(dim, ".")) {
    const absl::Status none = op.rule->FindFactor(dim.substr(1)).status();
    return absl::Status(none.code(), absl::StrCat("`", path, "`: ", none.message()));
  }
  return NoDim(graph, absl::StrCat("`", path, "`"), dim);
}

// Some ranks of an axis, and what they are told.
struct Cut {
  const SplitDirective& split;
  const SplitLevel& level;
  std::vector<int> axes;  // of the mesh

  // `axis `tp``, or `level `ffn/4` of axis `tp``.
  std::string DebugString() const {
    return absl::StrCat(
        split.is_hierarchy() ? absl::StrCat("level `", level.DebugString(), "` of ") : "", "axis `",
        split.axis, "`");
  }
};

absl::Status CheckDivides(const std::string& path, absl::string_view name, const Cut& cut,
                          int64_t extent, int64_t parts, ShardPattern pattern) {
  if (pattern == ShardPattern::kMirrored && parts > 1 && extent % (2 * parts) != 0 &&
      !MayBeUneven(name)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "`", path, "` cannot cut dim `", name, "` (", extent, ") over ", cut.DebugString(), " in ",
        2 * parts, " pieces, two for each of ", parts, " ranks: ", extent, " is not divisible by ",
        2 * parts, ". Use a multiple, or cp_type=ring, which takes one."));
  }
  if (parts == 1 || extent % parts == 0 || MayBeUneven(name)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("`", path, "` cannot shard dim `", name, "` (", extent, ") over ",
                   cut.DebugString(), " of size ", parts, ": ", extent, " is not divisible by ",
                   parts, ". Sizes that work: ", Divisors(extent), "."));
}

// Puts the compound `heads` on the axes of one level. Returns false if the op has neither head
// dim.
absl::StatusOr<bool> SplitHeads(const ModelGraph& graph, const OpNode& op, const std::string& path,
                                const Cut& cut, const DeviceMesh& mesh, FactorSplit* split) {
  const int outer = FactorOfDim(graph, op, kHeadDims[0]);
  if (outer < 0 || !op.rule->may_cut(outer)) return false;
  const int inner = FactorOfDim(graph, op, kHeadDims[1]);
  const int64_t kv_heads = graph.dims[op.factor_dims[outer]].size;
  auto per_kv_dim = graph.FindDim(kHeadDims[1]);
  const int64_t per_kv = per_kv_dim.ok() ? graph.dims[*per_kv_dim].size : 1;
  // Outer sub-axes cut the key heads as long as these last, the rest the query heads. Levels
  // further out and other axes have taken theirs.
  const auto taken = [&](int factor) {
    return factor < 0 ? int64_t{1} : mesh.SizeOf(split->axes[factor]);
  };
  int64_t over_keys = taken(outer), over_queries = taken(inner);
  const int64_t before = over_keys * over_queries;
  for (const int axis : cut.axes) {
    const bool of_keys = kv_heads % (over_keys * mesh.size(axis)) == 0;
    (of_keys ? over_keys : over_queries) *= mesh.size(axis);
    if (of_keys || inner >= 0) split->axes[of_keys ? outer : inner].push_back(axis);
  }
  if (per_kv % over_queries == 0) return true;
  return absl::InvalidArgumentError(absl::StrCat(
      "`", path, "` cannot shard dim `heads` (", kv_heads * per_kv, " in ", kv_heads,
      " key/value groups) over ", cut.DebugString(), " of size ", mesh.SizeOf(cut.axes),
      before > 1 ? absl::StrCat(", beside ", before, " parts over others") : "",
      ". Sizes that work: ", Divisors(kv_heads), " and ", kv_heads, " times a divisor of ", per_kv,
      "."));
}

// Whether the op takes it.
absl::StatusOr<bool> ApplyCut(const ModelGraph& graph, const OpNode& op, const std::string& path,
                              const Cut& cut, const DeviceMesh& mesh, FactorSplit* split) {
  for (absl::string_view dim : cut.level.dims) {
    RETURN_IF_ERROR(CheckDim(graph, op, path, dim));
    if (dim[0] == '!') {
      if (FactorOfDim(graph, op, dim.substr(1)) >= 0) return false;
      continue;
    }
    const absl::string_view condition = TakeCondition(&dim);
    if (!condition.empty() && FactorOfDim(graph, op, condition) < 0) continue;
    ShardPattern pattern = TakePattern(&dim);
    if (dim == kCompoundHeads) {
      ASSIGN_OR_RETURN(const bool done, SplitHeads(graph, op, path, cut, mesh, split));
      if (done) return true;
      continue;
    }
    int factor = -1;
    if (absl::StartsWith(dim, ".")) {
      ASSIGN_OR_RETURN(factor, op.rule->FindFactor(dim.substr(1)));
    } else {
      factor = FactorOfDim(graph, op, dim);
    }
    if (factor < 0 || !op.rule->may_cut(factor)) continue;
    const int model_dim = op.factor_dims[factor];
    const int64_t extent = model_dim < 0 ? 1 : graph.dims[model_dim].size;
    if (pattern == ShardPattern::kMirrored && !MayBeMirrored(*op.rule, factor)) {
      pattern = ShardPattern::kBlock;
    }
    if (split->pattern(factor) == ShardPattern::kMirrored) pattern = ShardPattern::kMirrored;
    const int64_t parts = mesh.SizeOf(cut.axes) * mesh.SizeOf(split->axes[factor]);
    RETURN_IF_ERROR(CheckDivides(path, model_dim < 0 ? dim : graph.dims[model_dim].name, cut,
                                 extent, parts, pattern));
    if (pattern == ShardPattern::kMirrored) {
      split->patterns.resize(split->axes.size());
      split->patterns[factor] = pattern;
    }
    split->axes[factor].insert(split->axes[factor].end(), cut.axes.begin(), cut.axes.end());
    return true;
  }
  return false;
}

// Axes of the language that a mesh may leave out: these have size 1.
bool MayBeMissing(absl::string_view axis) { return axis == "cp" || IsExpertView(axis); }

absl::Status NoAxis(absl::string_view axis, const DeviceMesh& mesh) {
  std::vector<std::string> names;
  std::vector<std::string> shown;
  for (const MeshAxis& known : mesh.axes()) {
    names.push_back(known.name);
    shown.push_back(absl::StrCat("`", known.name, "` (", known.size, ")"));
  }
  return absl::InvalidArgumentError(absl::StrCat("no mesh axis `", axis, "`; the mesh has ",
                                                 absl::StrJoin(shown, ", "), ".",
                                                 DidYouMean(axis, names)));
}

}  // namespace

void SplitUse::Note(const ResolvedSplit& said, size_t level, const OpNode& op, bool taken) {
  std::vector<Level>& levels = used_[{said.source, said.directive.axis}];
  if (levels.size() <= level) levels.resize(level + 1);
  Level& use = levels[level];
  use.asked = true;
  use.taken = use.taken || taken;
  for (size_t f = 0; f < op.factor_dims.size() && !use.taken; ++f) {
    if (op.rule->may_cut(static_cast<int>(f))) use.dims.insert(op.factor_dims[f]);
  }
}

absl::Status SplitUse::Check(const ModelGraph& graph, const StrategyTree& tree) const {
  for (const auto& [key, levels] : used_) {
    const auto& [path, axis] = key;
    const auto node = tree.nodes().find(path);
    // What the plan says by itself need not be of use.
    const SplitDirective* said =
        node == tree.nodes().end() ? nullptr : node->second.FindSplit(axis);
    if (said == nullptr) continue;
    for (size_t i = 0; i < levels.size(); ++i) {
      const std::vector<std::string>& dims = said->levels[i].dims;
      const bool cuts = std::any_of(dims.begin(), dims.end(),
                                    [](const std::string& dim) { return dim[0] != '!'; });
      if (!cuts || !levels[i].asked || levels[i].taken) continue;
      std::vector<std::string> have;
      for (const int dim : levels[i].dims) {
        if (dim >= 0 && graph.dims[dim].size > 1) have.push_back(graph.dims[dim].name);
      }
      return absl::InvalidArgumentError(absl::StrCat(
          path.empty() ? "the root" : absl::StrCat("`", path, "`"), " splits `",
          said->levels[i].DebugString(), "` over `", axis, "`, which no op below can take: ",
          have.empty() ? "none can be cut"
                       : absl::StrCat("they can be cut along ", JoinQuoted(have)),
          ". Name what they have, or an empty list if `", axis, "` cuts nothing there."));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckRootDims(const ModelGraph& graph, const StrategyTree& tree) {
  const auto root = tree.nodes().find("");
  if (root == tree.nodes().end()) return absl::OkStatus();
  // What the root of some plan says: a model may lack it.
  ShortForm all;
  all.tp = 2, all.sp = true, all.ep = 2, all.etp = 4;
  std::set<std::string> known = {std::string(kCompoundHeads)};
  for (const SplitDirective& split : StrategyTree::FromShortForm(all).Root().split) {
    known.insert(split.levels[0].dims.begin(), split.levels[0].dims.end());
  }
  for (const ModelDim& dim : graph.dims) known.insert(dim.name);
  for (const SplitDirective& split : root->second.split) {
    for (const SplitLevel& level : split.levels) {
      for (absl::string_view dim : level.dims) {
        absl::ConsumePrefix(&dim, "!");
        TakeCondition(&dim);
        TakePattern(&dim);
        if (absl::StartsWith(dim, ".") || known.count(std::string(dim)) > 0) continue;
        return NoDim(graph, "the root", dim);
      }
    }
  }
  return absl::OkStatus();
}

void CutInBlocksWhereNeeded(const ModelGraph& graph, const Body& body,
                            std::vector<ResolvedSplit>* splits) {
  const auto takes_blocks = [&](absl::string_view dim) {
    bool blocks = false, masked = false;  // what a mask makes unlike work of is worth an exchange
    for (const OpNode& op : body.ops) {
      const int factor = FactorOfDim(graph, op, dim);
      if (factor < 0 || !op.rule->may_cut(factor)) continue;
      const bool mirrored = MayBeMirrored(*op.rule, factor);
      blocks = blocks || !mirrored;
      for (const Statement& s : op.rule->statements()) {
        for (const Condition& c : s.where)
          masked |= mirrored && !c.is_promise() && c.Mentions(factor);
      }
    }
    return blocks && !masked;
  };
  for (ResolvedSplit& split : *splits) {
    for (SplitLevel& level : split.directive.levels) {
      for (std::string& said : level.dims) {
        absl::string_view dim = said;
        if (TakePattern(&dim) == ShardPattern::kBlock || !takes_blocks(dim)) continue;
        said = std::string(dim);
      }
    }
  }
}

absl::StatusOr<FactorSplit> SplitOp(const ModelGraph& graph, const OpNode& op,
                                    const std::string& path, const Resolved& resolved,
                                    const DeviceMesh& mesh, bool whole, SplitUse* use,
                                    const OnRanksOf& on) {
  FactorSplit split = FactorSplit::None(*op.rule);
  // What nodes say goes before what the root does, and the expert mesh before the
  // axes that it is cut out of: they get what it leaves.
  std::vector<const ResolvedSplit*> ordered;
  for (const ResolvedSplit& r : resolved.splits) {
    if (!(whole && r.source.empty() && r.directive.axis == "tp")) ordered.push_back(&r);
  }
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const ResolvedSplit* a, const ResolvedSplit* b) {
                     const auto rank = [](const ResolvedSplit& r) {
                       return (r.source.empty() ? 2 : 0) + (IsExpertView(r.directive.axis) ? 0 : 1);
                     };
                     return rank(*a) < rank(*b);
                   });
  std::vector<const ResolvedSplit*> taken(mesh.num_axes());
  for (const ResolvedSplit* next : ordered) {
    const ResolvedSplit& r = *next;
    const std::vector<int> axes = mesh.AxesOf(r.directive.axis);
    if (axes.empty() && MayBeMissing(r.directive.axis)) continue;
    if (axes.empty()) return NoAxis(r.directive.axis, mesh);
    const bool view = IsExpertView(r.directive.axis);
    const auto gone = [&](int a) {
      const auto names = [a](const auto& ranks) { return ranks.first == a; };
      if (std::any_of(on.begin(), on.end(), names)) return true;
      return taken[a] != nullptr && (view || IsExpertView(taken[a]->directive.axis));
    };
    ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, r.directive.Sizes(mesh.SizeOf(axes)));
    int64_t inside = mesh.SizeOf(axes);
    for (size_t i = 0; i < sizes.size(); ++i) {
      inside /= sizes[i];
      SplitLevel level = r.directive.levels[i];
      Cut cut{r.directive, level,
              sizes.size() == 1 ? axes : AxesBetween(mesh, axes, inside, sizes[i])};
      cut.axes.erase(std::remove_if(cut.axes.begin(), cut.axes.end(), gone), cut.axes.end());
      if (mesh.SizeOf(cut.axes) == 1) continue;
      // The root speaks of the dims of transformers; a model built by hand may
      // lack some.
      if (r.source.empty()) {
        auto unknown = [&](const std::string& dim) { return !KnowsDim(graph, op, dim); };
        level.dims.erase(std::remove_if(level.dims.begin(), level.dims.end(), unknown),
                         level.dims.end());
      }
      ASSIGN_OR_RETURN(const bool takes, ApplyCut(graph, op, path, cut, mesh, &split));
      for (int a : cut.axes) taken[a] = takes ? &r : taken[a];
      if (use != nullptr) use->Note(r, i, op, takes);
    }
  }
  for (std::vector<int>& axes : split.axes) std::sort(axes.begin(), axes.end());
  AlignTiedCuts(*op.rule, &split);
  return split;
}

}  // namespace plancast
