#ifndef PLANCAST_BASE_INT128_H_
#define PLANCAST_BASE_INT128_H_

#include <cstdint>
#include <limits>

// Exact integer arithmetic for times, rates and work, whose products leave 64
// bits.

namespace plancast {

using int128 = __int128;

// The quotient rounded towards minus infinity; `divisor` > 0.
template <typename Int>
constexpr Int FloorDiv(Int dividend, Int divisor) {
  const Int quotient = dividend / divisor;  // one division: of 128 bits it is a call
  return quotient - (quotient * divisor > dividend ? 1 : 0);
}

// The quotient rounded towards plus infinity; `divisor` > 0.
template <typename Int>
constexpr Int CeilDiv(Int dividend, Int divisor) {
  const Int quotient = dividend / divisor;
  return quotient + (quotient * divisor < dividend ? 1 : 0);
}

// `value` clamped to what 64 bits hold.
constexpr int64_t SaturateToInt64(int128 value) {
  constexpr int128 kMax = std::numeric_limits<int64_t>::max();
  constexpr int128 kMin = std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(value > kMax ? kMax : value < kMin ? kMin : value);
}

// a * b / c with an exact product, rounded down or up; c > 0. Saturates.
constexpr int64_t MulDivFloor(int64_t a, int64_t b, int64_t c) {
  return SaturateToInt64(FloorDiv<int128>(int128{a} * b, c));
}
constexpr int64_t MulDivCeil(int64_t a, int64_t b, int64_t c) {
  return SaturateToInt64(CeilDiv<int128>(int128{a} * b, c));
}

}  // namespace plancast

#endif  // PLANCAST_BASE_INT128_H_
