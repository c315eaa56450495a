#include "interop/astra/simulator/tree_places.h"

#include <set>

#include "gtest/gtest.h"

namespace plancast::astra {
namespace {

TEST(TreePlacesTest, TreesOfEight) {
  const TreePlace root = PlaceInTree(7, 8, /*min_root=*/false);
  EXPECT_TRUE(root.root());
  EXPECT_EQ(root.left, 3);
  EXPECT_EQ(root.right, -1);
  const TreePlace middle = PlaceInTree(3, 8, false);
  EXPECT_EQ(middle.parent, 7);
  EXPECT_EQ(middle.left, 1);
  EXPECT_EQ(middle.right, 5);
  EXPECT_TRUE(PlaceInTree(0, 8, false).leaf());
  EXPECT_EQ(PlaceInTree(0, 8, true).right, 4);
}

TEST(TreePlacesTest, ParentsAndChildrenAgreeAndTheTreeSpans) {
  for (const bool min_root : {false, true}) {
    for (int64_t n = 2; n <= 256; n *= 2) {
      int roots = 0;
      for (int64_t place = 0; place < n; ++place) {
        const TreePlace at = PlaceInTree(place, n, min_root);
        roots += at.root();
        for (const int64_t child : {at.left, at.right}) {
          if (child < 0) continue;
          EXPECT_EQ(PlaceInTree(child, n, min_root).parent, place) << n;
        }
        int64_t up = place;
        for (int steps = 0; steps < 10 && !PlaceInTree(up, n, min_root).root(); ++steps) {
          up = PlaceInTree(up, n, min_root).parent;
        }
        EXPECT_EQ(up, min_root ? 0 : n - 1) << place << " of " << n;
      }
      EXPECT_EQ(roots, 1);
    }
  }
}

}  // namespace
}  // namespace plancast::astra
