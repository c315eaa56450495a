#include "graph/split/index_ranges.h"

#include <algorithm>
#include <utility>

#include "base/int128.h"

namespace plancast {
namespace {

struct Interval {  // both ends inside
  int128 low = 0, high = 0;
};

Interval TermInterval(const AffineTerm& term, const std::vector<IndexRange>& ranges,
                      const std::vector<int64_t>& extents) {
  const int128 c = term.Coefficient(extents);
  if (term.factor < 0) return {c, c};
  const int128 a = c * ranges[term.factor].begin, b = c * (ranges[term.factor].end - 1);
  return {std::min(a, b), std::max(a, b)};
}

// Narrows `range` to [low, high]; true if it changed.
bool Narrow(int128 low, int128 high, IndexRange* range) {
  const IndexRange old = *range;
  range->begin = std::max(range->begin, SaturateToInt64(low));
  range->end = std::min(range->end, SaturateToInt64(high + 1));
  return range->begin != old.begin || range->end != old.end;
}

// Narrows all factors of a map by each other; true if one changed.
bool Propagate(const Condition& map, const std::vector<int64_t>& extents,
               std::vector<IndexRange>* ranges) {
  Interval sum = {map.offset, map.offset};
  for (const AffineTerm& term : map.terms) {
    const Interval t = TermInterval(term, *ranges, extents);
    sum.low += t.low;
    sum.high += t.high;
  }
  bool changed = Narrow(sum.low, sum.high, &(*ranges)[map.left]);
  const IndexRange left = (*ranges)[map.left];
  for (const AffineTerm& term : map.terms) {
    int128 c = term.Coefficient(extents);
    if (term.factor < 0 || c == 0 || left.size() == 0) continue;
    // c * factor = left - the rest.
    const Interval t = TermInterval(term, *ranges, extents);
    int128 low = left.begin - (sum.high - t.high), high = left.end - 1 - (sum.low - t.low);
    if (c < 0) {
      std::swap(low, high);
      low = -low, high = -high, c = -c;
    }
    changed |= Narrow(CeilDiv<int128>(low, c), FloorDiv<int128>(high, c), &(*ranges)[term.factor]);
    if ((*ranges)[term.factor].size() == 0) return changed;
    // The sum stays that of the wider ranges: the next pass uses the new ones.
  }
  return changed;
}

}  // namespace

std::vector<IndexRange> RangesWhere(const Statement& statement, int fixed, IndexRange range,
                                    const std::vector<int64_t>& extents) {
  std::vector<IndexRange> ranges;
  ranges.reserve(extents.size());
  for (int64_t extent : extents) ranges.push_back({0, extent});
  ranges[fixed] = range;
  return NarrowRanges(statement, std::move(ranges), extents);
}

std::vector<IndexRange> NarrowRanges(const Statement& statement, std::vector<IndexRange> ranges,
                                     const std::vector<int64_t>& extents) {
  // Maps are acyclic, so a few passes settle; stopping early is only wider.
  for (size_t pass = 0; pass < 2 * statement.where.size() + 1; ++pass) {
    bool changed = false;
    for (const Condition& c : statement.where) {
      if (c.is_map()) changed |= Propagate(c, extents, &ranges);
      for (int f : c.Factors()) {
        if (ranges[f].size() == 0) return {};
      }
    }
    if (!changed) break;
  }
  return ranges;
}

}  // namespace plancast
