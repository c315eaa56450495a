#ifndef PLANCAST_TESTS_FUZZ_NATIVE_RANDOM_H_
#define PLANCAST_TESTS_FUZZ_NATIVE_RANDOM_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace plancast {

// SplitMix64 (Steele, Lea, Flood 2014): a seed is a case, at no cost of setting up.
class FuzzRandom {
 public:
  explicit FuzzRandom(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  // 0 for 0.
  size_t Below(size_t n) { return n == 0 ? 0 : Next() % n; }
  bool OneIn(size_t n) { return Below(n) == 0; }
  template <typename T>
  const T& Of(const std::vector<T>& items) {
    return items[Below(items.size())];
  }
  // Small numbers more often than large ones, at most `most`.
  size_t Small(size_t most) { return Below(Below(most + 1) + 1); }

 private:
  uint64_t state_;
};

}  // namespace plancast

#endif  // PLANCAST_TESTS_FUZZ_NATIVE_RANDOM_H_
