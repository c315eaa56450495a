#include "graph/layout/layout.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

DeviceMesh Mesh() { return *DeviceMesh::Create({{"dp", 2}, {"cp", 2}, {"tp", 4}}); }

TEST(LayoutTest, PrintsWhatIsNotReplicated) {
  EXPECT_EQ(Layout::Replicated(3).DebugString(Mesh()), "[]");
  const Layout layout = {{Placement::Shard(0), Placement::Shard(1, ShardPattern::kMirrored),
                          Placement::Partial(Reduction::kMax)}};
  EXPECT_EQ(layout.DebugString(Mesh()), "[dp: Shard(0), cp: Shard(1, mirrored), tp: Partial(max)]");
  EXPECT_TRUE(layout.has_partial());
}

TEST(LayoutTest, LocalShapeRoundsUp) {
  const Layout layout = {{Placement::Shard(0), Placement::Replicate(), Placement::Shard(0)}};
  EXPECT_EQ(layout.ShardCount(Mesh(), 0), 8);
  EXPECT_EQ(layout.ShardCount(Mesh(), 1), 1);
  EXPECT_EQ(layout.ShardCount(Mesh()), 8);
  EXPECT_THAT(layout.LocalShape(Mesh(), {20, 6}), ElementsAre(3, 6));
  const Placement mirrored = Placement::Shard(0, ShardPattern::kMirrored);
  EXPECT_THAT((Layout{{mirrored, Placement(), Placement()}}.LocalShape(Mesh(), {10})),
              ElementsAre(6));
}

TEST(LayoutTest, VerifyNamesAxisAndDim) {
  const Layout outside = {{Placement(), Placement(), Placement::Shard(2)}};
  EXPECT_THAT(std::string(outside.Verify(Mesh(), 2).message()),
              HasSubstr("axis `tp` shards dim 2 of a tensor with 2 dims"));
  EXPECT_FALSE((Layout{{Placement()}}.Verify(Mesh(), 2).ok()));
  const Layout mixed = {
      {Placement::Shard(0), Placement(), Placement::Shard(0, ShardPattern::kMirrored)}};
  EXPECT_THAT(std::string(mixed.Verify(Mesh(), 2).message()),
              HasSubstr("axes `dp` and `tp` shard dim 0 in different patterns"));
  EXPECT_TRUE(Layout::Replicated(3).Verify(Mesh(), 0).ok());
}

}  // namespace
}  // namespace plancast
