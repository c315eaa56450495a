#include "graph/split/halo_inference.h"

#include <algorithm>
#include <utility>

#include "base/int128.h"
#include "graph/split/index_ranges.h"

namespace plancast {
namespace {

bool Contains(const std::vector<int>& list, int value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

constexpr int64_t kMaxHalo = int64_t{1} << 30;

// One class of tied factors, cut into `parts`.
class ClassInference {
 public:
  ClassInference(const OpRule& rule, int tie, int64_t parts, const std::vector<int64_t>& extents)
      : rule_(rule), tie_(tie), parts_(parts), extents_(extents) {
    dim_of_.assign(rule.tensors().size(), -1);
    halo_.assign(rule.tensors().size(), {});
    for (size_t t = 0; t < rule.tensors().size(); ++t) {
      const std::vector<int>& dims = rule.tensors()[t].factors;
      for (size_t d = dims.size(); d-- > 0;) {
        if (rule.ties()[dims[d]] == tie) dim_of_[t] = static_cast<int>(d);
      }
    }
    for (const Statement& s : rule.statements()) owner_.push_back(OwnerOf(s));
    for (size_t i = rule.statements().size(); i-- > 0;) Visit(static_cast<int>(i));
  }

  int owner(int statement) const { return owner_[statement]; }
  int dim(int tensor) const { return dim_of_[tensor]; }
  Halo halo(int tensor) const { return halo_[tensor]; }
  // The factors that have the owner's part: itself, and what promises tie to it
  // where no later statement reads beyond the part.
  std::vector<int> Alike(int statement) const {
    const Statement& s = rule_.statements()[statement];
    std::vector<int> alike = {owner_[statement]};
    if (!ReducesClass(statement) && !halo_[s.target].empty()) return alike;
    const std::vector<int>& dims = rule_.tensors()[s.target].factors;
    for (size_t next = 0; next < alike.size(); ++next) {
      for (const Condition& c : s.where) {
        if (!c.is_promise() || !c.Mentions(alike[next])) continue;
        const int other = c.left == alike[next] ? c.tied() : c.left;
        if (!Contains(alike, other) && !Contains(dims, other)) alike.push_back(other);
      }
    }
    return alike;
  }
  bool ReducesClass(int statement) const {
    return owner_[statement] >= 0 && dim_of_[rule_.statements()[statement].target] < 0;
  }

 private:
  int FactorOf(int tensor) const { return rule_.tensors()[tensor].factors[dim_of_[tensor]]; }

  int OwnerOf(const Statement& s) const {
    if (dim_of_[s.target] >= 0) return FactorOf(s.target);
    int owner = -1;
    for (int f : s.factors) {
      if (rule_.ties()[f] != tie_) continue;
      if (MapOf(f, s.where) == nullptr) return f;
      if (owner < 0) owner = f;
    }
    return owner;
  }

  // Widens what the statement reads by what it makes.
  void Visit(int statement) {
    const Statement& s = rule_.statements()[statement];
    const int owner = owner_[statement];
    if (owner < 0) return;
    const Halo wide = ReducesClass(statement) ? Halo() : halo_[s.target];
    const std::vector<int> tensors = TensorsOf(s.value);
    const std::vector<int> alike = Alike(statement);
    for (int64_t part = 0; part < parts_; ++part) {
      std::vector<IndexRange> given;
      for (int64_t extent : extents_) given.push_back({0, extent});
      for (int f : alike) given[f] = Block(f, part);
      given[owner] = Widened({given[owner]}, wide, extents_[owner])[0];
      if (given[owner].size() == 0) continue;
      const std::vector<IndexRange> ranges = NarrowRanges(s, std::move(given), extents_);
      if (ranges.empty()) continue;
      for (int t : tensors) {
        if (dim_of_[t] >= 0) Cover(t, part, ranges[FactorOf(t)]);
      }
    }
  }

  IndexRange Block(int factor, int64_t part) const {
    return ShardIndices(extents_[factor], parts_, part, ShardPattern::kBlock)[0];
  }

  void Cover(int tensor, int64_t part, IndexRange need) {
    const IndexRange own = Block(FactorOf(tensor), part);
    Halo& halo = halo_[tensor];
    halo.before =
        static_cast<int32_t>(std::clamp<int64_t>(own.begin - need.begin, halo.before, kMaxHalo));
    halo.after =
        static_cast<int32_t>(std::clamp<int64_t>(need.end - own.end, halo.after, kMaxHalo));
  }

  const OpRule& rule_;
  const int tie_;
  const int64_t parts_;
  const std::vector<int64_t>& extents_;
  std::vector<int> dim_of_;  // by tensor: the dim that the class cuts, or -1
  std::vector<Halo> halo_;   // by tensor
  std::vector<int> owner_;   // by statement, or -1
};

}  // namespace

void AlignTiedCuts(const OpRule& rule, FactorSplit* split) {
  if (!rule.has_ties()) return;
  std::vector<std::vector<int>> axes(rule.factors().size());
  for (size_t f = 0; f < axes.size(); ++f) {
    for (int axis : split->axes[f]) {
      std::vector<int>& all = axes[rule.ties()[f]];
      if (!Contains(all, axis)) all.push_back(axis);
    }
  }
  for (size_t f = 0; f < axes.size(); ++f) {
    // A factor that is alone keeps its axes as they were written.
    std::vector<int>& all = axes[rule.ties()[f]];
    if (all.size() <= split->axes[f].size()) continue;
    std::sort(all.begin(), all.end());
    split->axes[f] = all;
  }
  for (size_t f = 0; f < split->patterns.size(); ++f) {
    if (split->patterns[f] != ShardPattern::kMirrored) continue;
    for (size_t g = 0; g < axes.size(); ++g) {
      if (rule.ties()[g] == rule.ties()[f]) split->patterns[g] = ShardPattern::kMirrored;
    }
  }
}

HaloPlan InferHalos(const OpRule& rule, const FactorSplit& split, const DeviceMesh& mesh,
                    const std::vector<int64_t>& extents) {
  const size_t factors = rule.factors().size(), statements = rule.statements().size();
  HaloPlan plan;
  plan.statements.resize(statements);
  plan.reduced.resize(statements);
  plan.owned_dims.resize(rule.tensors().size());
  for (StatementCut& cut : plan.statements) {
    cut.axes.resize(factors);
    cut.halos.resize(factors);
  }
  for (const RuleTensor& tensor : rule.tensors()) plan.halos.emplace_back(tensor.factors.size());

  for (size_t f = 0; f < factors; ++f) {
    if (rule.ties()[f] != static_cast<int>(f) || split.axes[f].empty()) continue;
    const int64_t parts = mesh.SizeOf(split.axes[f]);
    const ClassInference inference(rule, static_cast<int>(f), parts, extents);
    for (size_t s = 0; s < statements; ++s) {
      const int statement = static_cast<int>(s), owner = inference.owner(statement);
      if (owner < 0) continue;
      for (int factor : inference.Alike(statement)) {
        plan.statements[s].axes[factor] = split.axes[f];
      }
      if (inference.ReducesClass(statement)) {
        plan.reduced[s].push_back(owner);
      } else {
        plan.statements[s].halos[owner] = inference.halo(rule.statements()[s].target);
      }
    }
    for (size_t t = 0; t < rule.tensors().size(); ++t) {
      const int dim = inference.dim(static_cast<int>(t));
      if (dim < 0) continue;
      const Halo halo = inference.halo(static_cast<int>(t));
      const int64_t extent = extents[rule.tensors()[t].factors[dim]];
      const bool input = rule.tensors()[t].role == RuleTensor::Role::kInput;
      if (input && !halo.empty() && CeilDiv(extent, parts) + halo.before + halo.after >= extent) {
        continue;
      }
      plan.owned_dims[t].push_back(dim);
      // Outputs leave as blocks.
      if (rule.tensors()[t].role != RuleTensor::Role::kOutput) plan.halos[t][dim] = halo;
    }
  }
  return plan;
}

}  // namespace plancast
