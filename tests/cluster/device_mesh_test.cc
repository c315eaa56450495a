#include "cluster/device_mesh.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

DeviceMesh Mesh() { return *DeviceMesh::Create({{"pp", 4}, {"dp", 2}, {"tp", 8}}); }

TEST(DeviceMeshTest, LastAxisVariesFastest) {
  const DeviceMesh mesh = Mesh();
  EXPECT_EQ(mesh.num_devices(), 64);
  EXPECT_EQ(mesh.stride(0), 16);
  EXPECT_EQ(mesh.stride(2), 1);
  EXPECT_EQ(mesh.Coordinate(16 * 3 + 8 + 5, 0), 3);
  EXPECT_EQ(mesh.Coordinate(16 * 3 + 8 + 5, 1), 1);
  EXPECT_EQ(mesh.Coordinate(16 * 3 + 8 + 5, 2), 5);
  EXPECT_EQ(mesh.DebugString(), "pp=4 dp=2 tp=8");
}

TEST(DeviceMeshTest, EmptyMeshIsOneDevice) {
  EXPECT_EQ(DeviceMesh::Create({})->num_devices(), 1);
  EXPECT_EQ(DeviceMesh().num_devices(), 1);
}

TEST(DeviceMeshTest, FindAxisSuggests) {
  EXPECT_EQ(*Mesh().FindAxis("dp"), 1);
  EXPECT_EQ(Mesh().FindAxis("tpp").status().message(),
            "no mesh axis `tpp`; the mesh has `pp` (4), `dp` (2), `tp` (8). Did you mean `tp`?");
}

TEST(DeviceMeshTest, SubdividesAnAxis) {
  absl::StatusOr<DeviceMesh> mesh = Mesh().Subdivide(2, {2, 4});
  ASSERT_TRUE(mesh.ok());
  EXPECT_EQ(mesh->DebugString(), "pp=4 dp=2 tp.0=2 tp.1=4");
  EXPECT_EQ(mesh->num_devices(), 64);
  EXPECT_THAT(mesh->AxesOf("tp"), ElementsAre(2, 3));
  EXPECT_THAT(mesh->AxesOf("dp"), ElementsAre(1));
  EXPECT_EQ(Mesh().Subdivide(2, {3, 2}).status().message(),
            "cannot cut axis `tp` of size 8 into 3 x 2; the product must be the size.");
  EXPECT_FALSE(Mesh().Subdivide(2, {0, 8}).ok());
  EXPECT_FALSE(Mesh().Subdivide(3, {1}).ok());
}

TEST(DeviceMeshTest, RejectsBadAxes) {
  EXPECT_THAT(std::string(DeviceMesh::Create({{"a", 2}, {"a", 2}}).status().message()),
              HasSubstr("`a` is there twice"));
  EXPECT_FALSE(DeviceMesh::Create({{"", 2}}).ok());
  EXPECT_FALSE(DeviceMesh::Create({{"a", 0}}).ok());
  EXPECT_FALSE(DeviceMesh::Create({{"a", -4}}).ok());
  EXPECT_THAT(std::string(DeviceMesh::Create({{"a", 1 << 20}, {"b", 1 << 20}}).status().message()),
              HasSubstr("more than 2^31"));
}

}  // namespace
}  // namespace plancast
