#include "collectives/nccl/double_tree.h"

#include <vector>

#include "gtest/gtest.h"

namespace plancast {
namespace {

int Depth(const std::vector<TreePlace>& tree, int member) {
  int depth = 0;
  for (; tree[member].up >= 0 && depth <= static_cast<int>(tree.size()); ++depth) {
    member = tree[member].up;
  }
  return depth;
}

TEST(DoubleTreeTest, BothSpanAndHalveTheWork) {
  for (int members = 2; members <= 130; ++members) {
    std::vector<TreePlace> trees[2];
    for (int m = 0; m < members; ++m) {
      const auto places = DoubleTree(members, m);
      trees[0].push_back(places[0]);
      trees[1].push_back(places[1]);
    }
    int log2_up = 0;
    while ((1 << log2_up) < members) ++log2_up;
    std::vector<int> inner(members, 0), children(members, 0);
    for (const std::vector<TreePlace>& tree : trees) {
      int roots = 0;
      for (int m = 0; m < members; ++m) {
        roots += tree[m].up < 0;
        EXPECT_LE(Depth(tree, m), log2_up) << members << " members";
        for (int child = 0; child < 2; ++child) {
          const int down = tree[m].down[child];
          if (down < 0) continue;
          ++children[m];
          EXPECT_EQ(tree[down].up, m);
          EXPECT_EQ(tree[down].child, child);
        }
        inner[m] += tree[m].down[0] >= 0 || tree[m].down[1] >= 0;
      }
      EXPECT_EQ(roots, 1);
    }
    int both = 0;
    for (int m = 0; m < members; ++m) {
      EXPECT_LE(children[m], members % 2 == 0 ? 2 : 3);
      EXPECT_GE(inner[m], 1) << "a leaf in both of " << members;
      both += inner[m] == 2;
    }
    EXPECT_EQ(both, members % 2) << members << " members";
  }
}

}  // namespace
}  // namespace plancast
