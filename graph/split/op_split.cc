#include "graph/split/op_split.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "graph/rule/linearity.h"
#include "graph/split/halo_inference.h"
#include "graph/split/online_softmax.h"

namespace plancast {
namespace {

using AxisSet = uint64_t;  // bit a: mesh axis a

std::vector<int> AxesIn(AxisSet set) {
  std::vector<int> axes;
  for (int a = 0; set != 0; ++a, set >>= 1) {
    if (set & 1) axes.push_back(a);
  }
  return axes;
}

// Part counts that a factor of `extent` can be cut into: its divisors.
std::string SizesThatWork(int64_t extent) {
  std::vector<int64_t> sizes;
  for (int64_t n = 1; n <= std::min<int64_t>(extent, 1024); ++n) {
    if (extent % n == 0) sizes.push_back(n);
  }
  return absl::StrJoin(sizes, ", ");
}

// Some statement has both factors, and they are not tied. Rules that are derived
// for one gradient may lack the statements of the others.
bool Meet(const OpRule& rule, int a, int b) {
  if (rule.ties()[a] == rule.ties()[b]) return false;
  auto has = [](const Statement& s, int f) {
    return std::find(s.factors.begin(), s.factors.end(), f) != s.factors.end();
  };
  return std::any_of(rule.statements().begin(), rule.statements().end(),
                     [&](const Statement& s) { return has(s, a) && has(s, b); });
}

// Why the factor cannot be cut at all, or OK.
absl::Status CheckCuttable(const OpRule& rule, int factor) {
  if (rule.may_cut(factor)) return absl::OkStatus();
  std::vector<std::string> others;
  for (size_t f = 0; f < rule.factors().size(); ++f) {
    if (rule.may_cut(static_cast<int>(f))) others.push_back(rule.factors()[f]);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "op `", rule.name(), "` cannot shard factor `", rule.factors()[factor],
      "`: an opaque statement needs all of it. ",
      others.empty() ? "Leave the op whole."
                     : absl::StrCat("Cut `", absl::StrJoin(others, "`, `"), "` instead.")));
}

bool RunsAlong(const OpRule& rule, int factor) {
  return std::any_of(rule.statements().begin(), rule.statements().end(), [&](const Statement& s) {
    return s.combine == Combine::kScan && s.scan.factor == factor;
  });
}

// Whether index maps reach along the factor or those tied to it, not promises alone, which hold for
// parts of any pattern.
bool IsMapped(const OpRule& rule, int factor) {
  return std::any_of(rule.statements().begin(), rule.statements().end(), [&](const Statement& s) {
    return std::any_of(s.where.begin(), s.where.end(), [&](const Condition& c) {
      return c.is_map() && rule.ties()[c.left] == rule.ties()[factor];
    });
  });
}

absl::Status CheckSplit(const OpRule& rule, const FactorSplit& split, const DeviceMesh& mesh,
                        const std::vector<int64_t>& extents) {
  PLANCAST_CHECK_EQ(split.axes.size(), rule.factors().size());
  PLANCAST_CHECK_EQ(extents.size(), rule.factors().size());
  PLANCAST_CHECK_LE(mesh.num_axes(), 64);
  std::vector<int> user(mesh.num_axes(), -1);
  for (size_t f = 0; f < split.axes.size(); ++f) {
    if (!split.axes[f].empty()) {
      RETURN_IF_ERROR(CheckCuttable(rule, static_cast<int>(f)));
    }
    int64_t parts = 1;
    int previous = -1;
    for (int axis : split.axes[f]) {
      PLANCAST_CHECK(axis >= 0 && axis < mesh.num_axes());
      if (user[axis] >= 0 && Meet(rule, user[axis], static_cast<int>(f))) {
        return absl::InvalidArgumentError(
            absl::StrCat("op `", rule.name(), "`: axis `", mesh.axis(axis).name,
                         "` cuts both factor `", rule.factors()[user[axis]], "` and factor `",
                         rule.factors()[f], "`; an axis cuts one factor of an op."));
      }
      if (axis < previous) {
        return absl::InvalidArgumentError(
            absl::StrCat("op `", rule.name(), "`: factor `", rule.factors()[f], "` names axis `",
                         mesh.axis(axis).name, "` after `", mesh.axis(previous).name,
                         "`; outer axes come first."));
      }
      user[axis] = static_cast<int>(f);
      previous = axis;
      parts *= mesh.size(axis);
    }
    if (!split.axes[f].empty() && split.pattern(static_cast<int>(f)) == ShardPattern::kMirrored) {
      if (RunsAlong(rule, static_cast<int>(f))) {
        return absl::InvalidArgumentError(
            absl::StrCat("op `", rule.name(), "`: a recurrence runs along factor `",
                         rule.factors()[f], "`, so it is cut into blocks, not mirrored."));
      }
      for (size_t g = 0; g < split.axes.size() && IsMapped(rule, static_cast<int>(f)); ++g) {
        if (g == f || rule.ties()[g] != rule.ties()[f]) continue;
        return absl::InvalidArgumentError(
            absl::StrCat("op `", rule.name(), "`: factor `", rule.factors()[f], "` is tied to `",
                         rule.factors()[g], "`, so it is cut into blocks, not mirrored."));
      }
    }
    if (extents[f] < parts) {
      std::vector<std::string> names;
      for (int axis : split.axes[f]) names.push_back(absl::StrCat("`", mesh.axis(axis).name, "`"));
      return absl::InvalidArgumentError(absl::StrCat(
          "op `", rule.name(), "` cannot shard factor `", rule.factors()[f], "` (", extents[f],
          ") over ", absl::StrJoin(names, " and "), " of size ", parts,
          ": there are more parts than elements. Sizes that work: ", SizesThatWork(extents[f]),
          "."));
    }
  }
  return absl::OkStatus();
}

// Decides for every tensor over which axes it is left partial and over which
// it is reduced inside the op.
class PartialFlow {
 public:
  // `plan`: null for rules without ties.
  PartialFlow(const OpRule& rule, const FactorSplit& split, const HaloPlan* plan)
      : rule_(rule), plan_(plan) {
    const size_t n = rule.tensors().size();
    reduced_.assign(n, 0);
    partial_.assign(n, 0);
    is_max_.assign(n, false);
    cut_.resize(rule.factors().size());
    for (size_t f = 0; f < cut_.size(); ++f) {
      for (int axis : split.axes[f]) {
        cut_[f] |= AxisSet{1} << axis;
        all_cuts_ |= AxisSet{1} << axis;
      }
    }
  }

