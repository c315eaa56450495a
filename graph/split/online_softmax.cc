#include "graph/split/online_softmax.h"

#include <algorithm>

#include "graph/rule/linearity.h"

namespace plancast {
namespace {

bool Contains(const std::vector<int>& list, int value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// `exp(x - m)` where x does not depend on m.
bool IsWeight(const Statement& s, int maximum) {
  const Expr& e = s.value;
  if (s.combine != Combine::kAssign || e.kind() != ExprKind::kFunction ||
      e.function() != Function::kExp || e.operand(0).kind() != ExprKind::kDifference) {
    return false;
  }
  const Expr& shift = e.operand(0).operand(1);
  return shift.kind() == ExprKind::kElement && shift.tensor() == maximum &&
         !Contains(TensorsOf(e.operand(0).operand(0)), maximum);
}

// Each of its elements is rescaled by one element of the maximum.
bool HasAllFactorsOf(const OpRule& rule, int sum, int maximum) {
  const std::vector<int>& kept = rule.tensors()[sum].factors;
  const std::vector<int>& owed = rule.tensors()[maximum].factors;
  return std::all_of(owed.begin(), owed.end(), [&](int f) { return Contains(kept, f); });
}

bool IsKept(const OpRule& rule, int tensor) {
  return rule.tensors()[tensor].role != RuleTensor::Role::kIntermediate ||
         Contains(rule.saves(), tensor);
}

}  // namespace

std::optional<OnlineSoftmax> FindOnlineSoftmax(const OpRule& rule, int factor) {
  OnlineSoftmax group;
  int maximum = -1;
  std::vector<bool> weights(rule.tensors().size());
  const int n = static_cast<int>(rule.statements().size());
  for (int i = 0; i < n; ++i) {
    const Statement& s = rule.statements()[i];
    if (!Contains(s.reduced, factor)) {
      if (maximum >= 0 && IsWeight(s, maximum)) {
        if (IsKept(rule, s.target)) return std::nullopt;
        weights[s.target] = true;
      }
      continue;
    }
    if (s.combine == Combine::kMax) {
      if (maximum >= 0) return std::nullopt;
      maximum = s.target;
    } else if (maximum < 0 || DependenceOn(s.value, weights) != Dependence::kLinear ||
               !HasAllFactorsOf(rule, s.target, maximum)) {
      return std::nullopt;
    }
    group.tensors.push_back(s.target);
    group.last_statement = i;
  }
  if (maximum < 0 || group.tensors.front() != maximum) return std::nullopt;
  // Before the exchange only the weights may read the local maximum, and only
  // the sums the weights; after it nothing reads the weights.
  for (int i = 0; i < n; ++i) {
    const Statement& s = rule.statements()[i];
    const bool is_sum = Contains(group.tensors, s.target) && s.target != maximum;
    for (int t : TensorsOf(s.value)) {
      if (weights[t] && !is_sum) return std::nullopt;
      if (Contains(group.tensors, t) && i <= group.last_statement &&
          !(t == maximum && weights[s.target])) {
        return std::nullopt;
      }
    }
  }
  return group;
}

}  // namespace plancast
