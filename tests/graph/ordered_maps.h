#ifndef PLANCAST_TESTS_GRAPH_ORDERED_MAPS_H_
#define PLANCAST_TESTS_GRAPH_ORDERED_MAPS_H_

#include <algorithm>
#include <vector>

#include "graph/rule/op_rule.h"

namespace plancast {

// The index maps of a statement, each after those that fix what it reads.
inline std::vector<const Condition*> OrderedMaps(const Statement& s) {
  std::vector<const Condition*> ordered;
  std::vector<int> known;
  for (int f : s.factors) {
    if (MapOf(f, s.where) == nullptr) known.push_back(f);
  }
  auto is_known = [&](int f) { return std::find(known.begin(), known.end(), f) != known.end(); };
  for (bool grown = true; grown;) {
    grown = false;
    for (const Condition& c : s.where) {
      if (!c.is_map() || is_known(c.left)) continue;
      const std::vector<int> factors = c.Factors();
      if (!std::all_of(factors.begin() + 1, factors.end(), is_known)) continue;
      ordered.push_back(&c);
      known.push_back(c.left);
      grown = true;
    }
  }
  return ordered;
}

}  // namespace plancast

#endif  // PLANCAST_TESTS_GRAPH_ORDERED_MAPS_H_
