#include "executor/sharing/fluid.h"

#include <cstdint>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

constexpr int64_t kSecond = 1'000'000'000'000;
constexpr int64_t kOne = 1 << 20;  // coefficient 1

TEST(FluidTest, OneActivityRunsAtItsCap) {
  Fluid fluid;
  const int link = fluid.AddResource(100);
  const int kind = fluid.AddKind(50, 1, {{link, kOne}});
  fluid.Start(kind, 100);
  EXPECT_EQ(fluid.NextCompletion(), 2 * kSecond);
  EXPECT_EQ(fluid.AloneTime(kind, 100), 2 * kSecond);
  EXPECT_EQ(fluid.AdvanceTo(2 * kSecond).size(), 1);
  EXPECT_EQ(fluid.NextCompletion(), Fluid::kNever);
}

TEST(FluidTest, TwoFlowsHalveALink) {
  Fluid fluid;
  const int link = fluid.AddResource(100);
  const int kind = fluid.AddKind(100, 1, {{link, kOne}});
  fluid.Start(kind, 100);
  fluid.Start(kind, 100);
  EXPECT_EQ(fluid.NextCompletion(), 2 * kSecond);
  EXPECT_EQ(fluid.AdvanceTo(2 * kSecond).size(), 2);
}

TEST(FluidTest, ALateFlowSlowsOnlyWhileItRuns) {
  Fluid fluid;
  const int link = fluid.AddResource(100);
  const int kind = fluid.AddKind(100, 1, {{link, kOne}});
  fluid.Start(kind, 200);  // 1 s alone, 2 s shared with the second, 0 s left
  fluid.AdvanceTo(1 * kSecond);
  fluid.Start(kind, 150);
  EXPECT_EQ(fluid.NextCompletion(), 3 * kSecond);
  fluid.AdvanceTo(3 * kSecond);
  EXPECT_EQ(fluid.NextCompletion(), 3 * kSecond + kSecond / 2);
}

TEST(FluidTest, WeightsShareInProportion) {
  Fluid fluid;
  const int link = fluid.AddResource(120);
  const int light = fluid.Start(fluid.AddKind(1000, 1, {{link, kOne}}), 1000);
  const int heavy = fluid.Start(fluid.AddKind(1000, 3, {{link, kOne}}), 1000);
  EXPECT_EQ(fluid.RateQ16(light), int64_t{30} << 16);
  EXPECT_EQ(fluid.RateQ16(heavy), int64_t{90} << 16);
}

TEST(FluidTest, WhatACappedFlowLeavesGoesToOthers) {
  Fluid fluid;
  const int link = fluid.AddResource(100);
  const int capped = fluid.Start(fluid.AddKind(10, 1, {{link, kOne}}), 1000);
  const int a = fluid.Start(fluid.AddKind(1000, 1, {{link, kOne}}), 1000);
  const int b = fluid.Start(fluid.AddKind(1000, 1, {{link, 2 * kOne}}), 1000);
  EXPECT_EQ(fluid.RateQ16(capped), int64_t{10} << 16);
  EXPECT_EQ(fluid.RateQ16(a), int64_t{30} << 16);
  EXPECT_EQ(fluid.RateQ16(b), int64_t{30} << 16);
}

// Three jobs on a tree: two leaves share uplink A, the third has uplink B; all
// meet at the root.
TEST(FluidTest, ThreeJobsOnATree) {
  Fluid fluid;
  const int up_a = fluid.AddResource(60), up_b = fluid.AddResource(100),
            root = fluid.AddResource(120);
  const int on_a = fluid.AddKind(1000, 1, {{up_a, kOne}, {root, kOne}});
  const int on_b = fluid.AddKind(1000, 1, {{up_b, kOne}, {root, kOne}});
  const int first = fluid.Start(on_a, 600), second = fluid.Start(on_a, 600),
            third = fluid.Start(on_b, 600);
  EXPECT_EQ(fluid.RateQ16(first), int64_t{30} << 16);
  EXPECT_EQ(fluid.RateQ16(second), int64_t{30} << 16);
  EXPECT_EQ(fluid.RateQ16(third), int64_t{60} << 16);
}