  // `tensor` is reduced over `axes` inside the op.
  void Require(int tensor, AxisSet axes) { reduced_[tensor] |= axes; }

  // A kept statistic must be whole; whatever else must be is found by walking
  // the statements until no reader objects.
  void Solve() {
    for (int t : rule_.saves()) {
      if (rule_.tensors()[t].role == RuleTensor::Role::kIntermediate) Require(t, all_cuts_);
    }
    while (!Walk()) {
    }
  }

  AxisSet CutOf(const std::vector<int>& factors) const {
    AxisSet set = 0;
    for (int f : factors) set |= cut_[f];
    return set;
  }
  AxisSet cut(int factor) const { return cut_[factor]; }
  // What is left partial after the op's own reductions.
  AxisSet Remaining(int tensor) const { return partial_[tensor] & ~reduced_[tensor]; }
  AxisSet Owed(int tensor) const { return partial_[tensor] & reduced_[tensor]; }
  bool IsMax(int tensor) const { return is_max_[tensor]; }

 private:
  // One pass in statement order; false if a reduction was added on the way.
  bool Walk() {
    std::fill(partial_.begin(), partial_.end(), 0);
    bool settled = true;
    for (const Statement& s : rule_.statements()) {
      const AxisSet box = CutOf(s.factors);
      AxisSet incoming = 0;
      for (int t : TensorsOf(s.value)) incoming |= Remaining(t);
      AxisSet passed = 0;
      for (int axis : AxesIn(incoming)) {
        const AxisSet bit = AxisSet{1} << axis;
        if (CanPass(s, bit, box)) {
          passed |= bit;
          continue;
        }
        for (int t : TensorsOf(s.value)) {
          if (Remaining(t) & bit) reduced_[t] |= bit;
        }
        settled = false;
      }
      is_max_[s.target] = s.combine == Combine::kMax;
      const size_t index = &s - rule_.statements().data();
      partial_[s.target] = CutOf(plan_ == nullptr ? s.reduced : plan_->reduced[index]) | passed;
    }
    return settled;
  }

