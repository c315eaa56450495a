#include "executor/sampling/random_numbers.h"

#include <cmath>

#include "base/mix_bits.h"

namespace plancast {
namespace {

// Odd multiples of 2^-54: neither 0 nor 1.
double ToUniform(uint64_t bits) { return (static_cast<double>(bits >> 11) + 0.5) * 0x1.0p-53; }

}  // namespace

RandomNumbers::RandomNumbers(uint64_t seed, int64_t sample)
    : key_(MixBits(MixBits(seed) ^ static_cast<uint64_t>(sample))) {}

uint64_t RandomNumbers::Bits(Draw draw, int64_t a, int64_t b, uint64_t which) const {
  const uint64_t first = MixBits(key_ ^ (static_cast<uint64_t>(draw) << 8 | which));
  return MixBits(MixBits(first ^ static_cast<uint64_t>(a)) ^ static_cast<uint64_t>(b));
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
