#ifndef PLANCAST_BASE_MIX_BITS_H_
#define PLANCAST_BASE_MIX_BITS_H_

#include <cstdint>

namespace plancast {

// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): every bit of the result
// depends on every bit of x.
inline uint64_t MixBits(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace plancast

#endif  // PLANCAST_BASE_MIX_BITS_H_
