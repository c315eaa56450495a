#ifndef PLANCAST_EXECUTOR_SIMULATE_LAYER_SLOWED_WORK_H_
#define PLANCAST_EXECUTOR_SIMULATE_LAYER_SLOWED_WORK_H_

#include <algorithm>
#include <cstdint>

#include "base/int128.h"

namespace plancast {

// How kernels go on beside communications: in fixed point, 2^-20, `slowdown_q20` times as long
// as alone while they are slow. What is left is rounded whenever that changes, so every
// way of simulating a kernel has to ask here.

// The time that what is left of a kernel takes, rounded up.
inline int64_t TimeOfWork(int64_t left_ps, bool slow, int64_t slowdown_q20) {
  return slow ? MulDivCeil(left_ps, slowdown_q20, int64_t{1} << 20) : left_ps;
}

// What is left of it after some time; what was done is rounded down.
inline int64_t WorkAfter(int64_t left_ps, int64_t past_ps, bool slow, int64_t slowdown_q20) {
  const int64_t done = slow ? MulDivFloor(past_ps, int64_t{1} << 20, slowdown_q20) : past_ps;
  return std::max<int64_t>(left_ps - done, 0);
}

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_SIMULATE_LAYER_SLOWED_WORK_H_
