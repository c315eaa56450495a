#include "executor/sharing/levels.h"

#include <map>
#include <random>
#include <vector>

#include "base/int128.h"
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
  // What starts meanwhile joins them; 30 bytes at 50 alongside 50.
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

// Random activities in two Levels. One is left to itself; in the other all goes on
// later and later, activities are taken out and put back at once, and become others
// of the like: their ends and rates stay the same, but for the shift.
TEST(LevelsGoOnTest, AfterShiftsAndChanges) {
  Fluid::CheckSolutions(true);
  const auto first = static_cast<uint32_t>(TestSeed(1));
  int shifted = 0, taken = 0, changed = 0;
  for (uint32_t seed = first; seed < first + 150; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const auto draw = [&](int64_t low, int64_t high) {
      return std::uniform_int_distribution<int64_t>(low, high)(random);
    };
    const RandomSharing sharing = DrawSharing(random);
    const auto policy = draw(0, 1) == 0 ? LinkSharing::kMaxMin : LinkSharing::kPriority;
    Levels plain(policy), moved(policy);
    AddAll(sharing, plain);
    AddAll(sharing, moved);
    // Each kind once more.
    const auto kinds = static_cast<int32_t>(sharing.kinds.size());
    for (const RandomSharing::Kind& k : sharing.kinds) {
      plain.AddKind(k.cap, k.weight, k.uses, k.priority);
      moved.AddKind(k.cap, k.weight, k.uses, k.priority);
    }
    std::map<int32_t, int32_t> plain_of;  // ids
    int64_t shift = 0;
    for (int step = 0; step < 60; ++step) {
      const int64_t what = plain_of.empty() ? 0 : draw(0, 6);
      if (what <= 1) {
        const auto kind = static_cast<int32_t>(draw(0, kinds - 1));
        const int64_t work = draw(1, 20) * sharing.unit;
        plain_of[moved.Start(kind, work)] = plain.Start(kind, work);
      } else if (what == 2) {
        const int64_t by = draw(1, 1'000'000'000'000);
        moved.Shift(by);
        shift += by;
        ++shifted;
      } else if (what == 3) {
        const auto at = plain_of.begin();
        const int32_t kind = moved.KindOf(at->first), beside = at->second;
        const Fluid::Progress progress = moved.Take(at->first);
        plain_of.erase(at);
        plain_of[moved.Start(kind, progress)] = beside;
        ++taken;
      } else if (what == 4) {
        const int32_t id = plain_of.rbegin()->first;
        const int32_t kind = moved.KindOf(id);
        moved.ChangeKind(id, kind < kinds ? kind + kinds : kind - kinds);
        EXPECT_NE(moved.KindOf(id), kind);
        ++changed;
      } else {
        const int64_t next = plain.NextCompletion();
        ASSERT_EQ(moved.NextCompletion(), next + shift);
        // Sometimes only part of the way.
        const int64_t to = what == 5 ? next : plain.now() + (next - plain.now()) / 2;
        std::vector<int32_t> ended, expected;
        for (int32_t id : moved.AdvanceTo(to + shift)) {
          ended.push_back(plain_of[id]);
          plain_of.erase(id);
        }
        for (int32_t id : plain.AdvanceTo(to)) expected.push_back(id);
        ASSERT_THAT(ended, UnorderedElementsAreArray(expected));
      }
      ASSERT_EQ(moved.now(), plain.now() + shift);
      ASSERT_EQ(moved.num_active(), plain.num_active());
      for (const auto& [id, plain_id] : plain_of) {
        ASSERT_EQ(moved.RateQ16(id), plain.RateQ16(plain_id));
        const Fluid::Progress own = moved.ProgressOf(id), other = plain.ProgressOf(plain_id);
        ASSERT_EQ(own.end, other.end == Levels::kNever ? other.end : other.end + shift);
        ASSERT_EQ(own.rate_q16, other.rate_q16);
        // What is left now.
        ASSERT_TRUE(own.left - int128{own.rate_q16} * (moved.now() - own.since) ==
                    other.left - int128{other.rate_q16} * (plain.now() - other.since));
      }
    }
  }
  Fluid::CheckSolutions(false);
  EXPECT_GT(shifted, 500);
  EXPECT_GT(taken, 500);
  EXPECT_GT(changed, 500);
}

// The one of half the rate has the other's place: 100 bytes at 50, then 50 at 25.
TEST_F(LevelsTest, AnActivityGoesOnAsOneOfAnotherKind) {
  const int half = levels_.AddKind(50, 1, {{nvlink_[0], kOne}});
  const int quarter = levels_.AddKind(25, 1, {{nvlink_[0], kOne}});
  const int id = levels_.Start(half, 150);
  levels_.AdvanceTo(2 * kSecond);
  levels_.ChangeKind(id, quarter);
  EXPECT_EQ(levels_.KindOf(id), quarter);
  EXPECT_EQ(levels_.RateQ16(id), int64_t{25} << 16);
  EXPECT_EQ(levels_.NextCompletion(), 4 * kSecond);
  levels_.Shift(10 * kSecond);
  EXPECT_EQ(levels_.now(), 12 * kSecond);
  EXPECT_EQ(levels_.NextCompletion(), 14 * kSecond);
  EXPECT_THAT(levels_.AdvanceTo(14 * kSecond), ElementsAre(id));
}

// 30 of 100 bytes are done when the other takes half the link.
TEST_F(LevelsTest, WhatIsInFlightStartsWithWhatIsLeft) {
  Fluid::Progress progress = Fluid::Fresh(100, 0);
  progress.rate_q16 = int64_t{100} << 16;
  levels_.AdvanceTo(300'000'000'000);
  const int id = levels_.Start(inside_[0], progress), other = levels_.Start(inside_[0], 100);
  EXPECT_EQ(levels_.RateQ16(id), int64_t{50} << 16);
  EXPECT_EQ(levels_.NextCompletion(), 1'700'000'000'000);
  EXPECT_TRUE(levels_.ProgressOf(id).left == ActivityKinds::Work(70));
  EXPECT_EQ(levels_.ProgressOf(id).since, 300'000'000'000);
  EXPECT_THAT(levels_.AdvanceTo(1'700'000'000'000), ElementsAre(id));
  EXPECT_TRUE(levels_.Take(other).left == ActivityKinds::Work(100));
  EXPECT_EQ(levels_.num_active(), 0);
}

}  // namespace
}  // namespace plancast
