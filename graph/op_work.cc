#include <algorithm>
#include <vector>

#include "graph/linearity.h"
#include "graph/op_split.h"

namespace plancast {
namespace {

bool Contains(const std::vector<int>& list, int value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

std::vector<IndexSet> FullSets(const std::vector<int64_t>& extents) {
  std::vector<IndexSet> sets;
  sets.reserve(extents.size());
  for (int64_t extent : extents) sets.push_back({{0, extent}});
  return sets;
}

double ElementsOf(const RuleTensor& tensor, const std::vector<IndexSet>& sets) {
  double elements = 1;
  for (int factor : tensor.factors) elements *= static_cast<double>(CountOf(sets[factor]));
  return elements;
}

// True and filled if the statement is a matrix multiplication.
bool AsContraction(const OpRule& rule, const Statement& s, const std::vector<IndexSet>& sets,
                   Contraction* contraction) {
  if (s.combine != Combine::kSum) return false;
  const std::vector<int> operands = ProductOfTwo(s.value);
  if (operands.empty()) return false;
  const std::vector<int>& a = rule.tensors()[operands[0]].factors;
  const std::vector<int>& b = rule.tensors()[operands[1]].factors;
  bool has_m = false, has_n = false, has_k = false;
  for (int factor : s.factors) {
    const int64_t size = CountOf(sets[factor]);
    if (Contains(s.reduced, factor)) {
      contraction->k *= size;
      has_k = has_k || (Contains(a, factor) && Contains(b, factor));
    } else if (Contains(a, factor) && Contains(b, factor)) {
      contraction->batch *= size;
    } else if (Contains(a, factor)) {
      contraction->m *= size;
      has_m = true;
    } else if (Contains(b, factor)) {
      contraction->n *= size;
      has_n = true;
    }
  }
  return has_m && has_n && has_k;
}

// Gathers the border of a range of statements.
class Border {
 public:
  Border(const OpRule& rule, const std::vector<IndexSet>& sets) : rule_(rule), sets_(sets) {}

  // `table` if the statement looks rows of its tensors up.
  void Read(int tensor, double most) {
    const double elements = std::min(most, ElementsOf(rule_.tensors()[tensor], sets_));
    auto it = std::find(reads_.begin(), reads_.end(), tensor);
    if (it == reads_.end()) {
      reads_.push_back(tensor);
      elements_.push_back(elements);
    } else {
      double& known = elements_[it - reads_.begin()];
      known = std::max(known, elements);
    }
  }

  void MoveTo(OpWork* work) {
    work->reads = std::move(reads_);
    work->read_elements = std::move(elements_);
  }

 private:
  const OpRule& rule_;
  const std::vector<IndexSet>& sets_;
  std::vector<int> reads_;
  std::vector<double> elements_;
};

}  // namespace

bool IsRenaming(const OpRule& rule, const Statement& s) {
  if (s.combine != Combine::kAssign || s.value.kind() != ExprKind::kElement || !s.where.empty()) {
    return false;
  }
  const RuleTensor& source = rule.tensors()[s.value.tensor()];
  const RuleTensor& target = rule.tensors()[s.target];
  return source.role == RuleTensor::Role::kInput && source.factors == target.factors &&
         source.dtype == target.dtype;
}

OpWork WorkOf(const OpRule& rule, const std::vector<IndexSet>& sets, int begin, int end) {
  OpWork work;
  Border border(rule, sets);
  std::vector<bool> written_here(rule.tensors().size());
  for (int i = begin; i < end; ++i) {
    const Statement& s = rule.statements()[i];
    if (IsRenaming(rule, s)) continue;
    written_here[s.target] = true;
    Contraction contraction;
    contraction.statement = i;
    const bool matmul = AsContraction(rule, s, sets, &contraction);
    // A factor that an indicator fixes is followed, not walked over.
    std::vector<int> walked, looked_up;
    for (int factor : s.factors) {
      (IsLookup(s.value, factor) ? looked_up : walked).push_back(factor);
    }
    if (walked.empty()) std::swap(walked, looked_up);
    std::vector<Condition> where;
    for (const Condition& c : s.where) {
      if (Contains(walked, c.left) && Contains(walked, c.right)) where.push_back(c);
    }
    const double points = CountLatticePoints(walked, where, sets);
    if (matmul) {
      contraction.flops = 2 * points;
      work.contractions.push_back(contraction);
    } else {
      work.pointwise_ops += points;
    }
    for (int t : TensorsOf(s.value)) {
      if (written_here[t]) continue;
      const std::vector<int>& dims = rule.tensors()[t].factors;
      const bool rows =
          std::any_of(dims.begin(), dims.end(), [&](int f) { return Contains(looked_up, f); });
      border.Read(t, rows ? points : ElementsOf(rule.tensors()[t], sets));
    }
  }
  border.MoveTo(&work);
  for (size_t t = 0; t < rule.tensors().size(); ++t) {
    const int tensor = static_cast<int>(t);
    if (!written_here[t]) continue;
    bool needed =
        rule.tensors()[t].role == RuleTensor::Role::kOutput || Contains(rule.saves(), tensor);
    for (size_t i = end; i < rule.statements().size() && !needed; ++i) {
      needed = Contains(TensorsOf(rule.statements()[i].value), tensor);
    }
    if (!needed) continue;
    work.writes.push_back(tensor);
    work.write_elements.push_back(ElementsOf(rule.tensors()[t], sets));
  }
  return work;
}

OpWork WorkOf(const OpRule& rule, const std::vector<int64_t>& local_extents, int begin, int end) {
  return WorkOf(rule, FullSets(local_extents), begin, end);
}

double DomainPoints(const Statement& statement, const std::vector<int64_t>& extents) {
  return CountLatticePoints(statement.factors, statement.where, FullSets(extents));
}

bool HasContraction(const OpRule& rule) {
  const std::vector<int64_t> ones(rule.factors().size(), 1);
  return !WorkOf(rule, ones, 0, static_cast<int>(rule.statements().size())).contractions.empty();
}

}  // namespace plancast
