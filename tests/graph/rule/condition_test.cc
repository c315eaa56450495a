#include <limits>
#include <vector>

#include "graph/rule/expr.h"
#include "gtest/gtest.h"

namespace plancast {
namespace {

constexpr Condition::Relation kEqual = Condition::Relation::kEqual,
                              kLess = Condition::Relation::kLess,
                              kLessEqual = Condition::Relation::kLessEqual;

Condition Map(int left, std::vector<AffineTerm> terms, int64_t offset = 0) {
  Condition condition;
  condition.left = left;
  condition.relation = kEqual;
  condition.terms = std::move(terms);
  condition.offset = offset;
  return condition;
}

TEST(ConditionTest, ComparesAtAPoint) {
  const std::vector<int64_t> extents = {10, 10, 3};
  EXPECT_TRUE(Condition::Pair(0, kLessEqual, 1).Holds({4, 4, 0}, extents));
  EXPECT_FALSE(Condition::Pair(0, kLess, 1).Holds({4, 4, 0}, extents));
  EXPECT_TRUE(Condition::Pair(0, kLess, 1, 1).Holds({4, 4, 0}, extents));
  // f0 == 2 * f1 + size(f2) * f2 - 1
  const Condition map = Map(0, {{2, {}, 1}, {1, {2}, 2}}, -1);
  EXPECT_EQ(map.RightSide({0, 4, 2}, extents), 2 * 4 + 3 * 2 - 1);
  EXPECT_TRUE(map.Holds({13, 4, 2}, extents));
  EXPECT_EQ(map.Factors(), (std::vector<int>{0, 1, 2}));
  EXPECT_TRUE(map.Mentions(2));
  EXPECT_FALSE(map.Mentions(3));
}

TEST(ConditionTest, TheFirstFactorOnTheRightIsTied) {
  EXPECT_EQ(Map(0, {{2, {}, 1}, {1, {}, 2}}).tied(), 1);
  EXPECT_EQ(Map(0, {{1, {2}, -1}, {1, {}, 3}}).tied(), 3);  // behind a constant
  EXPECT_EQ(Map(0, {}, 5).tied(), -1);
  EXPECT_EQ(Condition::Pair(0, kLessEqual, 1).tied(), -1);
}

TEST(ConditionTest, RadixMapsNumberTheirPoints) {
  EXPECT_TRUE(Map(0, {{1, {2, 3}, 1}, {1, {3}, 2}, {1, {}, 3}}).is_radix());
  EXPECT_TRUE(Map(0, {{1, {3, 2}, 1}, {1, {3}, 2}, {1, {}, 3}}).is_radix());
  EXPECT_TRUE(Map(0, {{1, {}, 1}}).is_radix());
  EXPECT_FALSE(Map(0, {{1, {}, 1}, {1, {}, 2}}).is_radix());      // a window
  EXPECT_FALSE(Map(0, {{1, {1}, 1}, {1, {}, 2}}).is_radix());     // by its own size
  EXPECT_FALSE(Map(0, {{2, {2}, 1}, {1, {}, 2}}).is_radix());     // with gaps
  EXPECT_FALSE(Map(0, {{1, {2}, 1}, {1, {}, 2}}, 1).is_radix());  // moved
  EXPECT_FALSE(Condition::Pair(0, kLessEqual, 1).is_radix());
}

TEST(ConditionTest, MapsFixFactors) {
  const std::vector<Condition> window = {Map(0, {{1, {}, 1}, {1, {}, 2}})};
  EXPECT_TRUE(IsFixed(0, {1}, window));
  EXPECT_FALSE(IsFixed(1, {0}, window));  // with k it makes p, but p does not make it
  const std::vector<Condition> merged = {Map(0, {{1, {2}, 1}, {1, {}, 2}})};
  EXPECT_TRUE(IsFixed(1, {0}, merged));
  EXPECT_TRUE(IsFixed(2, {0}, merged));
  EXPECT_FALSE(IsFixed(2, {1}, merged));
  const std::vector<Condition> moved = {Map(0, {{1, {}, 1}}, 7)};
  EXPECT_TRUE(IsFixed(1, {0}, moved));
  EXPECT_EQ(MapOf(0, moved), &moved[0]);
  EXPECT_EQ(MapOf(1, moved), nullptr);
}

TEST(ConditionTest, HugeSizesSaturate) {
  const int64_t huge = int64_t{1} << 40;
  const AffineTerm term = {1, {0, 1, 2}, 3};
  EXPECT_EQ(term.Coefficient({huge, huge, huge, 5}), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(Map(3, {term}).RightSide({0, 0, 0, 4}, {huge, huge, huge, 5}),
            std::numeric_limits<int64_t>::max());
}

}  // namespace
}  // namespace plancast
