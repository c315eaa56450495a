#ifndef PLANCAST_EXECUTOR_SAMPLING_RANDOM_NUMBERS_H_
#define PLANCAST_EXECUTOR_SAMPLING_RANDOM_NUMBERS_H_

#include <cstdint>

namespace plancast {

// What a random number is for.
enum class Draw : uint64_t { kKernel, kComm, kStraggler };

// Random numbers without state: each is a hash of the seed and of what it is for,
// so they do not depend on the order or the thread of asking.
class RandomNumbers {
 public:
  RandomNumbers(uint64_t seed, int64_t sample);

  // Uniform in (0, 1).
  double Uniform(Draw draw, int64_t a, int64_t b) const;
  // Lognormal with mean one, `sigma` of the logarithm; 1 at sigma 0.
  double Noise(double sigma, Draw draw, int64_t a, int64_t b) const;

 private:
  uint64_t Bits(Draw draw, int64_t a, int64_t b, uint64_t which) const;
  uint64_t key_;
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_SAMPLING_RANDOM_NUMBERS_H_
