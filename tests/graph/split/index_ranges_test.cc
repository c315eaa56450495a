#include "graph/split/index_ranges.h"

#include <functional>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "tests/testing/seed.h"

namespace plancast {
namespace {

OpRule Rule(const std::string& text) {
  absl::StatusOr<OpRule> rule = OpRule::Parse(text);
  EXPECT_TRUE(rule.ok()) << rule.status();
  return *std::move(rule);
}

IndexRange RangeOf(const OpRule& rule, const char* factor, const char* fixed, IndexRange range,
                   const std::vector<int64_t>& extents) {
  const std::vector<IndexRange> ranges =
      RangesWhere(rule.statements()[0], *rule.FindFactor(fixed), range, extents);
  return ranges.empty() ? IndexRange() : ranges[*rule.FindFactor(factor)];
}

void ExpectRange(IndexRange range, int64_t begin, int64_t end) {
  EXPECT_EQ(range.begin, begin);
  EXPECT_EQ(range.end, end);
}

TEST(IndexRangesTest, WindowsReachOverTheirBlock) {
  const OpRule rule = Rule("f(x, w) -> (y) { y[i] += x[p] * w[k] where p == 2 * i + 3 * k - 1 }");
  const std::vector<int64_t> extents = {10, 20, 4};  // i p k
  ExpectRange(RangeOf(rule, "p", "i", {2, 5}, extents), 3, 17);
  ExpectRange(RangeOf(rule, "p", "i", {0, 1}, extents), 2, 9);     // -1 is padding
  ExpectRange(RangeOf(rule, "p", "i", {9, 10}, extents), 17, 18);  // 20 is, too
  ExpectRange(RangeOf(rule, "i", "p", {9, 11}, extents), 1, 6);    // 2 i = p + 1 - 3 k
}

TEST(IndexRangesTest, MergedDimsGiveRowsAndBack) {
  const OpRule rule = Rule("f(x) -> (y) { y[f] = x[i,j] where f == size(j) * i + j }");
  const std::vector<int64_t> extents = {12, 3, 4};  // f i j
  ExpectRange(RangeOf(rule, "i", "f", {4, 8}, extents), 1, 2);
  ExpectRange(RangeOf(rule, "i", "f", {5, 9}, extents), 1, 3);
  ExpectRange(RangeOf(rule, "f", "i", {1, 3}, extents), 4, 12);
}

TEST(IndexRangesTest, NoPointsLeaveNoRanges) {
  const OpRule rule = Rule("f(x) -> (y) { y[i] = x[p] where p == i - 5 }");
  EXPECT_TRUE(RangesWhere(rule.statements()[0], 0, {0, 5}, {9, 9}).empty());
}

// Ranges hold all points, over chains of maps with coefficients of either sign.
TEST(IndexRangesTest, HoldEveryPoint) {
  const uint64_t seed = TestSeed(6);
  std::mt19937_64 random(seed);
  auto below = [&](int n) { return static_cast<int64_t>(random() % n); };
  for (int trial = 0; trial < 2000; ++trial) {
    Statement s;
    s.factors = {0, 1, 2, 3, 4};
    for (int left : {4, 3}) {  // 4 may depend on 3
      Condition c = Condition::Pair(left, Condition::Relation::kEqual,
                                    static_cast<int>(below(left)), below(9) - 4);
      c.terms[0].number = below(7) - 3;
      if (below(2)) c.terms.push_back({below(5) - 2, {}, static_cast<int>(below(left))});
      if (below(3) == 0) c.terms[0].sizes.push_back(static_cast<int>(below(5)));
      s.where.push_back(c);
    }
    std::vector<int64_t> extents;
    for (int f = 0; f < 5; ++f) extents.push_back(1 + below(6));
    const int fixed = static_cast<int>(below(5));
    IndexRange range;
    range.begin = below(static_cast<int>(extents[fixed]));
    range.end = range.begin + 1 + below(static_cast<int>(extents[fixed] - range.begin));
    const std::vector<IndexRange> ranges = RangesWhere(s, fixed, range, extents);
    std::vector<int64_t> point(5);
    std::function<void(int)> walk = [&](int f) {
      if (f < 5) {
        for (point[f] = 0; point[f] < extents[f]; ++point[f]) walk(f + 1);
        return;
      }
      if (point[fixed] < range.begin || point[fixed] >= range.end) return;
      for (const Condition& c : s.where) {
        if (!c.Holds(point, extents)) return;
      }
      ASSERT_FALSE(ranges.empty()) << "trial " << trial;
      for (int g = 0; g < 5; ++g) {
        ASSERT_GE(point[g], ranges[g].begin) << "trial " << trial << ", factor " << g;
        ASSERT_LT(point[g], ranges[g].end) << "trial " << trial << ", factor " << g;
      }
    };
    walk(0);
  }
}

}  // namespace
}  // namespace plancast
