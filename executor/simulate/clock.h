#ifndef PLANCAST_EXECUTOR_SIMULATE_CLOCK_H_
#define PLANCAST_EXECUTOR_SIMULATE_CLOCK_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "executor/simulate/simulate.h"

namespace plancast {

// What the simulator's clock holds. No event is later than kLatestPs, 26 days; what is
// worked out ahead of one, an instance on a device and what its host has launched till
// then, takes at most kLongestPs. So their sums stay below 2^62, and twice that in 64 bits.
inline constexpr int64_t kLatestPs = (int64_t{1} << 61) - 1;
inline constexpr int64_t kLongestPs = int64_t{1} << 59;

// That something takes longer.
absl::Status ClockError();

// Whether all that is worked out ahead of events takes at most kLongestPs. `alone_ps`:
// what a communication of each group takes alone.
absl::Status CheckClock(const SimInput& input, const std::vector<int64_t>& alone_ps);

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_SIMULATE_CLOCK_H_
