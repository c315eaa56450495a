#include "graph/layout/domain.h"

#include <functional>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace plancast {
namespace {

double BruteForce(const std::vector<int>& factors, const std::vector<Condition>& where,
                  const std::vector<IndexSet>& sets) {
  std::vector<int64_t> at(sets.size()), extents;
  for (const IndexSet& set : sets) extents.push_back(CountOf(set));
  double count = 0;
  std::function<void(size_t)> walk = [&](size_t depth) {
    if (depth == factors.size()) {
      for (const Condition& c : where) {
        if (!c.Holds(at, extents)) return;
      }
      ++count;
      return;
    }
    for (const IndexRange& range : sets[factors[depth]]) {
      for (int64_t i = range.begin; i < range.end; ++i) {
        at[factors[depth]] = i;
        walk(depth + 1);
      }
    }
  };
  walk(0);
  return count;
}

TEST(DomainTest, ClosedFormsEqualEnumeration) {
  std::mt19937_64 random(5);
  for (int trial = 0; trial < 5000; ++trial) {
    std::vector<IndexSet> sets;
    for (int f = 0; f < 4; ++f) {
      const int64_t extent = 1 + random() % 9, parts = 1 + random() % 4;
      sets.push_back(ShardIndices(extent, parts, random() % parts,
                                  random() % 2 ? ShardPattern::kBlock : ShardPattern::kMirrored));
    }
    std::vector<Condition> where;
    for (size_t i = random() % 4; i > 0; --i) {
      where.push_back(Condition::Pair(
          static_cast<int>(random() % 4), static_cast<Condition::Relation>(random() % 3),
          static_cast<int>(random() % 4), static_cast<int64_t>(random() % 7) - 3));
      if (random() % 3 > 0) continue;
      where.back().terms[0].number = static_cast<int64_t>(random() % 5) - 2;
      where.back().terms.push_back({1, {static_cast<int>(random() % 4)}, 1});
    }
    EXPECT_EQ(CountLatticePoints({0, 1, 2, 3}, where, sets), BruteForce({0, 1, 2, 3}, where, sets));
  }
}

TEST(DomainTest, LargeTrianglesAreExact) {
  const double n = 1 << 20;
  EXPECT_EQ(CountLatticePoints({0, 1}, {Condition::Pair(1, Condition::Relation::kLessEqual, 0)},
                               {{{0, 1 << 20}}, {{0, 1 << 20}}}),
            n * (n + 1) / 2);
}

TEST(DomainTest, ShardsCoverEveryIndexOnce) {
  for (ShardPattern pattern : {ShardPattern::kBlock, ShardPattern::kMirrored}) {
    for (int64_t extent = 1; extent < 20; ++extent) {
      for (int64_t parts = 1; parts < 6; ++parts) {
        std::vector<int> times(extent);
        for (int64_t part = 0; part < parts; ++part) {
          for (const IndexRange& range : ShardIndices(extent, parts, part, pattern)) {
            for (int64_t i = range.begin; i < range.end; ++i) ++times[i];
          }
        }
        EXPECT_EQ(times, std::vector<int>(extent, 1));
      }
    }
  }
}

}  // namespace
}  // namespace plancast