  // The statement is linear in what is partial over the axis, and works on
  // the same points along it.
  bool CanPass(const Statement& s, AxisSet bit, AxisSet box) const {
    if (s.combine == Combine::kMax || s.combine == Combine::kOpaque || (box & bit) != 0) {
      return false;
    }
    std::vector<bool> marked(rule_.tensors().size());
    for (int t : TensorsOf(s.value)) {
      marked[t] = (Remaining(t) & bit) != 0;
      if (marked[t] && is_max_[t]) return false;
    }
    return DependenceOn(s.value, marked) == Dependence::kLinear;
  }

  const OpRule& rule_;
  const HaloPlan* plan_;
  std::vector<AxisSet> cut_;  // by factor
  AxisSet all_cuts_ = 0;
  std::vector<AxisSet> partial_;  // by tensor, before its reduction
  std::vector<AxisSet> reduced_;  // by tensor, axes over which it must be reduced
  std::vector<bool> is_max_;
};

// A fused kernel packs statistics that do not wait for each other into one
// exchange: the earlier reduction can stand after the later one's statement.
void PackReductions(const OpRule& rule, std::vector<InnerReduction>* reductions) {
  for (size_t i = 0; i < reductions->size(); ++i) {
    for (size_t j = i + 1; j < reductions->size();) {
      InnerReduction& first = (*reductions)[i];
      const InnerReduction& second = (*reductions)[j];
      bool apart = first.axes == second.axes && first.reduction == second.reduction &&
                   first.combiner == second.combiner &&
                   first.combiner != InnerReduction::Combiner::kOnlineSoftmax;
      for (int s = first.after + 1; s <= second.after && apart; ++s) {
        for (int t : TensorsOf(rule.statements()[s].value)) {
          apart = apart &&
                  std::find(first.tensors.begin(), first.tensors.end(), t) == first.tensors.end();
        }
      }
      if (!apart) {
        ++j;
        continue;
      }
      first.after = second.after;
      first.tensors.insert(first.tensors.end(), second.tensors.begin(), second.tensors.end());
      reductions->erase(reductions->begin() + static_cast<std::ptrdiff_t>(j));
    }
  }
}

}  // namespace

absl::StatusOr<OpPartition> PartitionOp(const OpRule& rule, const FactorSplit& given,
                                        const DeviceMesh& mesh,
                                        const std::vector<int64_t>& extents) {
  std::optional<FactorSplit> aligned;
  if (rule.has_ties()) {
    aligned = given;
    AlignTiedCuts(rule, &*aligned);
  }
  const FactorSplit& split = aligned.has_value() ? *aligned : given;
  RETURN_IF_ERROR(CheckSplit(rule, split, mesh, extents));
  std::optional<HaloPlan> plan;
  if (rule.has_ties()) plan = InferHalos(rule, split, mesh, extents);
  PartialFlow flow(rule, split, plan.has_value() ? &*plan : nullptr);
  OpPartition partition;
  // Statistics that one combined reduction covers are whole after it.
  std::vector<AxisSet> combined(rule.tensors().size(), 0);
  for (size_t f = 0; f < split.axes.size(); ++f) {
    if (split.axes[f].empty() || rule.fused().empty()) continue;
    if (std::count(rule.ties().begin(), rule.ties().end(), rule.ties()[f]) > 1) continue;
    const std::optional<OnlineSoftmax> group = FindOnlineSoftmax(rule, static_cast<int>(f));
    if (!group.has_value()) continue;
    InnerReduction reduction;
    reduction.after = group->last_statement;
    reduction.tensors = group->tensors;
    reduction.combiner = InnerReduction::Combiner::kOnlineSoftmax;
    reduction.axes = split.axes[f];
    for (int t : group->tensors) {
      combined[t] |= flow.cut(static_cast<int>(f));
      flow.Require(t, flow.cut(static_cast<int>(f)));
    }
    partition.reductions.push_back(std::move(reduction));
  }
  flow.Solve();
  for (size_t i = 0; i < rule.statements().size(); ++i) {
    const Statement& s = rule.statements()[i];
    const int target = s.target;
    InnerReduction reduction;
    reduction.after = static_cast<int>(i);
    reduction.tensors = {target};
    if (s.combine == Combine::kScan && !split.axes[s.scan.factor].empty()) {
      reduction.combiner = InnerReduction::Combiner::kScan;
      reduction.axes = split.axes[s.scan.factor];
      partition.reductions.push_back(reduction);
      reduction.combiner = InnerReduction::Combiner::kElementwise;
    }
    reduction.reduction = flow.IsMax(target) ? Reduction::kMax : Reduction::kSum;
    reduction.axes = AxesIn(flow.Owed(target) & ~combined[target]);
    if (!reduction.axes.empty()) partition.reductions.push_back(std::move(reduction));
  }
  auto by_statement = [](const InnerReduction& a, const InnerReduction& b) {
    return a.after < b.after;
  };
  std::stable_sort(partition.reductions.begin(), partition.reductions.end(), by_statement);
  if (!rule.fused().empty()) {
    PackReductions(rule, &partition.reductions);
    std::stable_sort(partition.reductions.begin(), partition.reductions.end(), by_statement);
  }

  for (size_t t = 0; t < rule.tensors().size(); ++t) {
    Layout layout = Layout::Replicated(mesh.num_axes());
    const std::vector<int>& dims = rule.tensors()[t].factors;
    for (size_t d = 0; d < dims.size(); ++d) {
      const int dim = static_cast<int>(d);
      Halo halo;
      if (plan.has_value()) {
        const std::vector<int>& owned = plan->owned_dims[t];
        if (std::find(owned.begin(), owned.end(), dim) == owned.end()) continue;
        halo = plan->halos[t][d];
      }
      for (int axis : split.axes[dims[d]]) {
        layout.placements[axis] = Placement::Shard(dim, split.pattern(dims[d]), halo);
      }
    }
    const int tensor = static_cast<int>(t);
    for (int axis : AxesIn(flow.Remaining(tensor))) {
      layout.placements[axis] =
          Placement::Partial(flow.IsMax(tensor) ? Reduction::kMax : Reduction::kSum);
    }
    partition.tensors.push_back(std::move(layout));
  }
  if (plan.has_value()) partition.statements = std::move(plan->statements);
  return partition;
}

