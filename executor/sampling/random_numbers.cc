#include "executor/sampling/random_numbers.h"

#include <cmath>

namespace plancast {
namespace {

// The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Odd multiples of 2^-54: neither 0 nor 1.
double ToUniform(uint64_t bits) { return (static_cast<double>(bits >> 11) + 0.5) * 0x1.0p-53; }

}  // namespace

RandomNumbers::RandomNumbers(uint64_t seed, int64_t sample)
    : key_(Mix(Mix(seed) ^ static_cast<uint64_t>(sample))) {}

uint64_t RandomNumbers::Bits(Draw draw, int64_t a, int64_t b, uint64_t which) const {
  const uint64_t first = Mix(key_ ^ (static_cast<uint64_t>(draw) << 8 | which));
  return Mix(Mix(first ^ static_cast<uint64_t>(a)) ^ static_cast<uint64_t>(b));
}

double RandomNumbers::Uniform(Draw draw, int64_t a, int64_t b) const {
  return ToUniform(Bits(draw, a, b, 0));
}

double RandomNumbers::Noise(double sigma, Draw draw, int64_t a, int64_t b) const {
  if (sigma == 0) return 1;
  constexpr double kTwoPi = 6.283185307179586;
  const double radius = std::sqrt(-2 * std::log(ToUniform(Bits(draw, a, b, 1))));
  const double normal = radius * std::cos(kTwoPi * ToUniform(Bits(draw, a, b, 2)));
  return std::exp(sigma * normal - sigma * sigma / 2);
}

}  // namespace plancast
