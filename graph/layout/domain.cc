#include "graph/layout/domain.h"

#include <algorithm>
#include <iterator>

#include "base/int128.h"

namespace plancast {
namespace {

bool Contains(const std::vector<int>& list, int value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// Pairs (l, r) in left x right with l <= r + offset: an arithmetic series
// between the left indices that see all of `right` and those that see none.
double CountBelow(IndexRange left, IndexRange right, int64_t offset) {
  // For index l the count is clamp(right.end - max(right.begin, l - offset)).
  const int64_t full_end = std::min(left.end, std::max(left.begin, right.begin + offset + 1));
  const int64_t some_end = std::min(left.end, std::max(full_end, right.end + offset));
  double count = static_cast<double>(full_end - left.begin) * right.size();
  if (some_end > full_end) {
    const double first = static_cast<double>(right.end - (full_end - offset));
    const double last = static_cast<double>(right.end - (some_end - 1 - offset));
    count += (first + last) * (some_end - full_end) / 2;
  }
  return count;
}

double CountPair(const Condition& c, const IndexSet& left, const IndexSet& right) {
  double count = 0;
  for (const IndexRange& l : left) {
    for (const IndexRange& r : right) {
      if (l.size() == 0 || r.size() == 0) continue;
      switch (c.relation) {
        case Condition::Relation::kLessEqual:
          count += CountBelow(l, r, c.offset);
          break;
        case Condition::Relation::kLess:
          count += CountBelow(l, r, c.offset - 1);
          break;
        case Condition::Relation::kEqual: {
          const IndexRange both = {std::max(l.begin, r.begin + c.offset),
                                   std::min(l.end, r.end + c.offset)};
          count += static_cast<double>(both.size());
          break;
        }
        case Condition::Relation::kFollows:  // left out by CountLatticePoints
          break;
      }
    }
  }
  return count;
}

// Enumerates all factors of a connected group but the last, which each
// condition narrows to a range.
class GroupCounter {
 public:
  GroupCounter(std::vector<int> group, std::vector<Condition> where,
               const std::vector<IndexSet>& sets)
      : group_(std::move(group)), where_(std::move(where)), sets_(sets), at_(sets.size(), 0) {
    for (const IndexSet& set : sets) extents_.push_back(CountOf(set));
  }

  double Count(size_t depth = 0) {
    if (depth + 1 == group_.size()) return CountLast();
    double count = 0;
    for (const IndexRange& range : sets_[group_[depth]]) {
      for (int64_t i = range.begin; i < range.end; ++i) {
        at_[group_[depth]] = i;
        count += Count(depth + 1);
      }
    }
    return count;
  }

 private:
  double CountLast() {
    const int last = group_.back();
    IndexRange allowed = {-kInfinity, kInfinity};
    at_[last] = 0;
    for (const Condition& c : where_) {
      const IndexRange range = Allowed(c, last);
      allowed = {std::max(allowed.begin, range.begin), std::min(allowed.end, range.end)};
    }
    return static_cast<double>(CountCommon(sets_[last], IndexSet{allowed}));
  }

  // The values of `last` that meet `c` where the others stand.
  IndexRange Allowed(const Condition& c, int last) const {
    // c: left - coefficient * last <= rest, and for equalities >= rest.
    int64_t coefficient = 0;
    for (const AffineTerm& term : c.terms) {
      if (term.factor == last) coefficient += term.Coefficient(extents_);
    }
    const int64_t slope = (c.left == last ? 1 : 0) - coefficient;
    const int64_t strict = c.relation == Condition::Relation::kLess ? 1 : 0;
    const int64_t rest = c.RightSide(at_, extents_) - at_[c.left] - strict;
    const IndexRange nothing = {0, 0};
    if (slope == 0) {
      const bool holds = c.is_map() ? rest == 0 : rest >= 0;
      return holds ? IndexRange{-kInfinity, kInfinity} : nothing;
    }
    if (c.is_map()) {
      return rest % slope == 0 ? IndexRange{rest / slope, rest / slope + 1} : nothing;
    }
    if (slope > 0) return {-kInfinity, FloorDiv(rest, slope) + 1};
    return {-FloorDiv(rest, -slope), kInfinity};
  }

  static constexpr int64_t kInfinity = int64_t{1} << 60;
  const std::vector<int> group_;
  const std::vector<Condition> where_;
  const std::vector<IndexSet>& sets_;
  std::vector<int64_t> at_, extents_;
};

}  // namespace

int64_t CountOf(const IndexSet& set) {
  int64_t count = 0;
  for (const IndexRange& range : set) count += range.size();
  return count;
}

int64_t CountCommon(const IndexSet& a, const IndexSet& b) {
  int64_t count = 0;
  for (const IndexRange& x : a) {
    for (const IndexRange& y : b) {
      count += IndexRange{std::max(x.begin, y.begin), std::min(x.end, y.end)}.size();
    }
  }
  return count;
}

IndexSet ShardIndices(int64_t extent, int64_t parts, int64_t part, ShardPattern pattern) {
  auto chunk = [&](int64_t pieces, int64_t piece) {
    const int64_t size = CeilDiv(extent, pieces);
    return IndexRange{std::min(extent, piece * size), std::min(extent, (piece + 1) * size)};
  };
  if (pattern != ShardPattern::kMirrored || parts == 1) return {chunk(parts, part)};
  return {chunk(2 * parts, part), chunk(2 * parts, 2 * parts - 1 - part)};
}

IndexSet Widened(IndexSet block, Halo halo, int64_t extent) {
  if (halo.empty()) return block;
  return {{std::max<int64_t>(0, block[0].begin - halo.before),
           std::min(extent, block[0].end + halo.after)}};
}

double CountLatticePoints(const std::vector<int>& factors, const std::vector<Condition>& all,
                          const std::vector<IndexSet>& sets) {
  std::vector<Condition> where;  // those that restrict points
  std::copy_if(all.begin(), all.end(), std::back_inserter(where),
               [](const Condition& c) { return !c.is_promise(); });
  double points = 1;
  std::vector<int> done;
  for (int factor : factors) {
    if (Contains(done, factor)) continue;
    if (where.empty()) {
      points *= static_cast<double>(CountOf(sets[factor]));
      done.push_back(factor);
      continue;
    }
    // The factors tied to this one by conditions.
    std::vector<int> group = {factor};
    std::vector<Condition> tied;
    for (bool grown = true; grown;) {
      grown = false;
      for (const Condition& c : where) {
        const std::vector<int> tied_factors = c.Factors();
        const auto inside = [&](int f) { return Contains(group, f); };
        if (std::none_of(tied_factors.begin(), tied_factors.end(), inside)) continue;
        for (int f : tied_factors) {
          if (inside(f)) continue;
          group.push_back(f);
          grown = true;
        }
      }
    }
    for (const Condition& c : where) {
      if (Contains(group, c.left)) tied.push_back(c);
    }
    done.insert(done.end(), group.begin(), group.end());
    if (tied.empty()) {
      points *= static_cast<double>(CountOf(sets[factor]));
    } else if (tied.size() == 1 && group.size() == 2 && tied[0].is_pair()) {
      points *= CountPair(tied[0], sets[tied[0].left], sets[tied[0].right()]);
    } else {
      points *= GroupCounter(group, tied, sets).Count();
    }
  }
  return points;
}

}  // namespace plancast
