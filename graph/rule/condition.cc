#include <algorithm>

#include "base/int128.h"
#include "graph/rule/expr.h"

namespace plancast {

int64_t AffineTerm::Coefficient(absl::Span<const int64_t> extents) const {
  int64_t value = number;
  for (int f : sizes) value = SaturateToInt64(int128{value} * extents[f]);
  return value;
}

Condition Condition::Pair(int left, Relation relation, int right, int64_t offset) {
  Condition condition;
  condition.left = left;
  condition.relation = relation;
  condition.terms.push_back({1, {}, right});
  condition.offset = offset;
  return condition;
}

bool Condition::is_pair() const {
  return terms.size() == 1 && terms[0].number == 1 && terms[0].sizes.empty() &&
         terms[0].factor >= 0;
}

int Condition::tied() const {
  if (!is_map() && !is_promise()) return -1;
  for (const AffineTerm& term : terms) {
    if (term.factor >= 0) return term.factor;
  }
  return -1;
}

bool Condition::is_radix() const {
  if (!is_map() || offset != 0 || terms.empty()) return false;
  std::vector<int> inner;  // factors after this term, sorted
  for (size_t t = terms.size(); t-- > 0;) {
    std::vector<int> sizes = terms[t].sizes;
    std::sort(sizes.begin(), sizes.end());
    if (terms[t].factor < 0 || terms[t].number != 1 || sizes != inner) return false;
    inner.insert(std::upper_bound(inner.begin(), inner.end(), terms[t].factor), terms[t].factor);
  }
  return true;
}

bool Condition::Mentions(int factor) const {
  return left == factor || std::any_of(terms.begin(), terms.end(), [&](const AffineTerm& term) {
           return term.factor == factor;
         });
}

std::vector<int> Condition::Factors() const {
  std::vector<int> factors = {left};
  for (const AffineTerm& term : terms) {
    if (term.factor >= 0) factors.push_back(term.factor);
  }
  return factors;
}

int64_t Condition::RightSide(absl::Span<const int64_t> point,
                             absl::Span<const int64_t> extents) const {
  int128 value = offset;
  for (const AffineTerm& term : terms) {
    value += int128{term.Coefficient(extents)} * (term.factor < 0 ? 1 : point[term.factor]);
  }
  return SaturateToInt64(value);
}

bool Condition::Holds(absl::Span<const int64_t> point, absl::Span<const int64_t> extents) const {
  if (is_promise()) return true;
  const int64_t right = RightSide(point, extents);
  if (relation == Relation::kLessEqual) return point[left] <= right;
  return relation == Relation::kLess ? point[left] < right : point[left] == right;
}

bool IsFixed(int factor, const std::vector<int>& target, const std::vector<Condition>& where) {
  return std::any_of(where.begin(), where.end(), [&](const Condition& c) {
    if (!c.is_map() || !c.Mentions(factor)) return false;
    if (c.left == factor) return true;
    const bool given = std::find(target.begin(), target.end(), c.left) != target.end();
    return given && (c.is_radix() || c.Factors().size() == 2);
  });
}

const Condition* MapOf(int factor, const std::vector<Condition>& where) {
  for (const Condition& c : where) {
    if (c.is_map() && c.left == factor) return &c;
  }
  return nullptr;
}

}  // namespace plancast
