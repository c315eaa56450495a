#include "collectives/nccl/double_tree.h"

namespace plancast {
namespace {

// Members by their lowest set bit: odd numbers are leaves, and member 0 the root.
TreePlace InTree(int members, int member) {
  TreePlace place;
  int bit = 1;
  while (bit < members && (bit & member) == 0) bit <<= 1;
  if (member == 0) {
    if (members > 1) place.down[1] = bit >> 1;
    return place;
  }
  place.up = (member ^ bit) | (bit << 1);
  if (place.up >= members) place.up = member ^ bit;
  place.child = member < place.up ? 0 : 1;
  int half = bit >> 1;
  if (half == 0) return place;
  place.down[0] = member - half;
  while (half > 0 && member + half >= members) half >>= 1;
  if (half > 0) place.down[1] = member + half;
  return place;
}

template <typename Rename>
TreePlace Renamed(TreePlace place, const Rename& rename) {
  for (int* other : {&place.up, &place.down[0], &place.down[1]}) {
    if (*other >= 0) *other = rename(*other);
  }
  return place;
}

}  // namespace

std::array<TreePlace, 2> DoubleTree(int members, int member) {
  const TreePlace first = InTree(members, member);
  if (members % 2 == 0) {
    auto mirror = [members](int other) { return members - 1 - other; };
    return {first, Renamed(InTree(members, mirror(member)), mirror)};
  }
  auto behind = [members](int other) { return (other + 1) % members; };
  return {first, Renamed(InTree(members, (member - 1 + members) % members), behind)};
}

}  // namespace plancast
