#ifndef PLANCAST_BASE_DIVISORS_H_
#define PLANCAST_BASE_DIVISORS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace plancast {

// "1, 2, 4, 8": the divisors of n that `works` accepts, at most 16 of them.
template <typename Works>
std::string Divisors(int64_t n, const Works& works) {
  std::vector<std::string> sizes;
  for (int64_t size = 1; size <= n && size <= 100'000; ++size) {
    if (n % size != 0 || !works(size)) continue;
    if (sizes.size() == 16) {
      sizes.push_back("and more");
      break;
    }
    sizes.push_back(absl::StrCat(size));
  }
  return absl::StrJoin(sizes, ", ");
}

inline std::string Divisors(int64_t n) {
  return Divisors(n, [](int64_t) { return true; });
}

}  // namespace plancast

#endif  // PLANCAST_BASE_DIVISORS_H_
