#ifndef PLANCAST_TESTS_TESTING_SEED_H_
#define PLANCAST_TESTS_TESTING_SEED_H_

#include <cstdint>
#include <cstdlib>
#include <iostream>

namespace plancast {

// The seed of a randomised test: `usual`, so that a run repeats, unless the
// environment says another. To try many:
//   for seed in $(seq 100); do PLANCAST_TEST_SEED=$seed bazel-bin/tests/...; done
inline uint64_t TestSeed(uint64_t usual) {
  const char* wanted = std::getenv("PLANCAST_TEST_SEED");
  const uint64_t seed = wanted == nullptr ? usual : std::strtoull(wanted, nullptr, 10);
  std::cout << "PLANCAST_TEST_SEED=" << seed << "\n";
  return seed;
}

}  // namespace plancast

#endif  // PLANCAST_TESTS_TESTING_SEED_H_
