#include "collectives/programs/double_tree.h"

namespace plancast {

TreeNode BinaryTreeNode(int32_t n, int32_t rank) {
  TreeNode node;
  if (rank == 0) {
    int32_t half = 1;
    while (half * 2 < n) half *= 2;
    if (n > 1) node.down[0] = half;
    return node;
  }
  const int32_t bit = rank & -rank;
  const int64_t up = (int64_t{rank} ^ bit) | (int64_t{bit} << 1);
  node.up = up < n ? static_cast<int32_t>(up) : rank ^ bit;
  if (bit == 1) return node;
  node.down[0] = rank - bit / 2;
  for (int32_t offset = bit / 2; offset > 0; offset /= 2) {
    if (rank + offset >= n) continue;
    node.down[1] = rank + offset;
    break;
  }
  return node;
}

TreeNode SecondTreeNode(int32_t n, int32_t rank) {
  const auto mirror = [n](int32_t r) { return r < 0 ? r : n - 1 - r; };
  const auto back = [n](int32_t r) { return r < 0 ? r : (r + 1) % n; };
  const bool even = n % 2 == 0;
  TreeNode node = BinaryTreeNode(n, even ? mirror(rank) : (rank - 1 + n) % n);
  for (int32_t* r : {&node.up, &node.down[0], &node.down[1]}) *r = even ? mirror(*r) : back(*r);
  return node;
}

}  // namespace plancast
