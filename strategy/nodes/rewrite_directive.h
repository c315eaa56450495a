#ifndef PLANCAST_STRATEGY_NODES_REWRITE_DIRECTIVE_H_
#define PLANCAST_STRATEGY_NODES_REWRITE_DIRECTIVE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/collective_kind.h"

namespace plancast {

// One way to change a program and not what it computes (CoCoNet, ASPLOS'22), said at the node of
// the op whose result is communicated:
//   split(all_reduce)                        a reduce-scatter and an all-gather in its place
//   split(all_reduce, along: i)              of parts of this dim; else the first that divides
//   reorder(all_gather, past: OPS)           ops work on the parts; what they make is gathered
//   fuse(OPS with COMMS)                     one kernel that computes on what comes and goes
//   overlap(OP, COMM, pieces: N)             a product leaves, or is fed, piece by piece
//   overlap(OP, COMM, pieces: tuned)         N as a simulation finds it best
struct Rewrite {
  enum class Kind : uint8_t { kSplit, kReorder, kFuse, kOverlap };
  Kind kind = Kind::kSplit;
  std::vector<CollectiveKind> comms;
  std::vector<std::string> ops;
  std::string along;   // of a split: a dim of the model, or `.f`; empty: the first that divides
  int64_t pieces = 0;  // of an overlap; 0: tuned

  bool tuned() const { return kind == Kind::kOverlap && pieces == 0; }
  std::string DebugString() const;  // as it is written

  friend bool operator==(const Rewrite& a, const Rewrite& b) {
    return a.DebugString() == b.DebugString();
  }
};

std::string DebugString(const std::vector<Rewrite>& rewrites);  // `split(all_reduce); ...`

// Errors: another name, collectives that do not exist or that it cannot be said of, pieces below 1.
absl::StatusOr<Rewrite> ParseRewrite(absl::string_view text);

}  // namespace plancast

#endif  // PLANCAST_STRATEGY_NODES_REWRITE_DIRECTIVE_H_
