#include "cost_models/fit/portable_math.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace plancast {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Two units of the last place, as a share.
constexpr double kTwoUnits = 2 * std::numeric_limits<double>::epsilon();

TEST(PortableExp, IsWithinTwoUnitsOfTheLibrarys) {
  for (double x = -700; x < 700; x += 0.0137) {
    ASSERT_NEAR(PortableExp(x) / std::exp(x), 1, kTwoUnits) << x;
  }
}

TEST(PortableExp, KnowsTheEndsOfTheRange) {
  EXPECT_EQ(PortableExp(0), 1);
  EXPECT_EQ(PortableExp(1000), kInfinity);
  EXPECT_EQ(PortableExp(kInfinity), kInfinity);
  EXPECT_EQ(PortableExp(-1000), 0);
  EXPECT_EQ(PortableExp(-kInfinity), 0);
  EXPECT_TRUE(std::isnan(PortableExp(std::nan(""))));
}

TEST(PortableLog, IsWithinTwoUnitsOfTheLibrarys) {
  for (double x = 1e-300; x < 1e300; x *= 1.0137) {
    ASSERT_NEAR(PortableLog(x) / std::log(x), 1, kTwoUnits) << x;
  }
  for (double x = 0.5; x < 2; x += 1.37e-4) {
    if (std::log(x) != 0) {
      ASSERT_NEAR(PortableLog(x) / std::log(x), 1, kTwoUnits) << x;
    }
  }
}

TEST(PortableLog, KnowsTheEndsOfTheRange) {
  EXPECT_EQ(PortableLog(1), 0);
  EXPECT_EQ(PortableLog(0), -kInfinity);
  EXPECT_EQ(PortableLog(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(PortableLog(-1)));
  EXPECT_TRUE(std::isnan(PortableLog(std::nan(""))));
  EXPECT_NEAR(PortableLog(std::numeric_limits<double>::denorm_min()), -744.44, 0.01);
}

// Bits, not figures: they are the same on every processor.
TEST(PortableMath, GivesTheseBits) {
  EXPECT_EQ(PortableExp(0.37), 0x1.729ebc574421dp+0);
  EXPECT_EQ(PortableLog(0.37), -0x1.fd0ea24bf89b8p-1);
}

}  // namespace
}  // namespace plancast