TEST(FluidTest, ANicSharedByFourGroupsGivesEachAQuarter) {
  Fluid flat, folded;
  const int nic = flat.AddResource(100);
  const int one = flat.AddKind(100, 1, {{nic, kOne}});
  for (int i = 0; i < 4; ++i) flat.Start(one, 100);
  folded.AddResource(100);
  folded.Start(folded.AddKind(100, 1, {{nic, 4 * kOne}}), 100);
  EXPECT_EQ(flat.NextCompletion(), 4 * kSecond);
  EXPECT_EQ(folded.NextCompletion(), 4 * kSecond);
}

TEST(FluidTest, NoWorkEndsAtOnce) {
  Fluid fluid;
  const int link = fluid.AddResource(10);
  fluid.Start(fluid.AddKind(5, 1, {{link, kOne}}), 0);
  EXPECT_EQ(fluid.NextCompletion(), 0);
}

// Both share at 50 until the first is through with 100 bytes, at 2 s; what the
// second has left, 50 bytes, then takes half a second.
TEST(FluidTest, TwoFlowsOnOneLinkToThePicosecond) {
  Fluid fluid;
  const int link = fluid.AddResource(100);
  const int kind = fluid.AddKind(100, 1, {{link, kOne}});
  const int first = fluid.Start(kind, 100), second = fluid.Start(kind, 150);
  EXPECT_EQ(fluid.NextCompletion(), 2 * kSecond);
  EXPECT_THAT(fluid.AdvanceTo(2 * kSecond), ElementsAre(first));
  EXPECT_EQ(fluid.NextCompletion(), 2'500'000'000'000);
  EXPECT_THAT(fluid.AdvanceTo(2'500'000'000'000), ElementsAre(second));
}

// A third of 100 bytes a second is rounded down, to 2184533 of 2^-16: 100 bytes
// take 6553600/2184533 s, 3.0000004577637..., and the last picosecond is counted
// whole.
TEST(FluidTest, RoundsALevelDownAndACompletionUp) {
  Fluid fluid;
  const int link = fluid.AddResource(100);
  const int kind = fluid.AddKind(100, 1, {{link, kOne}});
  for (int i = 0; i < 3; ++i) fluid.Start(kind, 100);
  EXPECT_EQ(fluid.RateQ16(0), 2184533);
  EXPECT_EQ(fluid.NextCompletion(), 3'000'000'457'764);
}

// One at its cap of 10, the others at 45. After 2 s these are through with 90
// bytes; the capped one ends alone at 10 s.
TEST(FluidTest, ThreeFlowsOfWhichOneIsCapped) {
  Fluid fluid;
  const int link = fluid.AddResource(100);
  const int capped = fluid.AddKind(10, 1, {{link, kOne}}),
            free = fluid.AddKind(100, 1, {{link, kOne}});
  const int slow = fluid.Start(capped, 100), a = fluid.Start(free, 90), b = fluid.Start(free, 90);
  EXPECT_EQ(fluid.NextCompletion(), 2 * kSecond);
  EXPECT_THAT(fluid.AdvanceTo(2 * kSecond), UnorderedElementsAre(a, b));
  EXPECT_EQ(fluid.NextCompletion(), 10 * kSecond);
  EXPECT_THAT(fluid.AdvanceTo(10 * kSecond), ElementsAre(slow));
}

