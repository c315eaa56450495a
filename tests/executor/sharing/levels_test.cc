#include "executor/sharing/levels.h"

#include <map>
#include <random>
#include <vector>

#include "executor/sharing/fluid.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/executor/sharing/random_sharing.h"
#include "tests/testing/seed.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;
using ::testing::UnorderedElementsAreArray;

constexpr int64_t kSecond = 1'000'000'000'000;
constexpr int64_t kOne = 1 << 20;  // coefficient 1

// Two hosts with an NVLink of 100 each, and a spine of 60 between them.
class LevelsTest : public testing::Test {
 protected:
  LevelsTest() {
    Fluid::CheckSolutions(true);
    inside_[0] = levels_.AddKind(100, 1, {{nvlink_[0], kOne}});
    inside_[1] = levels_.AddKind(100, 1, {{nvlink_[1], kOne}});
    across_ = levels_.AddKind(100, 1, {{nvlink_[0], kOne}, {spine_, kOne}});
  }
  ~LevelsTest() override { Fluid::CheckSolutions(false); }

  Level LevelOf(int32_t id) const { return levels_.tree().domains()[levels_.DomainOf(id)].level; }

  Levels levels_;
  const int nvlink_[2] = {levels_.AddResource(100, Level::kHost),
                          levels_.AddResource(100, Level::kHost)};
  const int spine_ = levels_.AddResource(60, Level::kCluster);
  int inside_[2], across_;
};

TEST_F(LevelsTest, LinksFormDomains) {
  levels_.Start(inside_[0], 1);
  EXPECT_EQ(levels_.tree().DebugString(),
            "cluster: r2\n"
            "  host: r0\n"
            "host: r1\n");
}

// 100 bytes each: at 50 while two are in a host, alone at 100.
TEST_F(LevelsTest, TwoHostsAreIndependent) {
  const int a = levels_.Start(inside_[0], 100), b = levels_.Start(inside_[0], 100);
  const int c = levels_.Start(inside_[1], 100);
  EXPECT_NE(levels_.DomainOf(a), levels_.DomainOf(c));
  EXPECT_EQ(levels_.NextCompletion(), 1 * kSecond);
  EXPECT_THAT(levels_.AdvanceTo(1 * kSecond), ElementsAre(c));
  EXPECT_EQ(levels_.NextCompletion(), 2 * kSecond);
  EXPECT_THAT(levels_.AdvanceTo(2 * kSecond), UnorderedElementsAre(a, b));
  EXPECT_EQ(levels_.NextCompletion(), Levels::kNever);
}

// What goes across takes 50 of the NVLink while the local one runs, then 60.
// Local: 1 s at 100, 3 s at 50, ends at 4 s. Across: 150 bytes by then, the other
// 60 in 1 s more.
TEST_F(LevelsTest, WhatCrossesTheBorderIsHandedUp) {
  const int local = levels_.Start(inside_[0], 250), apart = levels_.Start(inside_[1], 1000);
  EXPECT_EQ(LevelOf(local), Level::kHost);
  levels_.AdvanceTo(1 * kSecond);
  const int across = levels_.Start(across_, 210);
  EXPECT_EQ(LevelOf(across), Level::kCluster);
  EXPECT_EQ(LevelOf(local), Level::kCluster);
  EXPECT_EQ(LevelOf(apart), Level::kHost);
  EXPECT_EQ(levels_.RateQ16(local), int64_t{50} << 16);
  EXPECT_EQ(levels_.RateQ16(across), int64_t{50} << 16);
  EXPECT_EQ(levels_.NextCompletion(), 4 * kSecond);
  EXPECT_THAT(levels_.AdvanceTo(4 * kSecond), ElementsAre(local));
  EXPECT_EQ(levels_.RateQ16(across), int64_t{60} << 16);
  // What starts meanwhile joins them; 30 bytes at 50 beside 50.
  const int late = levels_.Start(inside_[0], 30);
  EXPECT_EQ(LevelOf(late), Level::kCluster);
  EXPECT_EQ(levels_.NextCompletion(), 4'600'000'000'000);
  EXPECT_THAT(levels_.AdvanceTo(4'600'000'000'000), ElementsAre(late));
  // 30 bytes left at 60.
  EXPECT_EQ(levels_.NextCompletion(), 5'100'000'000'000);
  EXPECT_THAT(levels_.AdvanceTo(5'100'000'000'000), ElementsAre(across));
  // The host is by itself again.
  EXPECT_EQ(LevelOf(levels_.Start(inside_[0], 100)), Level::kHost);
  EXPECT_EQ(levels_.NextCompletion(), 6'100'000'000'000);
}

