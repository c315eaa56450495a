#ifndef PLANCAST_STRATEGY_NODES_LOOP_DIRECTIVE_H_
#define PLANCAST_STRATEGY_NODES_LOOP_DIRECTIVE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace plancast {

// What a node says of how its ops take in tensors that other devices hold a part of each: not whole
// before they begin, but part by part in a loop over a factor of the op's rule.
struct LoopDirective {
  // By tensor of the rule the factor in whose loop its parts are fetched; `*`: all that are
  // gathered along it.
  std::map<std::string, std::string> communicate;
  // By such a factor the mesh axes along which parts are handed from neighbour to neighbour; others
  // are sent by who holds them to all.
  std::map<std::string, std::vector<std::string>> rotate;
  // By such a factor in how many parts each device does what it has of it, in place of a part for
  // each rank: the collectives before and behind the op are cut in as many.
  std::map<std::string, int64_t> pieces;

  static constexpr char kAll[] = "*";

  bool empty() const { return communicate.empty() && rotate.empty() && pieces.empty(); }
  // OK unless it turns a loop, or cuts one in pieces, in which nothing is fetched, or names an axis
  // that nothing is cut over. What is said to be turned or cut and not what is fetched there is
  // made to fetch all.
  absl::Status Settle();
  std::string DebugString() const;  // `k, v at t; t over cp`

  friend bool operator==(const LoopDirective& a, const LoopDirective& b) {
    return a.communicate == b.communicate && a.rotate == b.rotate && a.pieces == b.pieces;
  }
};

}  // namespace plancast

#endif  // PLANCAST_STRATEGY_NODES_LOOP_DIRECTIVE_H_
