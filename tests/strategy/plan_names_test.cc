#include "strategy/plan_names.h"

#include <gtest/gtest.h>

namespace plancast {
namespace {

TEST(PlanNamesTest, EveryNameFindsItsValue) {
  for (Recompute r : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
    EXPECT_EQ(FindRecompute(RecomputeName(r)), r);
  }
  for (Schedule s : {Schedule::kGpipe, Schedule::k1f1b, Schedule::kInterleaved}) {
    EXPECT_EQ(FindSchedule(ScheduleName(s)), s);
  }
  for (Attention a : {Attention::kFlash, Attention::kUnfused}) {
    EXPECT_EQ(FindAttention(AttentionName(a)), a);
  }
  for (Overlap o : {Overlap::kGrad, Overlap::kParam, Overlap::kTp, Overlap::kCp, Overlap::kEp}) {
    EXPECT_EQ(FindOverlap(OverlapName(o)), o);
  }
  EXPECT_EQ(FindRecompute("some"), std::nullopt);
  EXPECT_EQ(FindSchedule("zb1p"), std::nullopt);
}

TEST(PlanNamesTest, AnOverlapSetReadsAsInTheShortForm) {
  EXPECT_EQ(OverlapText({}), "none");
  EXPECT_EQ(OverlapText({Overlap::kTp, Overlap::kGrad}), "grad+tp");
}

TEST(PlanNamesTest, AxesThatAreNotSaidHaveOneRankButDp) {
  ShortForm form;
  form.tp = 8;
  EXPECT_EQ(AxisSize(form, "tp"), 8);
  EXPECT_EQ(AxisSize(form, "pp"), 1);
  EXPECT_EQ(AxisSize(form, "dp"), std::nullopt);
  EXPECT_EQ(AxisSize(form, "rows"), std::nullopt);
}

}  // namespace
}  // namespace plancast
