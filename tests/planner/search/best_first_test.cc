// Rounds, best bound first, against taking every value.

#include "planner/search/best_first.h"

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/seed.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<ShortForm> Plans(const std::vector<std::string>& texts) {
  std::vector<ShortForm> plans;
  for (const std::string& text : texts) plans.push_back(*ParseShortForm(text));
  return plans;
}

TEST(BestFirstTest, PlansWithEqualProgramsFollowOneAnother) {
  EXPECT_THAT(
      AlikeTogether(Plans({"dp=1,tp=2,pp=2,mb=1", "dp=2,tp=2,pp=1,mb=1", "dp=1,tp=2,pp=2,mb=2"})),
      ElementsAre(1, 0, 2));
}

TEST(BestFirstTest, PlansWithEqualLayersFollowOneAnother) {
  EXPECT_THAT(BodiesTogether(Plans({"dp=4,tp=1,pp=1,mb=1", "dp=2,tp=2,pp=1,mb=1",
                                    "dp=2,tp=1,pp=2,mb=1,zero=1", "dp=2,tp=2,pp=1,mb=2"})),
              ElementsAre(0, 2, 1, 3));
}

TEST(BestFirstTest, TheBestOfAllAreFoundAndNoPlanIsTakenTwice) {
  std::mt19937 random(TestSeed(23));
  int64_t left_out = 0;
  for (int run = 0; run < 500; ++run) {
    const int64_t count = std::uniform_int_distribution<int64_t>(0, 120)(random);
    const int64_t top = std::uniform_int_distribution<int64_t>(1, 12)(random);
    std::uniform_int_distribution<int> value(1, 60), share(0, 4);
    std::vector<double> values;
    std::vector<std::pair<int64_t, double>> bounds;
    for (int64_t i = 0; i < count; ++i) {
      values.push_back(value(random));
      bounds.emplace_back(i, values.back() * share(random) / 4);
    }
    std::vector<double> known;
    for (int i = share(random); i > 2; --i) known.push_back(value(random));
    BestFirst order(bounds, top, known);
    std::vector<double> found = known;
    std::vector<char> taken(count, 0);
    double before = 0;
    for (std::vector<int64_t> round = order.NextRound(); !round.empty();
         round = order.NextRound()) {
      EXPECT_LE(before, order.bound());
      before = order.bound();
      for (const int64_t plan : order.Ahead(5)) EXPECT_EQ(taken[plan], 0);
      for (const int64_t plan : round) {
        EXPECT_EQ(taken[plan]++, 0);
        order.Found(values[plan]);
        found.push_back(values[plan]);
      }
    }
    left_out += order.left();
    std::vector<double> all = known;
    all.insert(all.end(), values.begin(), values.end());
    for (std::vector<double>* some : {&all, &found}) {
      std::sort(some->begin(), some->end());
      some->resize(std::min<size_t>(some->size(), top));
    }
    EXPECT_EQ(found, all);
  }
  EXPECT_GT(left_out, 1000);
}

TEST(BestFirstTest, WhatIsKnownElsewhereIsToBeBeaten) {
  BestFirst order({{0, 3.0}, {1, 2.0}}, 1, {1.0});
  EXPECT_THAT(order.NextRound(), IsEmpty());
  EXPECT_EQ(order.left(), 2);
}

}  // namespace
}  // namespace plancast
