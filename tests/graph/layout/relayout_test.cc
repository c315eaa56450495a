#include "graph/layout/relayout.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

const Placement kR = Placement::Replicate(), kP = Placement::Partial(), kS0 = Placement::Shard(0),
                kS1 = Placement::Shard(1);

DeviceMesh Mesh() { return *DeviceMesh::Create({{"dp", 2}, {"tp", 4}}); }

std::string Plan(const Layout& source, const Layout& target,
                 const std::vector<int64_t>& shape = {64, 32}) {
  absl::StatusOr<Relayout> plan = PlanRelayout(Mesh(), shape, source, target);
  return plan.ok() ? plan->DebugString(Mesh()) : std::string(plan.status().message());
}

TEST(RelayoutTest, OneAxis) {
  EXPECT_EQ(Plan({{kR, kS0}}, {{kR, kR}}), "all_gather(tp) 2048");
  EXPECT_EQ(Plan({{kR, kP}}, {{kR, kR}}), "all_reduce(tp) 2048");
  EXPECT_EQ(Plan({{kR, kP}}, {{kR, kS1}}), "reduce_scatter(tp) 2048");
  EXPECT_EQ(Plan({{kR, kS0}}, {{kR, kS1}}), "all_to_all(tp) 512");
  EXPECT_EQ(Plan({{kR, kR}}, {{kR, kS1}}), "local(tp)");
  EXPECT_EQ(Plan({{kR, kR}}, {{kR, kP}}), "local(tp)");
  EXPECT_EQ(Plan({{kR, kS0}}, {{kR, kP}}), "local(tp)");
  EXPECT_EQ(Plan({{kR, kS0}}, {{kR, kS0}}), "");
}

TEST(RelayoutTest, OneCoordinateHoldsAll) {
  const Placement on0 = Placement::On(0), on2 = Placement::On(2);
  EXPECT_EQ(Plan({{kR, kS0}}, {{kR, on2}}), "gather(tp) 2048");
  EXPECT_EQ(Plan({{kR, on2}}, {{kR, kS0}}), "scatter(tp) 2048");
  EXPECT_EQ(Plan({{kR, on2}}, {{kR, kR}}), "broadcast(tp) 2048");
  EXPECT_EQ(Plan({{kR, kP}}, {{kR, on2}}), "reduce(tp) 2048");
  EXPECT_EQ(Plan({{kR, on0}}, {{kR, on2}}), "permute(tp) 2048");
  EXPECT_EQ(Plan({{kR, kR}}, {{kR, on2}}), "local(tp)");
  EXPECT_EQ(Plan({{kR, on2}}, {{kR, kP}}), "local(tp)");
  EXPECT_EQ(Plan({{kS0, kS1}}, {{kS0, on2}}), "gather(tp) 1024");
  EXPECT_THAT(Plan({{kR, Placement::On(4)}}, {{kR, kR}}),
              HasSubstr("on coordinate 4 of axis `tp`, which has 4"));
}

TEST(RelayoutTest, WorksOnTheShardOfOtherAxes) {
  EXPECT_EQ(Plan({{kS0, kP}}, {{kS0, kR}}), "all_reduce(tp) 1024");
  EXPECT_EQ(Plan({{kS0, kS1}}, {{kS0, kR}}), "all_gather(tp) 1024");
}

TEST(RelayoutTest, AxesWithOneNeedShareACollective) {
  EXPECT_EQ(Plan({{kP, kP}}, {{kR, kR}}), "all_reduce(dp,tp) 2048");
  EXPECT_EQ(Plan({{kS0, kS0}}, {{kR, kR}}), "all_gather(dp,tp) 2048");
  EXPECT_EQ(Plan({{kP, kP}}, {{kS0, kS0}}), "reduce_scatter(dp,tp) 2048");
  EXPECT_EQ(Plan({{kS0, kS0}}, {{kS1, kS1}}), "all_to_all(dp,tp) 256");
  EXPECT_EQ(Plan({{kR, kR}}, {{kS0, kS1}}), "local(dp,tp)");
}

TEST(RelayoutTest, SubAxesGatherTheInnerPartFirst) {
  const DeviceMesh mesh = *Mesh().Subdivide(1, {2, 2});
  EXPECT_EQ(PlanRelayout(mesh, {64}, {{kR, kS0, kS0}}, {{kR, kS0, kR}})->DebugString(mesh),
            "all_gather(tp.1) 32");
}

