#include "executor/contention/contention.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kOne = 1 << 20;  // coefficient 1

// One entity with a group in each of several streams, all on one link of 100.
class ContentionTest : public testing::Test {
 protected:
  ContentionTest() {
    sim_.entities.emplace_back();
    sim_.members = {0};
    sim_.resources.emplace_back();
    sim_.resources[0].capacity_bytes_per_s = 100;
  }

  int AddGroup(StreamKind stream, int64_t cap, int64_t coefficient = kOne, int64_t work = 1) {
    CommUse use;
    use.programs = {0};
    use.streams = {MaskOf(stream)};
    uses_.uses.push_back(use);
    RealisedCollective realised;
    realised.rate_cap_bytes_per_s = cap;
    realised.work_bytes = work;
    realised_.push_back(realised);
    SimGraph::Group group;
    group.use = group.realised = static_cast<int32_t>(sim_.groups.size());
    group.member_end = 1;
    group.load_begin = static_cast<int32_t>(sim_.loads.size());
    sim_.loads.push_back({0, coefficient});
    group.load_end = static_cast<int32_t>(sim_.loads.size());
    sim_.groups.push_back(group);
    return group.use;
  }
  Contention Find() const { return FindContention(uses_, sim_, realised_); }

  CommUses uses_;
  SimGraph sim_;
  std::vector<RealisedCollective> realised_;
};

TEST_F(ContentionTest, TwoStreamsThatFillALinkContend) {
  AddGroup(StreamKind::kModelComm, 60);
  AddGroup(StreamKind::kGradComm, 60);
  const Contention contention = Find();
  EXPECT_THAT(contention.of_group, ElementsAre(true, true));
  EXPECT_THAT(contention.CursorsOn(0), ElementsAre(static_cast<int>(StreamKind::kModelComm),
                                                   static_cast<int>(StreamKind::kGradComm)));
}

TEST_F(ContentionTest, WhatFitsTogetherDoesNot) {
  AddGroup(StreamKind::kModelComm, 60);
  AddGroup(StreamKind::kGradComm, 40);
  EXPECT_THAT(Find().of_group, ElementsAre(false, false));
  EXPECT_TRUE(Find().CursorsOn(0).empty());
}

TEST_F(ContentionTest, WhatOneStreamRunsNeverMeets) {
  AddGroup(StreamKind::kModelComm, 90);
  AddGroup(StreamKind::kModelComm, 90);
  EXPECT_THAT(Find().of_group, ElementsAre(false, false));
}

// Of each stream the most that it can ask for counts.
TEST_F(ContentionTest, TheLargestOfEachStreamCounts) {
  AddGroup(StreamKind::kModelComm, 10);
  AddGroup(StreamKind::kModelComm, 30, 2 * kOne);
  AddGroup(StreamKind::kGradComm, 41);
  EXPECT_THAT(Find().of_group, ElementsAre(true, true, true));
}

TEST_F(ContentionTest, WhatMovesNothingIsInNobodysWay) {
  AddGroup(StreamKind::kModelComm, 90, kOne, /*work=*/0);
  AddGroup(StreamKind::kGradComm, 90);
  EXPECT_THAT(Find().of_group, ElementsAre(false, false));
}

}  // namespace
}  // namespace plancast
