#include "cluster/topology/system_element.h"

#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

TEST(SystemElementTest, AttributesAreOverwrittenInPlace) {
  SystemElement element;
  element.Set("a", "1");
  element.Set("b", "2");
  element.Set("a", "3");
  EXPECT_EQ(element.attributes.size(), 2u);
  EXPECT_EQ(*element.Find("a"), "3");
  EXPECT_EQ(element.Find("c"), nullptr);
}

TEST(SystemElementTest, OrderOfAttributesIsNoDifference) {
  SystemElement a, b;
  a.Set("x", "1");
  a.Set("y", "2");
  b.Set("y", "2");
  b.Set("x", "1");
  b.line = 7;
  EXPECT_EQ(a, b);
  b.Add("pci");
  EXPECT_NE(a, b);
}

TEST(SystemElementTest, NumbersAreDecimalOrHexadecimal) {
  SystemElement element;
  element.name = "net";
  element.line = 12;
  element.Set("dev", "12");
  element.Set("guid", "0x1f");
  element.Set("name", "mlx5_0");
  EXPECT_THAT(element.Integer("dev"), IsOkAndHolds(12));
  EXPECT_THAT(element.Integer("guid"), IsOkAndHolds(31));
  EXPECT_THAT(element.Integer("speed", 5), IsOkAndHolds(5));
  EXPECT_THAT(element.Integer("name"), StatusIs(absl::StatusCode::kInvalidArgument,
                                                HasSubstr("<net> of line 12: name=\"mlx5_0\"")));
  EXPECT_THAT(element.Integer("speed"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("has no `speed`")));
  element.Set("latency", "nan");
  EXPECT_FALSE(element.Number("latency", 0).ok());
}

}  // namespace
}  // namespace plancast
