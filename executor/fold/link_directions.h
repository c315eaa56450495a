#ifndef PLANCAST_EXECUTOR_FOLD_LINK_DIRECTIONS_H_
#define PLANCAST_EXECUTOR_FOLD_LINK_DIRECTIONS_H_

#include <cstdint>

#include "cluster/machine.h"

namespace plancast {

// Directions of a link. A link that no one-way message crosses needs one
// resource, since both directions carry the same; a half-duplex link has one
// that carries the sum.
struct LinkDirections {
  bool separate = false;  // sending and receiving load different resources
  int both_ways = 1;      // times that a collective loads the first resource
};
LinkDirections DirectionsOf(const Machine& machine, int link_class, bool one_way);

// Bytes a second of a link of this class, scaled.
int64_t LinkCapacity(const Machine& machine, int link_class, double scale);

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_FOLD_LINK_DIRECTIONS_H_
