#ifndef PLANCAST_INTEROP_ASTRA_SIMULATOR_TREE_PLACES_H_
#define PLANCAST_INTEROP_ASTRA_SIMULATOR_TREE_PLACES_H_

#include <cstdint>

namespace plancast::astra {

// A place in a binary tree over 2^k places in order: the root holds the largest
// place (or the smallest) and has the balanced tree of all others below it.
// -1: there is none.
struct TreePlace {
  int64_t parent = -1, left = -1, right = -1;
  bool root() const { return parent < 0; }
  bool leaf() const { return left < 0 && right < 0; }
};

TreePlace PlaceInTree(int64_t place, int64_t places, bool min_root);

}  // namespace plancast::astra

#endif  // PLANCAST_INTEROP_ASTRA_SIMULATOR_TREE_PLACES_H_
