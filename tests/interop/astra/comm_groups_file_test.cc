#include "interop/astra/comm_groups_file.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(CommGroupsFileTest, RanksInTheirOrder) {
  const auto groups = ReadCommGroups(R"({"0": [0, 1, 2], "1": [2, 0], "12": [1]})", "g.json");
  ASSERT_OK(groups);
  ASSERT_EQ(groups->size(), 2);
  EXPECT_THAT(groups->at(1), ElementsAre(2, 0));
  EXPECT_THAT(groups->at(12), ElementsAre(1));
}

TEST(CommGroupsFileTest, ErrorsNameTheGroup) {
  const auto error = [](const std::string& text) {
    return std::string(ReadCommGroups(text, "g.json").status().message());
  };
  EXPECT_THAT(error(R"({"dp": [0]})"), HasSubstr("g.json: group `dp` must be a number"));
  EXPECT_THAT(error(R"({"1": 3})"), HasSubstr("must list ranks"));
  EXPECT_THAT(error(R"({"1": [0, 0]})"), HasSubstr("different ranks"));
  EXPECT_THAT(error(R"({"1": [0.5]})"), HasSubstr("whole numbers"));
  EXPECT_THAT(error("[]"), HasSubstr("g.json"));
}

}  // namespace
}  // namespace plancast
