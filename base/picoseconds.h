#ifndef PLANCAST_BASE_PICOSECONDS_H_
#define PLANCAST_BASE_PICOSECONDS_H_

#include <cmath>
#include <cstdint>
#include <limits>

namespace plancast {

// Simulated time is a whole number of picoseconds (names end in `_ps`), so that ties do not
// depend on the order of sums. 2^63 ps are 106 days.

constexpr double ToSeconds(int64_t ps) { return static_cast<double>(ps) * 1e-12; }

// The nearest; `seconds` must fit.
inline int64_t RoundToPicoseconds(double seconds) { return std::llround(seconds * 1e12); }

// Rounded up, and at the ends of the type what is beyond them. A value within an ulp of a
// whole number counts as that number: 1.1 s are 1100000000000 ps.
constexpr int64_t CeilToPicoseconds(double seconds) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const double ps = seconds * 1e12;
  if (!(ps < 9.2e18)) return kMost;
  if (ps <= -9.2e18) return -kMost;
  const double slack = (ps < 0 ? -ps : ps) * std::numeric_limits<double>::epsilon();
  const auto truncated = static_cast<int64_t>(ps);
  return truncated + (ps - static_cast<double>(truncated) > slack ? 1 : 0);
}

}  // namespace plancast

#endif  // PLANCAST_BASE_PICOSECONDS_H_
