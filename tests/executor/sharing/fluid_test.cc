#include "executor/sharing/fluid.h"

#include <algorithm>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace plancast {
namespace {

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

// Random activities over random resources. Laws: none is faster than alone, no
// resource carries more than it can, and each runs at its cap or on a full one.
TEST(FluidTest, LawsOfMaxMinHold) {
  for (uint32_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const auto draw = [&](int64_t low, int64_t high) {
      return std::uniform_int_distribution<int64_t>(low, high)(random);
    };
    Fluid fluid;
    std::vector<int64_t> capacity;
    for (int64_t r = draw(1, 6); r > 0; --r) {
      capacity.push_back(draw(1'000, 1'000'000));
      fluid.AddResource(capacity.back());
    }
    struct Kind {
      int64_t cap, weight;
      std::vector<Fluid::Use> uses;
    };
    std::vector<Kind> kinds;
    for (int64_t k = draw(1, 6); k > 0; --k) {
      Kind kind{draw(1'000, 1'000'000), draw(1, 4), {}};
      for (int32_t r = 0; r < static_cast<int32_t>(capacity.size()); ++r) {
        if (draw(0, 1) == 0) kind.uses.push_back({r, draw(kOne / 4, 4 * kOne)});
      }
      fluid.AddKind(kind.cap, kind.weight, kind.uses);
      kinds.push_back(kind);
    }
    std::vector<std::pair<int, int>> active;  // (id, kind)
    for (int step = 0; step < 40; ++step) {
      if (draw(0, 2) > 0 || active.empty()) {
        const int kind = static_cast<int>(draw(0, static_cast<int64_t>(kinds.size()) - 1));
        active.emplace_back(fluid.Start(kind, draw(1, 1'000'000)), kind);
      } else {
        for (int32_t id : fluid.AdvanceTo(fluid.NextCompletion())) {
          active.erase(std::find_if(active.begin(), active.end(),
                                    [id](const auto& a) { return a.first == id; }));
        }
      }
      std::vector<int128> load(capacity.size());
      for (const auto& [id, kind] : active) {
        for (const Fluid::Use& use : kinds[kind].uses) {
          load[use.resource] += int128{use.coefficient_q20} * fluid.RateQ16(id);
        }
      }
      for (size_t r = 0; r < capacity.size(); ++r) {
        EXPECT_LE(load[r], int128{capacity[r]} << 36);
      }
      for (const auto& [id, kind] : active) {
        const Kind& k = kinds[kind];
        const int64_t cap = (k.cap << 16) / k.weight * k.weight;
        EXPECT_LE(fluid.RateQ16(id), cap);
        bool held = fluid.RateQ16(id) == cap;
        for (const Fluid::Use& use : k.uses) {
          // Full but for the remainder of one division.
          int128 granule = 0;
          for (const auto& [other, other_kind] : active) {
            for (const Fluid::Use& u : kinds[other_kind].uses) {
              if (u.resource == use.resource) {
                granule += int128{u.coefficient_q20} * kinds[other_kind].weight;
              }
            }
          }
          held = held || load[use.resource] + granule > int128{capacity[use.resource]} << 36;
        }
        EXPECT_TRUE(held);
      }
    }
  }
}

// m activities with coefficient c do as one with coefficient m*c, beside others.
TEST(FluidTest, FoldedEqualsFlat) {
  for (uint32_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const auto draw = [&](int64_t low, int64_t high) {
      return std::uniform_int_distribution<int64_t>(low, high)(random);
    };
    Fluid flat, folded;
    const int resources = static_cast<int>(draw(1, 4));
    for (int r = 0; r < resources; ++r) {
      const int64_t capacity = draw(1'000, 1'000'000'000);
      flat.AddResource(capacity);
      folded.AddResource(capacity);
    }
    for (int64_t n = draw(1, 5); n > 0; --n) {
      const int64_t copies = draw(1, 4), cap = draw(1'000, 1'000'000'000), weight = draw(1, 3),
                    work = draw(1, 1'000'000'000);
      std::vector<Fluid::Use> one, all;
      for (int32_t r = 0; r < resources; ++r) {
        if (draw(0, 2) == 0) continue;
        const int64_t coefficient = draw(1, 3 * kOne);
        one.push_back({r, coefficient});
        all.push_back({r, coefficient * copies});
      }
      const int kind = flat.AddKind(cap, weight, one);
      for (int64_t c = 0; c < copies; ++c) flat.Start(kind, work);
      folded.Start(folded.AddKind(cap, weight, all), work);
    }
    while (folded.NextCompletion() != Fluid::kNever) {
      const int64_t next = folded.NextCompletion();
      ASSERT_EQ(flat.NextCompletion(), next);
      folded.AdvanceTo(next);
      flat.AdvanceTo(next);
    }
    EXPECT_EQ(flat.num_active(), 0);
  }
}

}  // namespace
}  // namespace plancast
