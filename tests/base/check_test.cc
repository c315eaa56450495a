#include "base/check.h"

#include <gtest/gtest.h>

namespace plancast {
namespace {

TEST(CheckTest, IsSilentWhenTrue) {
  PLANCAST_CHECK(true) << "never printed";
  PLANCAST_CHECK_EQ(1 + 1, 2);
  PLANCAST_CHECK_OK(absl::OkStatus());
  PLANCAST_CHECK_OK(absl::StatusOr<int>(1));
  PLANCAST_DCHECK_LT(1, 2);
}

TEST(CheckDeathTest, PrintsConditionAndMessage) {
  const int layer = 7;
  EXPECT_DEATH(PLANCAST_CHECK(layer < 3) << "layer " << layer,
               "check_test.cc:.*expected layer < 3 layer 7");
}

TEST(CheckDeathTest, PrintsBothOperands) {
  EXPECT_DEATH(PLANCAST_CHECK_EQ(2 + 2, 5), "expected 2 \\+ 2 == 5 \\(4 vs 5\\)");
}

TEST(CheckDeathTest, PrintsTheStatus) {
  EXPECT_DEATH(PLANCAST_CHECK_OK(absl::InternalError("broken")), "INTERNAL: broken");
}

TEST(CheckTest, BindsInsideIfElse) {
  bool reached = false;
  if (false)
    PLANCAST_CHECK(false);
  else
    reached = true;
  EXPECT_TRUE(reached);
}

#ifdef NDEBUG
TEST(DcheckTest, DoesNotEvaluateInOptimisedBuilds) {
  int evaluations = 0;
  PLANCAST_DCHECK(++evaluations < 0);
  PLANCAST_DCHECK_EQ(++evaluations, 100) << "message";
  EXPECT_EQ(evaluations, 0);
}
#else
TEST(DcheckDeathTest, DiesInDebugBuilds) { EXPECT_DEATH(PLANCAST_DCHECK_EQ(1, 2), "\\(1 vs 2\\)"); }
#endif

}  // namespace
}  // namespace plancast