// A host whose activities are in the cluster's Fluid stays there until the last
// of them is through.
TEST_F(LevelsTest, AHostComesBackWhenItsLastVisitorIsGone) {
  const int local = levels_.Start(inside_[0], 1000), across = levels_.Start(across_, 50);
  EXPECT_THAT(levels_.AdvanceTo(levels_.NextCompletion()), ElementsAre(across));
  const int beside = levels_.Start(inside_[0], 100);
  EXPECT_EQ(LevelOf(local), Level::kCluster);
  EXPECT_EQ(LevelOf(beside), Level::kCluster);
  levels_.Remove(local);
  levels_.Remove(beside);
  EXPECT_EQ(levels_.num_active(), 0);
  EXPECT_EQ(LevelOf(levels_.Start(inside_[0], 100)), Level::kHost);
}

// Random activities: completions, as well as rates, are those of one Fluid over
// everything, and the checks really meet activities on all levels, handed up and not.
TEST(LevelsEqualOneFluidTest, OnRandomActivities) {
  const auto first = static_cast<uint32_t>(TestSeed(1));
  std::map<Level, int> starts;
  int handed_up = 0, nested = 0;
  for (uint32_t seed = first; seed < first + 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const auto draw = [&](int64_t low, int64_t high) {
      return std::uniform_int_distribution<int64_t>(low, high)(random);
    };
    const RandomSharing sharing = DrawSharing(random);
    const auto policy = draw(0, 1) == 0 ? LinkSharing::kMaxMin : LinkSharing::kPriority;
    Fluid flat(policy);
    Levels levels(policy);
    AddAll(sharing, flat);
    AddAll(sharing, levels);
    std::map<int32_t, int32_t> flat_of;  // ids
    for (int step = 0; step < 80; ++step) {
      if (flat_of.empty() || draw(0, 1) == 0) {
        const auto kind = static_cast<int32_t>(draw(0, sharing.kinds.size() - 1));
        const int64_t work = draw(1, 20) * sharing.unit;
        const int32_t id = levels.Start(kind, work);
        flat_of[id] = flat.Start(kind, work);
        ++starts[levels.tree().domains()[levels.DomainOf(id)].level];
      } else {
        ASSERT_EQ(levels.NextCompletion(), flat.NextCompletion());
        const int64_t next = flat.NextCompletion();
        std::vector<int32_t> ended, expected;
        for (int32_t id : levels.AdvanceTo(next)) {
          ended.push_back(flat_of[id]);
          flat_of.erase(id);
        }
        for (int32_t id : flat.AdvanceTo(next)) expected.push_back(id);
        ASSERT_THAT(ended, UnorderedElementsAreArray(expected));
      }
      for (const auto& [id, flat_id] : flat_of) {
        ASSERT_EQ(levels.RateQ16(id), flat.RateQ16(flat_id));
        const int32_t home = levels.tree().HomeOf(levels.KindOf(id));
        handed_up += levels.DomainOf(id) != home;
        nested += levels.tree().domains()[home].parent >= 0 && levels.DomainOf(id) == home;
      }
    }
  }
  EXPECT_GE(starts.size(), 4);
  EXPECT_GT(handed_up, 1000);
  EXPECT_GT(nested, 1000);
}

}  // namespace
}  // namespace plancast
