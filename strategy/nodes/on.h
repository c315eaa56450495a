#ifndef PLANCAST_STRATEGY_NODES_ON_H_
#define PLANCAST_STRATEGY_NODES_ON_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace plancast {

// What a node says of the ranks of one mesh axis that run it: the axis is cut into `parts` equal
// parts, and part `part` runs the ops below the node; the others do not.
struct OnDirective {
  std::string axis;
  int64_t part = 0;
  int64_t parts = 0;  // 0: as many as the axis has ranks

  friend bool operator==(const OnDirective& a, const OnDirective& b) {
    return a.axis == b.axis && a.part == b.part && a.parts == b.parts;
  }
};

// `3`, one rank; `1/2`, the second half. Errors: other words, parts that there are not.
absl::StatusOr<OnDirective> ParseOn(absl::string_view axis, absl::string_view text);
std::string PrintOn(const OnDirective& on);

// How many ranks of an axis of this size run the node, and the first of them. Errors: an axis
// without so many ranks, or that does not divide.
struct OnRanks {
  int64_t first = 0, count = 1;
};
absl::StatusOr<OnRanks> RanksOf(const OnDirective& on, int64_t size);

}  // namespace plancast

#endif  // PLANCAST_STRATEGY_NODES_ON_H_
