#include "planner/uncertainty/uncertainty.h"

#include <cmath>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/seed.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

constexpr char kText[] =
    "software_from_source: 0.03 software_from_documentation: 0.1 plan: 0.04 "
    "slow_tail: 0.12 software { profile: 'measured' rows: 5 most_tp: 8 }";

// One second, half of it on kernels and half on a link.
SimResult HalfAndHalf() {
  SimResult result;
  result.makespan_ps = 1'000'000'000'000;
  result.factors["A100/gemm"] = {.seconds = 0.5, .sigma = 0.1};
  result.factors["nvlink3/ring"] = {.seconds = 0.5, .sigma = 0.2};
  return result;
}

TEST(Uncertainty, CoreIsTheFactorsWeightedByTheirShareOfThePath) {
  EXPECT_DOUBLE_EQ(CoreScale(HalfAndHalf()), std::hypot(0.05, 0.1));
  EXPECT_EQ(CoreScale(SimResult()), 0);
}

TEST(Uncertainty, AddsSoftwareAndPlan) {
  ASSERT_OK_AND_ASSIGN(const Uncertainty uncertainty, Uncertainty::Parse(kText, "text"));
  SoftwareProfile profile;
  profile.name = "measured";
  SimResult result = HalfAndHalf();
  uncertainty.AddTo(profile, &result);
  EXPECT_DOUBLE_EQ(result.factors["software/measured"].seconds, 1);
  EXPECT_DOUBLE_EQ(result.factors["software/measured"].sigma, 0.03);
  EXPECT_DOUBLE_EQ(CoreScale(result), std::sqrt(0.0025 + 0.01 + 0.0009 + 0.0016));

  profile.from_documentation = true;
  SimResult outline = HalfAndHalf();
  uncertainty.AddTo(profile, &outline);
  EXPECT_DOUBLE_EQ(outline.factors["software/measured"].sigma, 0.1);

  profile = SoftwareProfile();
  profile.name = "never compared";
  SimResult unknown = HalfAndHalf();
  uncertainty.AddTo(profile, &unknown);
  EXPECT_DOUBLE_EQ(unknown.factors["software/never compared"].sigma, 0.1);
}

TEST(Uncertainty, LevelsOfAllOfALineageAndOfAProfileAddUp) {
  ASSERT_OK_AND_ASSIGN(const Uncertainty uncertainty,
                       Uncertainty::Parse("sources: 9 level: 0.08 "
                                          "lineage { name: 'old' level: 0.03 sources: 4 } "
                                          "software { profile: 'measured' level: -0.01 }",
                                          "text"));
  SoftwareProfile profile;
  profile.name = "unknown";
  EXPECT_DOUBLE_EQ(uncertainty.LevelOf(profile).log, 0.08);
  EXPECT_EQ(uncertainty.LevelOf(profile).sources, 9);
  profile.lineage = "old";
  EXPECT_DOUBLE_EQ(uncertainty.LevelOf(profile).log, 0.11);
  profile.name = "measured";
  EXPECT_DOUBLE_EQ(uncertainty.LevelOf(profile).log, 0.1);
  EXPECT_EQ(uncertainty.LevelOf(profile).sources, 4);
  EXPECT_EQ(uncertainty.LevelOf(profile).lineage, "old");
  EXPECT_THAT(Uncertainty::Parse("level: 1.5", "mine"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("mine: a level is 1.5")));
}

TEST(Uncertainty, IntervalsAreAsymmetric) {
  const TimeInterval interval = IntervalOf(10, 0.05, 0.12);
  EXPECT_DOUBLE_EQ(interval.low, 10 * std::exp(-2.131847 * 0.05));
  EXPECT_DOUBLE_EQ(interval.high, 10 * std::exp(2.131847 * 0.13));
  const TimeInterval certain = IntervalOf(10, 0, 0);
  EXPECT_DOUBLE_EQ(certain.low, 10);
  EXPECT_DOUBLE_EQ(certain.high, 10);
}

TEST(Uncertainty, NineOfTenDrawsFromTheModelLieInTheInterval) {
  std::mt19937_64 random(TestSeed(1));
  std::student_t_distribution<double> student(4);
  constexpr double kCore = 0.07, kSlow = 0.1;
  constexpr int kDraws = 40000;
  const TimeInterval interval = IntervalOf(3, kCore, kSlow);
  int below = 0, above = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double t = student(random);
    const double measured = 3 * std::exp(t * (t < 0 ? kCore : std::hypot(kCore, kSlow)));
    below += measured < interval.low;
    above += measured > interval.high;
  }
  // Four standard deviations of a count.
  const double wanted = 0.05 * kDraws, slack = 4 * std::sqrt(0.05 * 0.95 * kDraws);
  EXPECT_NEAR(below, wanted, slack);
  EXPECT_NEAR(above, wanted, slack);
}

TEST(Uncertainty, FindsTheRunsOfAProfile) {
  ASSERT_OK_AND_ASSIGN(const Uncertainty uncertainty, Uncertainty::Parse(kText, "text"));
  ASSERT_NE(uncertainty.RunsOf("measured"), nullptr);
  EXPECT_EQ(uncertainty.RunsOf("measured")->rows, 5);
  EXPECT_EQ(uncertainty.RunsOf("other"), nullptr);
}

TEST(Uncertainty, RefusesScalesThatAreNone) {
  EXPECT_THAT(Uncertainty::Parse("plan: -0.1", "text").status().message(),
              HasSubstr("between 0 and 2"));
  EXPECT_THAT(Uncertainty::Parse("slow_tail: nan", "text").status().message(),
              HasSubstr("between 0 and 2"));
}

TEST(Uncertainty, ShippedFiguresComeFromACommand) {
  const Uncertainty& shipped = Uncertainty::Shipped();
  EXPECT_GT(shipped.plan, 0);
  EXPECT_GT(shipped.slow_tail, 0);
  EXPECT_FALSE(shipped.software.empty());
}

}  // namespace
}  // namespace plancast
