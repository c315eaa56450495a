#ifndef PLANCAST_COMPILER_BODY_PLACE_H_
#define PLANCAST_COMPILER_BODY_PLACE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "graph/layout/layout.h"

namespace plancast {

// The ranks that run an op which nodes put on some of them: (mesh axis, coordinate) each.
using OnRanksOf = std::vector<std::pair<int, int32_t>>;

// Where a program runs, in a plan with nodes on some ranks: its coordinate along every mesh axis
// that they name, -1 along the others, which all its devices share. Empty: nodes are everywhere.
struct Place {
  std::vector<int32_t> at;  // by mesh axis

  bool empty() const { return at.empty(); }
  bool Runs(const OnRanksOf& on) const;
  // Whether its devices hold something of a tensor with this layout.
  bool Holds(const Layout& layout) const;
  // The same along the axes that are not in `axes`: who takes part in what goes on over these.
  bool HoldsBeside(const Layout& layout, const std::vector<int>& axes) const;
  std::string DebugString() const;  // `0,-,1`

  friend bool operator==(const Place& a, const Place& b) { return a.at == b.at; }
};

}  // namespace plancast

#endif  // PLANCAST_COMPILER_BODY_PLACE_H_
