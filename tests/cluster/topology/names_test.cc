#include <string>

#include "cluster/topology/nccl_version.h"
#include "cluster/topology/path_type.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace plancast {
namespace {

TEST(PathTypeTest, NamesAreReadBack) {
  for (int i = 0; i <= static_cast<int>(PathType::kDis); ++i) {
    PathType type = PathType::kDis;
    EXPECT_TRUE(ParsePathType(PathTypeName(static_cast<PathType>(i)), &type));
    EXPECT_EQ(static_cast<int>(type), i);
  }
  PathType type = PathType::kLoc;
  EXPECT_FALSE(ParsePathType("QPI", &type));
}

TEST(NcclVersionTest, OtherReleasesBehaveAsTheLatestKnownBefore) {
  EXPECT_EQ(*ParseNcclVersion("2.17.1"), NcclVersion::k2_17);
  EXPECT_EQ(*ParseNcclVersion("2.21.5"), NcclVersion::k2_17);
  EXPECT_EQ(*ParseNcclVersion("2.27"), NcclVersion::k2_27);
  EXPECT_EQ(*ParseNcclVersion("2.29.2"), NcclVersion::k2_27);
  EXPECT_EQ(*ParseNcclVersion("2.30"), NcclVersion::k2_30);
  for (const NcclVersion version : {NcclVersion::k2_17, NcclVersion::k2_27, NcclVersion::k2_30}) {
    EXPECT_EQ(*ParseNcclVersion(NcclVersionName(version)), version);
  }
}

TEST(NcclVersionTest, OtherTextIsRefused) {
  for (const char* text : {"", "2", "3.1", "2.x", "2.17.", "two", "2.-1", "2.1.2.3"}) {
    const auto version = ParseNcclVersion(text);
    ASSERT_FALSE(version.ok()) << text;
    EXPECT_THAT(std::string(version.status().message()), testing::HasSubstr(text));
  }
}

}  // namespace
}  // namespace plancast
