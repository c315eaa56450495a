#include "graph/domain.h"

#include <algorithm>

#include "base/int128.h"

namespace plancast {
namespace {

bool Contains(const std::vector<int>& list, int value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// The right-hand indices that a condition allows for one left-hand index, as
// the range of right + offset >= left etc.
IndexRange RightRange(const Condition& c, int64_t left) {
  constexpr int64_t kInfinity = int64_t{1} << 60;
  switch (c.relation) {
    case Condition::Relation::kLessEqual:
      return {left - c.offset, kInfinity};
    case Condition::Relation::kLess:
      return {left - c.offset + 1, kInfinity};
    default:
      return {left - c.offset, left - c.offset + 1};
  }
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
        }
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
      : group_(std::move(group)), where_(std::move(where)), sets_(sets), at_(sets.size(), 0) {}

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
    IndexRange allowed = {-(int64_t{1} << 60), int64_t{1} << 60};
    for (const Condition& c : where_) {
      if (c.left == c.right) {
        if (!c.Holds(0, 0)) return 0;
      } else if (c.right == last) {
        const IndexRange r = RightRange(c, at_[c.left]);
        allowed = {std::max(allowed.begin, r.begin), std::min(allowed.end, r.end)};
      } else if (c.left == last) {
        const int64_t bound = at_[c.right] + c.offset;
        const bool strict = c.relation == Condition::Relation::kLess;
        allowed.end = std::min(allowed.end, strict ? bound : bound + 1);
        if (c.relation == Condition::Relation::kEqual) {
          allowed.begin = std::max(allowed.begin, bound);
        }
      } else if (!c.Holds(at_[c.left], at_[c.right])) {
        return 0;
      }
    }
    return static_cast<double>(CountCommon(sets_[last], IndexSet{allowed}));
  }

  const std::vector<int> group_;
  const std::vector<Condition> where_;
  const std::vector<IndexSet>& sets_;
  std::vector<int64_t> at_;
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

double CountLatticePoints(const std::vector<int>& factors, const std::vector<Condition>& where,
                          const std::vector<IndexSet>& sets) {
  double points = 1;
  std::vector<int> done;
  for (int factor : factors) {
    if (Contains(done, factor)) continue;
    // The factors tied to this one by conditions.
    std::vector<int> group = {factor};
    std::vector<Condition> tied;
    for (bool grown = true; grown;) {
      grown = false;
      for (const Condition& c : where) {
        if (Contains(group, c.left) == Contains(group, c.right)) continue;
        group.push_back(Contains(group, c.left) ? c.right : c.left);
        grown = true;
      }
    }
    for (const Condition& c : where) {
      if (Contains(group, c.left)) tied.push_back(c);
    }
    done.insert(done.end(), group.begin(), group.end());
    if (tied.empty()) {
      points *= static_cast<double>(CountOf(sets[factor]));
    } else if (tied.size() == 1 && group.size() == 2) {
      points *= CountPair(tied[0], sets[tied[0].left], sets[tied[0].right]);
    } else {
      points *= GroupCounter(group, tied, sets).Count();
    }
  }
  return points;
}

}  // namespace plancast
