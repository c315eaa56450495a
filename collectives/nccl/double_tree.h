#ifndef PLANCAST_COLLECTIVES_NCCL_DOUBLE_TREE_H_
#define PLANCAST_COLLECTIVES_NCCL_DOUBLE_TREE_H_

#include <array>

namespace plancast {

// A member's place in a binary tree; -1: nobody.
struct TreePlace {
  int up = -1;
  std::array<int, 2> down = {-1, -1};
  int child = 0;  // which child of its parent it is
};

// NCCL's pair of trees over `members`, each with half of the data: every member is a
// leaf in one of them at least (but one where their number is odd). The second is the
// first in the mirror, or shifted by one where the number is odd.
std::array<TreePlace, 2> DoubleTree(int members, int member);

}  // namespace plancast

#endif  // PLANCAST_COLLECTIVES_NCCL_DOUBLE_TREE_H_
