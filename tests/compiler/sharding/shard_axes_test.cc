#include "compiler/sharding/shard_axes.h"

#include <vector>

#include "compiler/bind/plan_mesh.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using Axes = std::vector<int>;

// Sixteen dp ranks in parts of 2, 2 and 4, beside tp.
DeviceMesh Mesh() {
  absl::StatusOr<DeviceMesh> mesh = DeviceMesh::Create({{"pp", 1}, {"dp", 16}, {"tp", 2}});
  EXPECT_OK(mesh.status());
  mesh = mesh->Subdivide(1, {2, 2, 4});
  EXPECT_OK(mesh.status());
  return *mesh;
}

PlanOptions Options(int64_t hsdp, int64_t reshard_ranks = 0) {
  PlanOptions options;
  options.dp = 16;
  options.zero = 3;
  options.hsdp = hsdp;
  options.reshard_ranks = reshard_ranks;
  return options;
}

TEST(ShardAxesTest, AllOfDpSharesUnlessThereAreReplicas) {
  const DeviceMesh mesh = Mesh();
  EXPECT_EQ(DataAxes(mesh), (Axes{1, 2, 3}));
  const ShardAxes all = ShardAxesOf(mesh, Options(0), DataAxes(mesh));
  EXPECT_EQ(all.shard, (Axes{1, 2, 3}));
  EXPECT_EQ(all.shards, 16);
  EXPECT_TRUE(all.replica.empty());
  const ShardAxes groups = ShardAxesOf(mesh, Options(8), DataAxes(mesh));
  EXPECT_EQ(groups.shard, (Axes{2, 3}));
  EXPECT_EQ(groups.shards, 8);
  EXPECT_EQ(groups.replica, Axes{1});
}

TEST(ShardAxesTest, TheInnermostRanksKeepPartsFromForwardToBackward) {
  const ShardAxes axes = ShardAxesOf(Mesh(), Options(8, 4), DataAxes(Mesh()));
  EXPECT_EQ(axes.secondary, Axes{3});
  EXPECT_EQ(axes.secondaries, 4);
}

// Experts cut over the inner four ranks have copies on the outer axes alone.
TEST(ShardAxesTest, WeightsThatAnAxisCutsShareOverTheRest) {
  const ShardAxes axes = ShardAxesOf(Mesh(), Options(8), {1, 2});
  EXPECT_EQ(axes.shard, Axes{2});
  EXPECT_EQ(axes.replica, Axes{1});
  EXPECT_EQ(axes.shards, 2);
}

}  // namespace
}  // namespace plancast
