// Every pair of layouts, executed on simulated devices, gives the tensor
// again, and nothing moves that need not.

#include <iostream>
#include <random>
#include <vector>

#include "graph/layout/relayout.h"
#include "gtest/gtest.h"
#include "tests/graph/relayout_simulator.h"
#include "tests/testing/seed.h"

namespace plancast {
namespace {

// All layouts of a tensor with `dims` dims, less those that mix reductions:
// a sum over one axis and a maximum over another do not commute.
std::vector<Layout> AllLayouts(const DeviceMesh& mesh, int dims) {
  std::vector<Placement> choices = {Placement::Replicate(), Placement::Partial(Reduction::kSum),
                                    Placement::Partial(Reduction::kMax), Placement::On(0),
                                    Placement::On(1)};
  for (int d = 0; d < dims; ++d) {
    choices.push_back(Placement::Shard(d));
    choices.push_back(Placement::Shard(d, ShardPattern::kMirrored));
    choices.push_back(Placement::Shard(d, ShardPattern::kBlock, d == 0 ? Halo{1, 1} : Halo{0, 2}));
  }
  std::vector<Layout> layouts = {Layout{}};
  for (int a = 0; a < mesh.num_axes(); ++a) {
    std::vector<Layout> longer;
    for (const Layout& layout : layouts) {
      for (const Placement& p : choices) {
        longer.push_back(layout);
        longer.back().placements.push_back(p);
      }
    }
    layouts = std::move(longer);
  }
  std::vector<Layout> valid;
  for (const Layout& layout : layouts) {
    bool sum = false, max = false;
    for (const Placement& p : layout.placements) {
      sum |= p.is_partial() && p.reduction == Reduction::kSum;
      max |= p.is_partial() && p.reduction == Reduction::kMax;
    }
    if (!(sum && max) && layout.Verify(mesh, dims).ok()) valid.push_back(layout);
  }
  return valid;
}

// Two axes cut one dim. If its size does not divide, nested shards are padded
// and do not line up with those of one axis, so such plans are left out.
bool Nests(const Layout& layout) {
  for (size_t a = 0; a < layout.placements.size(); ++a) {
    for (size_t b = 0; b < a; ++b) {
      const Placement &p = layout.placements[a], &q = layout.placements[b];
      if (p.is_shard() && q.is_shard() && p.dim == q.dim) return true;
    }
  }
  return false;
}

bool Mixes(const Layout& a, const Layout& b) {
  auto has = [](const Layout& layout, Reduction r) {
    for (const Placement& p : layout.placements) {
      if (p.is_partial() && p.reduction == r) return true;
    }
    return false;
  };
  return (has(a, Reduction::kSum) && has(b, Reduction::kMax)) ||
         (has(a, Reduction::kMax) && has(b, Reduction::kSum));
}

bool IsOnSome(const Layout& layout) {
  return std::any_of(layout.placements.begin(), layout.placements.end(),
                     [](const Placement& p) { return p.is_on(); });
}

// `even`: all shards are of one size. Then the busiest device receives what it
// lacks and no element more, unless a reduction is due or a root sends.
void CheckPair(const DeviceMesh& mesh, const std::vector<int64_t>& shape, const Layout& source,
               const Layout& target, bool even) {
  absl::StatusOr<Relayout> plan = PlanRelayout(mesh, shape, source, target);
  ASSERT_TRUE(plan.ok()) << plan.status();
  if (!even) {
    for (const RelayoutStep& step : plan->steps) {
      if (Nests(step.after)) return;
    }
    if (Nests(source)) return;
  }
  RelayoutSimulator simulator(mesh, shape);
  const std::string context = absl::StrCat(source.DebugString(mesh), " -> ",
                                           target.DebugString(mesh), "\n", plan->DebugString(mesh));
  simulator.Place(source);
  ASSERT_EQ(simulator.Check(source), "") << context;
  Layout at = source;
  for (const RelayoutStep& step : plan->steps) {
    ASSERT_EQ(simulator.Execute(at, step), "") << context;
    at = step.after;
    if (!Mixes(source, target)) {
      ASSERT_EQ(simulator.Check(at), "") << context;
    }
  }
  ASSERT_EQ(at, target) << context;
  ASSERT_EQ(simulator.Check(target), "") << context;
  if (even && !source.has_partial() && !target.has_partial() && !IsOnSome(source) &&
      !IsOnSome(target)) {
    EXPECT_EQ(plan->received(), simulator.Missing(source, target)) << context;
  }
}

TEST(RelayoutOracleTest, EveryPairOnTwoByThree) {
  const DeviceMesh mesh = *DeviceMesh::Create({{"a", 2}, {"b", 3}});
  const std::vector<Layout> layouts = AllLayouts(mesh, 2);
  int pairs = 0;
  for (const Layout& source : layouts) {
    for (const Layout& target : layouts) {
      CheckPair(mesh, {12, 12}, source, target, /*even=*/true);
      CheckPair(mesh, {11, 8}, source, target, /*even=*/false);
      if (HasFailure()) return;
      ++pairs;
    }
  }
  std::cout << pairs << " pairs\n";
}

TEST(RelayoutOracleTest, RandomPairsOnThreeAxes) {
  const uint64_t seed = TestSeed(2);
  std::mt19937_64 random(seed);
  const DeviceMesh mesh = *DeviceMesh::Create({{"a", 2}, {"b", 3}, {"c", 2}});
  const std::vector<Layout> layouts = AllLayouts(mesh, 2);
  for (int i = 0; i < 2000 && !HasFailure(); ++i) {
    CheckPair(mesh, {24, 24}, layouts[random() % layouts.size()],
              layouts[random() % layouts.size()], /*even=*/true);
  }
}

// Ending a reduction over n partial copies takes at least (n - 1) additions of
// every element; handing all of them to everybody takes as much again. No
// schedule is cheaper in the sum over devices, and ours spreads it evenly.
TEST(RelayoutOracleTest, ReductionsMoveTheLeast) {
  const DeviceMesh mesh = *DeviceMesh::Create({{"a", 2}, {"b", 3}});
  const int64_t size = 144;
  auto received = [&](Placement a, Placement b, Placement a2, Placement b2) {
    return PlanRelayout(mesh, {12, 12}, {{a, b}}, {{a2, b2}})->received();
  };
  const Placement r = Placement::Replicate(), p = Placement::Partial(), s0 = Placement::Shard(0),
                  s1 = Placement::Shard(1);
  EXPECT_EQ(received(r, p, r, r), 2 * size * 2 / 3);
  EXPECT_EQ(received(r, p, r, s0), size * 2 / 3);
  EXPECT_EQ(received(p, p, r, r), 2 * size * 5 / 6);
  EXPECT_EQ(received(p, p, s0, s0), size * 5 / 6);
  EXPECT_EQ(received(p, p, s0, s1), size / 2 + size / 2 * 2 / 3);
  EXPECT_EQ(received(p, s0, r, s0), size / 3);
  EXPECT_EQ(received(s0, p, s0, s0), size / 2 * 2 / 3);
  // Reduce first, on the shard; then gather.
  EXPECT_EQ(received(p, s0, r, r), size / 3 + size * 2 / 3);
}

}  // namespace
}  // namespace plancast
