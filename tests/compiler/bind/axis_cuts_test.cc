#include "compiler/bind/axis_cuts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

DeviceMesh Mesh() { return *DeviceMesh::Create({{"dp", 6}, {"tp", 8}}); }

TEST(AxisCutsTest, NothingAskedForIsNothingCut) {
  ASSERT_OK_AND_ASSIGN(const DeviceMesh mesh, AxisCuts().Cut(Mesh()));
  EXPECT_EQ(mesh, Mesh());
}

TEST(AxisCutsTest, AnAxisIsCutWhereverOneAsks) {
  AxisCuts cuts;
  cuts.Add("tp", 4, "a");
  cuts.Add("tp", 2, "b");
  cuts.Add("tp", 4, "c");
  cuts.Add("dp", 3, "d");
  ASSERT_OK_AND_ASSIGN(const DeviceMesh mesh, cuts.Cut(Mesh()));
  EXPECT_EQ(mesh.DebugString(), "dp.0=2 dp.1=3 tp.0=2 tp.1=2 tp.2=2");
}

TEST(AxisCutsTest, ALevelIsTheAxesBetweenItsBlocks) {
  AxisCuts cuts;
  cuts.Add("tp", 4, "a");
  cuts.Add("tp", 2, "b");
  ASSERT_OK_AND_ASSIGN(const DeviceMesh mesh, cuts.Cut(Mesh()));
  const std::vector<int> tp = mesh.AxesOf("tp");  // 1, 2, 3
  EXPECT_THAT(AxesBetween(mesh, tp, 1, 8), ElementsAre(1, 2, 3));
  EXPECT_THAT(AxesBetween(mesh, tp, 2, 4), ElementsAre(1, 2));
  EXPECT_THAT(AxesBetween(mesh, tp, 1, 2), ElementsAre(3));
  EXPECT_THAT(AxesBetween(mesh, tp, 4, 2), ElementsAre(1));
  EXPECT_THAT(AxesBetween(mesh, tp, 8, 1), IsEmpty());
}

TEST(AxisCutsTest, AnAxisAskedForAsAWholeHasAnOuterPartOfOne) {
  AxisCuts cuts;
  cuts.Add("tp", 8, "a");
  ASSERT_OK_AND_ASSIGN(const DeviceMesh mesh, cuts.Cut(Mesh()));
  EXPECT_EQ(mesh.DebugString(), "dp=6 tp.0=1 tp.1=8");
  EXPECT_THAT(AxesBetween(mesh, mesh.AxesOf("tp"), 1, 8), ElementsAre(2));
}

TEST(AxisCutsTest, CutsThatDoNotNestNameWhoAsked) {
  AxisCuts cuts;
  cuts.Add("dp", 2, "`hsdp`");
  cuts.Add("dp", 3, "`layers.*`");
  EXPECT_THAT(cuts.Cut(Mesh()).status().message(),
              HasSubstr("axis `dp` of size 6 is cut into parts of 2 ranks by `hsdp` and into parts "
                        "of 3 by `layers.*`, and neither divides the other"));
}

TEST(AxisCutsTest, BlocksThatDoNotFillTheAxisAreRefused) {
  AxisCuts cuts;
  cuts.Add("tp", 3, "`layers.*`");
  EXPECT_THAT(cuts.Cut(Mesh()).status().message(), HasSubstr("into parts of 8 by the axis"));
}

}  // namespace
}  // namespace plancast
