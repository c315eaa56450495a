#include "base/int128.h"

#include <gtest/gtest.h>

namespace plancast {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

TEST(Int128Test, DividesTowardsTheNamedSide) {
  for (int64_t dividend = -20; dividend <= 20; ++dividend) {
    for (int64_t divisor = 1; divisor <= 7; ++divisor) {
      const int64_t floor = FloorDiv(dividend, divisor);
      const int64_t ceil = CeilDiv(dividend, divisor);
      EXPECT_LE(floor * divisor, dividend);
      EXPECT_GT((floor + 1) * divisor, dividend);
      EXPECT_GE(ceil * divisor, dividend);
      EXPECT_LT((ceil - 1) * divisor, dividend);
    }
  }
}

TEST(Int128Test, MultipliesExactlyBeforeDividing) {
  EXPECT_EQ(MulDivFloor(kMax, 10, 20), kMax / 2);
  EXPECT_EQ(MulDivCeil(kMax, 10, 20), kMax / 2 + 1);
  EXPECT_EQ(MulDivFloor(-7, 1, 2), -4);
  EXPECT_EQ(MulDivCeil(-7, 1, 2), -3);
}

TEST(Int128Test, Saturates) {
  EXPECT_EQ(MulDivFloor(kMax, 2, 1), kMax);
  EXPECT_EQ(MulDivCeil(kMin, 2, 1), kMin);
}

}  // namespace
}  // namespace plancast