// The urgent one takes the link from 1 s to 3 s; the other does 100 bytes before,
// none meanwhile, and 150 after.
TEST(FluidTest, AnUrgentFlowPausesAnother) {
  Fluid fluid(LinkSharing::kPriority);
  const int link = fluid.AddResource(100);
  const int urgent = fluid.AddKind(100, 1, {{link, kOne}}, 0),
            patient = fluid.AddKind(100, 1, {{link, kOne}}, 1);
  const int paused = fluid.Start(patient, 250);
  fluid.AdvanceTo(1 * kSecond);
  const int first = fluid.Start(urgent, 200);
  EXPECT_EQ(fluid.RateQ16(paused), 0);
  EXPECT_EQ(fluid.RateQ16(first), int64_t{100} << 16);
  EXPECT_EQ(fluid.NextCompletion(), 3 * kSecond);
  EXPECT_THAT(fluid.AdvanceTo(3 * kSecond), ElementsAre(first));
  EXPECT_EQ(fluid.NextCompletion(), 4'500'000'000'000);
  EXPECT_THAT(fluid.AdvanceTo(4'500'000'000'000), ElementsAre(paused));
}

// 60 for the urgent one, at its cap; the two others share 40 as 10 and 30.
TEST(FluidTest, OthersShareWhatUrgentFlowsLeave) {
  Fluid fluid(LinkSharing::kPriority);
  const int link = fluid.AddResource(100);
  const int urgent = fluid.Start(fluid.AddKind(60, 1, {{link, kOne}}, -1), 600);
  const int light = fluid.Start(fluid.AddKind(100, 1, {{link, kOne}}, 5), 100);
  const int heavy = fluid.Start(fluid.AddKind(100, 3, {{link, kOne}}, 5), 300);
  EXPECT_EQ(fluid.RateQ16(urgent), int64_t{60} << 16);
  EXPECT_EQ(fluid.RateQ16(light), int64_t{10} << 16);
  EXPECT_EQ(fluid.RateQ16(heavy), int64_t{30} << 16);
  EXPECT_EQ(fluid.NextCompletion(), 10 * kSecond);
  EXPECT_EQ(fluid.AdvanceTo(10 * kSecond).size(), 3);
}

// What stops at another link leaves its share to less urgent flows.
TEST(FluidTest, AnUrgentFlowHeldElsewhereLeavesTheRest) {
  Fluid fluid(LinkSharing::kPriority);
  const int wide = fluid.AddResource(100), narrow = fluid.AddResource(20);
  fluid.Start(fluid.AddKind(100, 1, {{wide, kOne}, {narrow, kOne}}, 0), 100);
  const int rest = fluid.Start(fluid.AddKind(100, 1, {{wide, kOne}}, 1), 100);
  EXPECT_EQ(fluid.RateQ16(rest), int64_t{80} << 16);
}

TEST(FluidTest, MaxMinLooksAtNoPriority) {
  Fluid fluid;
  const int link = fluid.AddResource(100);
  const int a = fluid.Start(fluid.AddKind(100, 1, {{link, kOne}}, 0), 100);
  const int b = fluid.Start(fluid.AddKind(100, 1, {{link, kOne}}, 1), 100);
  EXPECT_EQ(fluid.RateQ16(a), int64_t{50} << 16);
  EXPECT_EQ(fluid.RateQ16(b), int64_t{50} << 16);
}

// An activity goes on in another Fluid where it was: 50 of 100 bytes after 1 s
// alongside another, the rest alone.
TEST(FluidTest, AnActivityMovesToAnotherFluid) {
  Fluid from, to;
  for (Fluid* fluid : {&from, &to}) {
    fluid->AddKind(100, 1, {{fluid->AddResource(100), kOne}});
  }
  const int moved = from.Start(0, 100);
  from.Start(0, 100);
  from.AdvanceTo(kSecond);
  to.AdvanceTo(kSecond);
  to.Put(0, from.Take(moved));
  EXPECT_EQ(to.NextCompletion(), kSecond + kSecond / 2);
  EXPECT_EQ(from.NextCompletion(), kSecond + kSecond / 2);
}

