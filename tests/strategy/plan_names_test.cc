#include "strategy/plan_names.h"

#include <gtest/gtest.h>

namespace plancast {
namespace {

TEST(PlanNamesTest, SchedulesAreFoundByName) {
  EXPECT_EQ(kScheduleNames.Find("1f1b"), Schedule::k1f1b);
  EXPECT_EQ(kScheduleNames.Find("zbv"), Schedule::kZbV);
  EXPECT_EQ(kScheduleNames.Find("zbw"), std::nullopt);
}

TEST(PlanNamesTest, WhatOffloadingMovesReadsAsInTheShortForm) {
  EXPECT_EQ(OffloadText({}), "none");
  EXPECT_EQ(OffloadText({Offload::kActivations, Offload::kParameters}), "param+activations");
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
