#ifndef PLANCAST_COLLECTIVES_PROGRAMS_DOUBLE_TREE_H_
#define PLANCAST_COLLECTIVES_PROGRAMS_DOUBLE_TREE_H_

#include <cstdint>
#include <vector>

namespace plancast {

// A rank's place in a binary tree; -1: none.
struct TreeNode {
  int32_t up = -1;
  int32_t down[2] = {-1, -1};
};

// The tree of bit patterns over n ranks (NCCL 2.4): rank 0 is the root, odd ranks
// are leaves. Of depth ceil(log2 n).
TreeNode BinaryTreeNode(int32_t n, int32_t rank);

// The second of two trees (n even: mirrored; odd: shifted by one), in which the
// leaves of the first are inner nodes. A rank has at most two children in both
// together.
TreeNode SecondTreeNode(int32_t n, int32_t rank);

// `tree` is 0 or 1.
inline TreeNode DoubleTreeNode(int32_t n, int32_t rank, int32_t tree) {
  return tree == 0 ? BinaryTreeNode(n, rank) : SecondTreeNode(n, rank);
}

}  // namespace plancast

#endif  // PLANCAST_COLLECTIVES_PROGRAMS_DOUBLE_TREE_H_
