#include "tests/testing/status_matchers.h"

#include <memory>

namespace plancast {
namespace {

using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pointee;

absl::StatusOr<int> Eight() { return 8; }
absl::StatusOr<int> Failed() { return absl::NotFoundError("no `x`"); }

TEST(StatusMatchersTest, IsOkTakesStatusAndStatusOr) {
  EXPECT_OK(absl::OkStatus());
  EXPECT_OK(Eight());
  EXPECT_THAT(Failed(), Not(IsOk()));
}

TEST(StatusMatchersTest, IsOkAndHoldsMatchesTheValue) {
  EXPECT_THAT(Eight(), IsOkAndHolds(8));
  EXPECT_THAT(Eight(), IsOkAndHolds(Gt(7)));
  EXPECT_THAT(Eight(), Not(IsOkAndHolds(7)));
  EXPECT_THAT(Failed(), Not(IsOkAndHolds(8)));
}

TEST(StatusMatchersTest, StatusIsMatchesCodeAndMessage) {
  EXPECT_THAT(Failed(), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(Failed(), StatusIs(absl::StatusCode::kNotFound, HasSubstr("`x`")));
  EXPECT_THAT(Failed(), Not(StatusIs(absl::StatusCode::kNotFound, HasSubstr("`y`"))));
  EXPECT_THAT(Eight(), StatusIs(absl::StatusCode::kOk));
}

TEST(StatusMatchersTest, AssignsMoveOnlyValues) {
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<int> pointer,
                       absl::StatusOr<std::unique_ptr<int>>(std::make_unique<int>(3)));
  EXPECT_THAT(pointer, Pointee(3));
}

}  // namespace
}  // namespace plancast
