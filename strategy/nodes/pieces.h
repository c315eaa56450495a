#ifndef PLANCAST_STRATEGY_NODES_PIECES_H_
#define PLANCAST_STRATEGY_NODES_PIECES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace plancast {

// What a node says of running in smaller pieces than what is around it: for each piece of that,
// so many of its own, of which a number has gone forward and not yet back.
struct PiecesDirective {
  int64_t micro_batches = 0;         // 0: nothing is said
  std::vector<int64_t> max_ongoing;  // empty: all pieces

  bool empty() const { return micro_batches == 0 && max_ongoing.empty(); }
  // OK if it can be said below the root: counts above 0, and `max_ongoing` one of the pieces.
  absl::Status Check() const;
  std::string DebugString() const;  // `8`, or `8, 1 at once`

  friend bool operator==(const PiecesDirective& a, const PiecesDirective& b) {
    return a.micro_batches == b.micro_batches && a.max_ongoing == b.max_ongoing;
  }
};

}  // namespace plancast

#endif  // PLANCAST_STRATEGY_NODES_PIECES_H_
