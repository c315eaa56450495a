#include "base/picoseconds.h"

#include <cstdint>
#include <limits>

#include "gtest/gtest.h"

namespace plancast {
namespace {

TEST(PicosecondsTest, RoundsUp) {
  static_assert(CeilToPicoseconds(1.0) == 1'000'000'000'000);
  EXPECT_EQ(CeilToPicoseconds(1.5e-12), 2);
  EXPECT_EQ(CeilToPicoseconds(1e-13), 1);
  EXPECT_EQ(CeilToPicoseconds(0.0), 0);
  EXPECT_EQ(CeilToPicoseconds(-1.5e-12), -1);
}

TEST(PicosecondsTest, ForgivesOneUlpOfWholePicoseconds) {
  for (int64_t ms = 1; ms < 5000; ++ms) {
    EXPECT_EQ(CeilToPicoseconds(static_cast<double>(ms) * 1e-3), ms * 1'000'000'000) << ms;
  }
}

TEST(PicosecondsTest, StaysInItsType) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(CeilToPicoseconds(1e30), kMost);
  EXPECT_EQ(CeilToPicoseconds(-1e30), -kMost);
  EXPECT_EQ(CeilToPicoseconds(std::numeric_limits<double>::quiet_NaN()), kMost);
}

TEST(PicosecondsTest, RoundsToTheNearest) {
  EXPECT_EQ(RoundToPicoseconds(1.4e-12), 1);
  EXPECT_EQ(RoundToPicoseconds(1.6e-12), 2);
  EXPECT_DOUBLE_EQ(ToSeconds(RoundToPicoseconds(1.5)), 1.5);
}

}  // namespace
}  // namespace plancast
