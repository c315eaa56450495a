#include "executor/fold/link_directions.h"

#include <algorithm>
#include <cmath>

namespace plancast {

LinkDirections DirectionsOf(const Machine& machine, int link_class, bool one_way) {
  LinkDirections directions;
  if (machine.link_classes()[link_class].duplex) {
    directions.separate = one_way;
  } else {
    directions.both_ways = 2;
  }
  return directions;
}

int64_t LinkCapacity(const Machine& machine, int link_class, double scale) {
  const double capacity = machine.link_classes()[link_class].bytes_per_s * scale;
  return std::max<int64_t>(std::llround(capacity), 1);
}

}  // namespace plancast
