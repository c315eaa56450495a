#ifndef PLANCAST_BASE_FLOOR_LOG2_H_
#define PLANCAST_BASE_FLOOR_LOG2_H_

#include <cstdint>

namespace plancast {

// The largest k with 2^k <= value; 0 for 0.
inline int FloorLog2(int64_t value) {
  int log = 0;
  while (value >>= 1) ++log;
  return log;
}

}  // namespace plancast

#endif  // PLANCAST_BASE_FLOOR_LOG2_H_
