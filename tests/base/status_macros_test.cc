#include "base/status_macros.h"

#include <memory>
#include <string>
#include <utility>

#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

absl::StatusOr<int> Positive(int x) {
  if (x <= 0) return absl::InvalidArgumentError(absl::StrCat(x, " is not positive"));
  return x;
}

absl::Status Verify(int x) {
  RETURN_IF_ERROR(Positive(x).status());
  return absl::OkStatus();
}

TEST(ReturnIfErrorTest, PassesTheStatusOn) {
  EXPECT_OK(Verify(1));
  EXPECT_THAT(Verify(-1), StatusIs(kInvalid, "-1 is not positive"));
}

absl::StatusOr<std::string> VerifyAt(int layer) {
  RETURN_IF_ERROR(Verify(layer)) << "layer " << layer;
  return "fine";
}

TEST(ReturnIfErrorTest, PutsThePlaceBeforeTheMessage) {
  EXPECT_THAT(VerifyAt(1), IsOkAndHolds("fine"));
  EXPECT_THAT(VerifyAt(0), StatusIs(kInvalid, "layer 0: 0 is not positive"));
}

absl::Status Branch(bool verify, int x) {
  if (verify)
    RETURN_IF_ERROR(Verify(x));
  else
    return absl::InternalError("else");
  return absl::OkStatus();
}

TEST(ReturnIfErrorTest, DoesNotStealAnElse) {
  EXPECT_OK(Branch(true, 1));
  EXPECT_THAT(Branch(true, 0), StatusIs(kInvalid));
  EXPECT_THAT(Branch(false, 1), StatusIs(absl::StatusCode::kInternal));
}

TEST(ReturnIfErrorTest, KeepsPayloads) {
  absl::Status original = absl::InternalError("inner");
  original.SetPayload("url", absl::Cord("payload"));
  const absl::Status placed = StatusBuilder(original) << "outer";
  EXPECT_EQ(placed.message(), "outer: inner");
  EXPECT_EQ(placed.GetPayload("url"), absl::Cord("payload"));
}

absl::StatusOr<int> Sum(int a, int b) {
  ASSIGN_OR_RETURN(const int x, Positive(a));
  ASSIGN_OR_RETURN(int y, Positive(b), _ << "second of " << 2);
  return x + y;
}

TEST(AssignOrReturnTest, AssignsOrReturns) {
  EXPECT_THAT(Sum(1, 2), IsOkAndHolds(3));
  EXPECT_THAT(Sum(0, 2), StatusIs(kInvalid, "0 is not positive"));
  EXPECT_THAT(Sum(1, -2), StatusIs(kInvalid, "second of 2: -2 is not positive"));
}

absl::StatusOr<int> SumOfPair(absl::StatusOr<std::pair<int, int>> pair) {
  ASSIGN_OR_RETURN((const auto [a, b]), pair);
  return a + b;
}

TEST(AssignOrReturnTest, UnpacksParenthesisedBindings) {
  EXPECT_THAT(SumOfPair(std::pair(1, 2)), IsOkAndHolds(3));
  EXPECT_THAT(SumOfPair(absl::InternalError("x")), StatusIs(absl::StatusCode::kInternal));
}

absl::StatusOr<int> Unwrap(absl::StatusOr<std::unique_ptr<int>> box) {
  std::unique_ptr<int> mine;
  ASSIGN_OR_RETURN(mine, std::move(box));
  return *mine;
}

TEST(AssignOrReturnTest, MovesIntoAnExistingVariable) {
  EXPECT_THAT(Unwrap(std::make_unique<int>(5)), IsOkAndHolds(5));
}

}  // namespace
}  // namespace plancast
