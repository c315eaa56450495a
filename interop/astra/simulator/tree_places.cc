#include "interop/astra/simulator/tree_places.h"

namespace plancast::astra {

TreePlace PlaceInTree(int64_t place, int64_t places, bool min_root) {
  // Below the root places count from 1, so that the lowest set bit is the height.
  const int64_t shift = min_root ? 0 : 1, root = min_root ? 0 : places - 1;
  const int64_t middle = places / 2;  // the root's only child
  TreePlace result;
  if (place == root) {
    (min_root ? result.right : result.left) = middle - shift;
    return result;
  }
  const int64_t position = place + shift, bit = position & -position;
  if (position == middle) {
    result.parent = root;
  } else {
    result.parent = ((position & (2 * bit)) != 0 ? position - bit : position + bit) - shift;
  }
  if (bit > 1) {
    result.left = position - bit / 2 - shift;
    result.right = position + bit / 2 - shift;
  }
  return result;
}

}  // namespace plancast::astra