absl::string_view CombinerName(const InnerReduction& r) {
  if (r.combiner == InnerReduction::Combiner::kOnlineSoftmax) return "online_softmax";
  if (r.combiner == InnerReduction::Combiner::kScan) return "scan";
  return r.reduction == Reduction::kMax ? "max" : "sum";
}

std::vector<IndexSet> StatementIndices(const OpPartition& partition, const FactorSplit& split,
                                       const DeviceMesh& mesh, const std::vector<int64_t>& extents,
                                       int statement, int64_t device) {
  if (partition.statements.empty()) return DeviceIndices(split, mesh, extents, device);
  const StatementCut& cut = partition.statements[statement];
  std::vector<IndexSet> sets = DeviceIndices({cut.axes, split.patterns}, mesh, extents, device);
  for (size_t f = 0; f < sets.size(); ++f) sets[f] = Widened(sets[f], cut.halos[f], extents[f]);
  return sets;
}

std::vector<IndexSet> DeviceIndices(const FactorSplit& split, const DeviceMesh& mesh,
                                    const std::vector<int64_t>& extents, int64_t device) {
  std::vector<IndexSet> sets;
  for (size_t f = 0; f < extents.size(); ++f) {
    int64_t parts = 1, part = 0;
    for (int axis : split.axes[f]) {
      parts *= mesh.size(axis);
      part = part * mesh.size(axis) + mesh.Coordinate(device, axis);
    }
    sets.push_back(ShardIndices(extents[f], parts, part, split.pattern(static_cast<int>(f))));
  }
  return sets;
}

std::string OpPartition::DebugString(const OpRule& rule, const DeviceMesh& mesh) const {
  std::string text;
  for (size_t t = 0; t < tensors.size(); ++t) {
    const RuleTensor& tensor = rule.tensors()[t];
    if (tensor.role == RuleTensor::Role::kIntermediate) continue;
    absl::StrAppend(&text, tensor.role == RuleTensor::Role::kInput ? "in " : "out ", tensor.name,
                    " ", tensors[t].DebugString(mesh), "\n");
  }
  for (const InnerReduction& r : reductions) {
    absl::StrAppend(
        &text, "owes ", CombinerName(r), "(",
        absl::StrJoin(r.axes, ",",
                      [&](std::string* out, int a) { out->append(mesh.axis(a).name); }),
        ") of ",
        absl::StrJoin(r.tensors, ", ",
                      [&](std::string* out, int t) { out->append(rule.tensors()[t].name); }),
        " after statement ", r.after, "\n");
  }
  return text;
}

}  // namespace plancast
