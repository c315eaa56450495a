// Rounds, best bound first, against taking every value.

#include "planner/search/best_first.h"

#include <algorithm>
#include <optional>
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

TEST(BestFirstTest, APlanIsBoundedByTheOneWithoutItsRecomputation) {
  EXPECT_THAT(WithoutRecompute(Plans({
                  "tp=2,mb=1,recompute=full:2",                  // of the next
                  "tp=2,mb=1,recompute=none",                    //
                  "tp=2,mb=1,recompute=selective:moe_act",       // of the one before
                  "tp=2,mb=2,recompute=selective",               // there is none
                  "tp=4,mb=1",                                   // says nothing, which is none
                  "tp=4,mb=1,recompute=full",                    //
                  "tp=4,mb=1,offload=optimizer",                 //
                  "tp=4,mb=1,recompute=full,offload=optimizer",  // that sends less to the host
              })),
              ElementsAre(1, 1, 1, 3, 4, 4, 6, 7));
}

TEST(BestFirstTest, PlansAreAskedForOnlyWhereTheyMayBeAmongTheBest) {
  BestFirst order({{0, 3.0}, {1, 1.0}, {2, 1.0, false}, {3, 5.0, false}, {4, 3.0, false}}, 1);
  EXPECT_THAT(order.ToAsk(), ElementsAre(2, 4, 3));  // nothing is simulated yet
  order.Found(4);
  EXPECT_THAT(order.ToAsk(), ElementsAre(2, 4));
  order.Asked(2, std::nullopt);
  order.Asked(4, 2.0);  // is not below what was known
  EXPECT_THAT(order.ToAsk(), IsEmpty());
  EXPECT_THAT(order.Ahead(9), ElementsAre(1, 0, 4));
  EXPECT_THAT(order.NextRound(), ElementsAre(1, 0, 4));
  EXPECT_THAT(order.NextRound(), IsEmpty());
  EXPECT_EQ(order.left(), 1);
}

TEST(BestFirstTest, TheBestOfAllAreFoundAndNoPlanIsTakenTwice) {
  std::mt19937 random(TestSeed(23));
  int64_t left_out = 0;
  for (int run = 0; run < 500; ++run) {
    const int64_t count = std::uniform_int_distribution<int64_t>(0, 120)(random);
    const int64_t top = std::uniform_int_distribution<int64_t>(1, 12)(random);
    std::uniform_int_distribution<int> value(1, 60), share(0, 4);
    std::vector<double> values;
    // Bounds of others, of some plans; some of these do not fit.
    std::vector<BestFirst::Bound> bounds;
    std::vector<std::optional<double>> own;
    for (int64_t i = 0; i < count; ++i) {
      values.push_back(value(random));
      own.emplace_back(values.back() * share(random) / 4);
      const bool known = share(random) > 2;
      bounds.push_back({i, known ? *own.back() : *own.back() * share(random) / 4, known});
      if (!known && share(random) == 0) own.back() = std::nullopt;
    }
    // In which order plans are simulated does not depend on what is known at first.
    std::vector<BestFirst::Bound> fit;
    for (int64_t i = 0; i < count; ++i) {
      if (own[i]) fit.push_back({i, *own[i], true});
    }
    std::vector<double> known;
    for (int i = share(random); i > 2; --i) known.push_back(value(random));
    BestFirst order(bounds, top, known), at_once(fit, top, known);
    const auto next = [&] {
      for (std::vector<int64_t> asked = order.ToAsk(); !asked.empty(); asked = order.ToAsk()) {
        for (const int64_t plan : asked) order.Asked(plan, own[plan]);
      }
      return order.NextRound();
    };
    std::vector<double> found = known;
    std::vector<char> taken(count, 0);
    double before = 0;
    for (std::vector<int64_t> round = next(); !round.empty(); round = next()) {
      EXPECT_EQ(round, at_once.NextRound());
      EXPECT_LE(before, order.bound());
      before = order.bound();
      for (const int64_t plan : order.Ahead(5)) EXPECT_EQ(taken[plan], 0);
      for (const int64_t plan : round) {
        EXPECT_EQ(taken[plan]++, 0);
        order.Found(values[plan]);
        at_once.Found(values[plan]);
        found.push_back(values[plan]);
      }
    }
    left_out += order.left();
    std::vector<double> all = known;
    for (int64_t i = 0; i < count; ++i) {
      if (own[i]) all.push_back(values[i]);
    }
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
