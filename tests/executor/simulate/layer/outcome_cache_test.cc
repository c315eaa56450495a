#include "executor/simulate/layer/outcome_cache.h"

#include <algorithm>
#include <set>
#include <vector>

#include "gtest/gtest.h"

namespace plancast {
namespace {

// As many as there are places, and more.
constexpr int64_t kMany = 10'000;

class OutcomeCacheTest : public testing::Test {
 protected:
  // Under conditions that differ by the clock. What runs writes the clock all over
  // its memory.
  LayerOutcome* Get(int64_t host, int32_t times = 4, int32_t variant = 0) {
    LayerConditions conditions;
    conditions.host = host;
    return cache_.Get(variant, conditions, times, [&](LayerOutcome& outcome) {
      ++runs_;
      outcome.end = host;
      std::fill_n(outcome.times, times, host);
    });
  }
  static void ExpectIntact(const LayerOutcome& outcome, int64_t host, int32_t times = 4) {
    ASSERT_EQ(outcome.conditions.host, host);
    ASSERT_EQ(outcome.end, host);
    ASSERT_GE(outcome.room, times);
    ASSERT_EQ(std::count(outcome.times, outcome.times + times, host), times);
  }

  OutcomeCache cache_;
  int runs_ = 0;
};

TEST_F(OutcomeCacheTest, RunsWhatItDoesNotKnow) {
  const LayerOutcome* const first = Get(7);
  EXPECT_EQ(runs_, 1);
  EXPECT_EQ(first->users, 1);
  ExpectIntact(*first, 7);
  EXPECT_EQ(Get(7), first);
  EXPECT_EQ(first->users, 2);
  EXPECT_EQ(runs_, 1);
}

TEST_F(OutcomeCacheTest, KnowsWhatNobodyUses) {
  LayerOutcome* const first = Get(7);
  cache_.Release(first);
  EXPECT_EQ(first->users, 0);
  EXPECT_EQ(Get(7), first);
  EXPECT_EQ(runs_, 1);
}

TEST_F(OutcomeCacheTest, TellsVariantsAndConditionsApart) {
  const LayerOutcome* const one = Get(7);
  EXPECT_NE(Get(8), one);
  EXPECT_NE(Get(7, 4, 1), one);
  LayerConditions conditions;
  conditions.host = 7;
  const auto run = [this](LayerOutcome&) { ++runs_; };
  for (const int64_t toggle : {1, 2}) {
    conditions.toggles.push_back(toggle);
    EXPECT_NE(cache_.Get(0, conditions, 4, run), one);
  }
  LayerConditions::Ahead ahead;
  for (int32_t change = 0; change < 5; ++change) {
    if (change == 1) ahead.stream = 1;
    if (change == 2) ahead.runs = true;
    if (change == 3) ahead.since = 5;
    if (change == 4) ahead.work_left = 1;  // not part of where it is looked for
    conditions.ahead.assign(1, ahead);
    EXPECT_NE(cache_.Get(0, conditions, 4, run), one);
  }
  EXPECT_EQ(runs_, 10);
  EXPECT_EQ(cache_.Get(0, conditions, 4, run)->users, 2);
}

TEST_F(OutcomeCacheTest, ForgetsWhereAnotherWasInTheTrace) {
  std::set<LayerOutcome*> known;
  for (int64_t host = 0; host < kMany; ++host) {
    LayerOutcome* const outcome = Get(host);
    EXPECT_EQ(outcome->trace_begin, -1);
    EXPECT_EQ(outcome->trace_number, -1);
    outcome->trace_begin = outcome->trace_number = 3;
    cache_.Release(outcome);
    known.insert(outcome);
  }
  EXPECT_LT(known.size(), kMany / 2);
}

TEST_F(OutcomeCacheTest, LeavesWhatIsInUse) {
  std::vector<LayerOutcome*> used;
  for (int64_t host = 0; host < kMany; ++host) used.push_back(Get(host));
  EXPECT_EQ(std::set<LayerOutcome*>(used.begin(), used.end()).size(), used.size());
  for (int64_t host = 0; host < kMany; ++host) ExpectIntact(*used[host], host);
  for (LayerOutcome* outcome : used) cache_.Release(outcome);
  // The latest of each place is there yet.
  runs_ = 0;
  for (int64_t host = kMany - 100; host < kMany; ++host) Get(host);
  EXPECT_LT(runs_, 10);
}

TEST_F(OutcomeCacheTest, TakesMemoryAgain) {
  std::set<const LayerOutcome*> outcomes;
  std::set<const int64_t*> times;
  LayerOutcome* const kept = Get(-1);
  for (int64_t host = 0; host < 10 * kMany; ++host) {
    LayerOutcome* const outcome = Get(host);
    ExpectIntact(*outcome, host);
    outcomes.insert(outcome);
    times.insert(outcome->times);
    cache_.Release(outcome);
  }
  EXPECT_LE(outcomes.size(), 1 << 12);
  EXPECT_LE(times.size(), 1 << 12);
  ExpectIntact(*kept, -1);
  // Others have its place, so that it is free now.
  cache_.Release(kept);
  bool again = false;
  for (int64_t host = 20 * kMany; host < 21 * kMany; ++host) again = again || Get(host) == kept;
  EXPECT_TRUE(again);
}

TEST_F(OutcomeCacheTest, MakesRoomForLargerBlocks) {
  const auto times_of = [](int64_t host) { return static_cast<int32_t>(1 + host * 37 % 12'000); };
  std::vector<LayerOutcome*> used;
  for (int64_t host = 0; host < 500; ++host) {
    used.push_back(Get(host, times_of(host)));
    if (host % 3 == 0) cache_.Release(used.back());
  }
  for (int64_t host = 0; host < 500; ++host) {
    if (host % 3 > 0) ExpectIntact(*used[host], host, times_of(host));
  }
  // In places that smaller ones leave.
  for (int64_t host = kMany; host < 2 * kMany; ++host) {
    LayerOutcome* const outcome = Get(host, static_cast<int32_t>(host / 100));
    ExpectIntact(*outcome, host, static_cast<int32_t>(host / 100));
    cache_.Release(outcome);
  }
  for (int64_t host = 0; host < 500; ++host) {
    if (host % 3 > 0) ExpectIntact(*used[host], host, times_of(host));
  }
}

}  // namespace
}  // namespace plancast
