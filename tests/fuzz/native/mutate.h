#ifndef PLANCAST_TESTS_FUZZ_NATIVE_MUTATE_H_
#define PLANCAST_TESTS_FUZZ_NATIVE_MUTATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/fuzz/native/target.h"

namespace plancast {

// Longest input that a case makes, bytes.
inline constexpr size_t kLongestInput = 1 << 20;

// The input of case `number`: one of the seeds with a few changes to its bytes or
// its structure. The same number gives the same input, whatever came before. The
// first cases are the seeds as they are.
std::string FuzzInput(const FuzzTarget& target, const std::vector<std::string>& seeds,
                      uint64_t number);

}  // namespace plancast

#endif  // PLANCAST_TESTS_FUZZ_NATIVE_MUTATE_H_