TEST(RelayoutTest, HalosComeFromTheNeighbours) {
  const Placement halo = Placement::Shard(0, ShardPattern::kBlock, {1, 2});
  const Placement wider = Placement::Shard(0, ShardPattern::kBlock, {2, 2});
  // Three rows of 32 for a device inside.
  EXPECT_EQ(Plan({{kR, kS0}}, {{kR, halo}}), "permute(tp) 96");
  EXPECT_EQ(Plan({{kR, halo}}, {{kR, wider}}), "permute(tp) 32");
  EXPECT_EQ(Plan({{kR, wider}}, {{kR, halo}}), "local(tp)");
  EXPECT_EQ(Plan({{kR, halo}}, {{kR, kS0}}), "local(tp)");
  EXPECT_EQ(Plan({{kR, kR}}, {{kR, halo}}), "local(tp)");
  EXPECT_EQ(Plan({{kR, kP}}, {{kR, halo}}), "reduce_scatter(tp) 2048\npermute(tp) 96");
  EXPECT_EQ(Plan({{kS1, kS0}}, {{kS1, halo}}), "permute(tp) 48");
  EXPECT_EQ(Plan({{kS0, kS0}}, {{halo, halo}}), "permute(dp,tp) 96");
  EXPECT_THAT(Plan({{kR, kR}}, {{kS0, halo}}), HasSubstr("one dim has one pattern and halo"));
}

// The order of the axes says that dp is the major one; without it the pieces
// of tp are out of order and go directly where they belong.
TEST(RelayoutTest, OutOfOrderShardsGoDirectly) {
  absl::StatusOr<Relayout> plan = PlanRelayout(Mesh(), {64}, {{kS0, kS0}}, {{kR, kS0}});
  ASSERT_TRUE(plan.ok());
  ASSERT_EQ(plan->steps.size(), 1u);
  EXPECT_EQ(plan->steps[0].kind, CollectiveKind::kAllToAll);
  EXPECT_EQ(plan->received(), 16);
}

TEST(RelayoutTest, EqualPartsAreAPermutation) {
  const DeviceMesh mesh = *DeviceMesh::Create({{"x", 2}, {"y", 2}});
  EXPECT_EQ(PlanRelayout(mesh, {8, 8}, {{kS0, kS1}}, {{kS1, kS0}})->DebugString(mesh),
            "permute(x,y) 16");
  // A change of pattern: half of each part stays.
  const Placement mirrored = Placement::Shard(0, ShardPattern::kMirrored);
  EXPECT_EQ(PlanRelayout(mesh, {8}, {{kR, kS0}}, {{kR, mirrored}})->received(), 2);
}

TEST(RelayoutTest, UnevenSizesCountTheLargestShard) {
  EXPECT_EQ(Plan({{kR, kS0}}, {{kR, kR}}, {10}), "all_gather(tp) 10");
  EXPECT_EQ(Plan({{kR, kP}}, {{kR, kS0}}, {10}), "reduce_scatter(tp) 10");
}

TEST(RelayoutTest, AxesOfSizeOneCostNothing) {
  const DeviceMesh mesh = *DeviceMesh::Create({{"dp", 1}, {"tp", 4}});
  EXPECT_TRUE(PlanRelayout(mesh, {8}, {{kP, kR}}, {{kR, kR}})->steps.empty());
}

TEST(RelayoutTest, LargeMeshesArePlannedToo) {
  const DeviceMesh mesh =
      *DeviceMesh::Create({{"pp", 16}, {"dp", 1024}, {"cp", 8}, {"ep", 4}, {"tp", 8}});
  absl::StatusOr<Relayout> plan =
      PlanRelayout(mesh, {1 << 20, 1 << 14}, {{kR, kP, kS0, kS1, kS0}}, {{kR, kS0, kS1, kR, kR}});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->steps.back().after, plan->target);
}

TEST(RelayoutTest, RejectsLayoutsThatDoNotFit) {
  EXPECT_THAT(Plan({{kR, Placement::Shard(2)}}, {{kR, kR}}),
              HasSubstr("source layout: axis `tp` shards dim 2 of a tensor with 2 dims"));
  EXPECT_THAT(Plan({{kR, kR}}, {{kR}}), HasSubstr("target layout: a layout of 1 placements"));
}

}  // namespace
}  // namespace plancast