// Half done after 1 s alone; what is over since counts no more.
TEST(FluidTest, AllGoesOnLaterAfterAShift) {
  Fluid fluid;
  const int link = fluid.AddResource(100);
  const int kind = fluid.AddKind(100, 1, {{link, kOne}});
  const int id = fluid.Start(kind, 200);
  fluid.AdvanceTo(1 * kSecond);
  fluid.Shift(5 * kSecond);
  EXPECT_EQ(fluid.now(), 6 * kSecond);
  EXPECT_EQ(fluid.ProgressOf(id).since, 5 * kSecond);
  EXPECT_EQ(fluid.ProgressOf(id).end, 7 * kSecond);
  EXPECT_EQ(fluid.NextCompletion(), 7 * kSecond);
  const int late = fluid.Start(kind, 150);
  EXPECT_EQ(fluid.NextCompletion(), 8 * kSecond);
  EXPECT_THAT(fluid.AdvanceTo(8 * kSecond), ElementsAre(id));
  EXPECT_EQ(fluid.NextCompletion(), 8 * kSecond + kSecond / 2);
  EXPECT_THAT(fluid.AdvanceTo(8 * kSecond + kSecond / 2), ElementsAre(late));
}

TEST(FluidTest, AnActivityThatIsPausedStaysSoAfterAShift) {
  Fluid fluid(LinkSharing::kPriority);
  const int link = fluid.AddResource(100);
  fluid.Start(fluid.AddKind(100, 1, {{link, kOne}}, 0), 200);
  const int paused = fluid.Start(fluid.AddKind(100, 1, {{link, kOne}}, 1), 100);
  fluid.Shift(1 * kSecond);
  EXPECT_EQ(fluid.ProgressOf(paused).rate_q16, 0);
  EXPECT_EQ(fluid.ProgressOf(paused).end, Fluid::kNever);
  EXPECT_EQ(fluid.AdvanceTo(3 * kSecond).size(), 1);
  EXPECT_EQ(fluid.NextCompletion(), 4 * kSecond);
}

TEST(FluidTest, WhatIsTakenGoesOnWhereItIsPut) {
  Fluid from, to;
  const int from_link = from.AddResource(100), to_link = to.AddResource(50);
  const int fast = from.AddKind(100, 1, {{from_link, kOne}});
  const int slow = to.AddKind(50, 1, {{to_link, kOne}});
  const int id = from.Start(fast, 200);
  from.AdvanceTo(1 * kSecond);
  to.AdvanceTo(1 * kSecond);
  const int there = to.Put(slow, from.Take(id));
  EXPECT_EQ(from.num_active(), 0);
  EXPECT_EQ(to.RateQ16(there), int64_t{50} << 16);
  EXPECT_EQ(to.NextCompletion(), 3 * kSecond);
}

// Few levels are scanned and many are heaps: where a solution of everything has many, those of its
// parts, which are few, are compared with it.
TEST(FluidTest, PartsAreSolvedAsAllIs) {
  const bool before = Fluid::ChecksSolutions();
  Fluid::CheckSolutions(true);
  for (const LinkSharing sharing : {LinkSharing::kMaxMin, LinkSharing::kPriority}) {
    std::mt19937 random(20261128);
    const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % n); };
    Fluid fluid(sharing);
    std::vector<int32_t> kinds;
    for (int part = 0; part < 30; ++part) {
      int32_t links[4];
      for (int32_t& link : links) link = fluid.AddResource(100 + below(400));
      for (int k = 0; k < 6; ++k) {
        std::vector<Fluid::Use> uses;
        for (const int32_t link : links) {
          if (below(2) == 0) uses.push_back({link, kOne * (1 + below(3))});
        }
        kinds.push_back(
            fluid.AddKind(50 + below(300), 1 + below(3), uses, static_cast<int32_t>(below(3))));
      }
    }
    for (const int32_t kind : kinds) fluid.Start(kind, 1 + below(1000));
    for (int i = 0; i < 2000; ++i) {
      const size_t ended = fluid.AdvanceTo(fluid.NextCompletion()).size();
      for (size_t n = 0; n < ended; ++n) {
        fluid.Start(kinds[below(static_cast<int64_t>(kinds.size()))], 1 + below(1000));
      }
    }
    EXPECT_EQ(fluid.num_active(), static_cast<int>(kinds.size()));
  }
  Fluid::CheckSolutions(before);
}

}  // namespace
}  // namespace plancast
