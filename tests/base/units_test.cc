#include "base/units.h"

#include <sstream>
#include <type_traits>

#include <gtest/gtest.h>

#include "absl/container/flat_hash_set.h"

namespace plancast {
namespace {

TEST(QuantityTest, AddsComparesAndScales) {
  constexpr Bytes kSum = Bytes(3) + 2 * Bytes(4) - Bytes(1);
  static_assert(kSum == Bytes(10));
  static_assert(Bytes(1) < Bytes(2));
  static_assert(-Picoseconds(5) == Picoseconds(-5));
  static_assert(BytesPerSecond(2.0) * 0.5 == BytesPerSecond(1.0));
  Picoseconds time;
  time += Picoseconds(7);
  EXPECT_EQ(time.value(), 7);
  EXPECT_DOUBLE_EQ(Ratio(Bytes(1), Bytes(4)), 0.25);
}

template <typename A, typename B, typename = void>
struct CanAdd : std::false_type {};
template <typename A, typename B>
struct CanAdd<A, B, std::void_t<decltype(std::declval<A>() + std::declval<B>())>> : std::true_type {
};
template <typename A, typename B, typename = void>
struct CanMultiply : std::false_type {};
template <typename A, typename B>
struct CanMultiply<A, B, std::void_t<decltype(std::declval<A>() * std::declval<B>())>>
    : std::true_type {};

TEST(QuantityTest, RefusesMixedUnitsAndSilentRounding) {
  EXPECT_TRUE((CanAdd<Bytes, Bytes>::value));
  EXPECT_FALSE((CanAdd<Bytes, Picoseconds>::value));
  EXPECT_FALSE((CanAdd<Bytes, int>::value));
  EXPECT_TRUE((CanMultiply<Bytes, int>::value));
  EXPECT_FALSE((CanMultiply<Bytes, double>::value));
  EXPECT_FALSE((std::is_convertible_v<int64_t, Bytes>));
}

TEST(QuantityTest, HashesByValue) {
  absl::flat_hash_set<Bytes> bytes = {Bytes(1), Bytes(1), Bytes(2)};
  absl::flat_hash_set<Flops> flops = {Flops(1), Flops(int128{1} << 64), Flops(1)};
  EXPECT_EQ(bytes.size(), 2);
  EXPECT_EQ(flops.size(), 2);
}

TEST(TimeTest, RoundsUpToPicoseconds) {
  static_assert(Seconds(1.0) == Picoseconds(1'000'000'000'000));
  EXPECT_EQ(Seconds(1.5e-12), Picoseconds(2));
  EXPECT_EQ(Seconds(1e-13), Picoseconds(1));
  EXPECT_EQ(Seconds(0.0), Picoseconds(0));
  EXPECT_EQ(Seconds(-1.5e-12), Picoseconds(-1));
}

TEST(TimeTest, ForgivesOneUlpOfWholePicoseconds) {
  for (int64_t ms = 1; ms < 5000; ++ms) {
    EXPECT_EQ(Milliseconds(static_cast<double>(ms)), Picoseconds(ms * 1'000'000'000)) << ms;
  }
}

TEST(TimeTest, Saturates) {
  EXPECT_EQ(Seconds(1e30), Picoseconds::Max());
  EXPECT_EQ(Seconds(-1e30), -Picoseconds::Max());
  EXPECT_EQ(Bytes(1) / BytesPerSecond(0), Picoseconds::Max());
}

TEST(TimeTest, GoesToSecondsAndBack) {
  EXPECT_DOUBLE_EQ(ToSeconds(Picoseconds(1'500'000'000'000)), 1.5);
  EXPECT_EQ(Microseconds(2.5), Nanoseconds(2500));
}

TEST(RateTest, AmountOverRateIsTime) {
  EXPECT_EQ(Bytes(1'000'000'000) / GigabytesPerSecond(1), Seconds(1));
  EXPECT_EQ(Bytes(1) / BytesPerSecond(3e12), Picoseconds(1));  // 1/3 ps, rounded up
  EXPECT_EQ(Bytes(0) / BytesPerSecond(0), Picoseconds(0));
  EXPECT_EQ(Flops(312'000'000) / TeraflopsPerSecond(312), Microseconds(1));
  EXPECT_DOUBLE_EQ((Bytes(10) / Seconds(2)).value(), 5);
  EXPECT_EQ(GigabitsPerSecond(400), GigabytesPerSecond(50));
}

TEST(FlopsTest, HoldsMoreThan64Bits) {
  const Flops token(int64_t{6} * 405'000'000'000);
  const Flops run = token * int64_t{15'000'000'000'000};
  EXPECT_EQ(run.value() / token.value(), 15'000'000'000'000);
  EXPECT_EQ(ToString(run), "36450 ZFLOP");
  EXPECT_GT(Flops::Max(), run);
}

TEST(PrintTest, KeepsThreeDigits) {
  EXPECT_EQ(ToString(Picoseconds(1'234'567'890)), "1.23 ms");
  EXPECT_EQ(ToString(Seconds(18.13)), "18.1 s");
  EXPECT_EQ(ToString(Seconds(86400)), "86400 s");
  EXPECT_EQ(ToString(Picoseconds(0)), "0 s");
  EXPECT_EQ(ToString(Picoseconds(-2000)), "-2 ns");
  EXPECT_EQ(ToString(Bytes(3'650'722'202)), "3.4 GiB");
  EXPECT_EQ(ToString(Bytes(1023)), "1023 B");
  EXPECT_EQ(ToString(MiB(80)), "80 MiB");
  EXPECT_EQ(ToString(GigabytesPerSecond(900)), "900 GB/s");
  EXPECT_EQ(ToString(TeraflopsPerSecond(989)), "989 TFLOP/s");
  EXPECT_EQ(ToString(Flops(3'300'000'000'000'000'000)), "3.3 EFLOP");
  std::ostringstream stream;
  stream << GiB(80) << ", " << Nanoseconds(1);
  EXPECT_EQ(stream.str(), "80 GiB, 1 ns");
}

}  // namespace
}  // namespace plancast
