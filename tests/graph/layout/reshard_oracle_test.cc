// Elements move between the devices of two meshes as programs say: every device gets exactly
// its part, nothing comes twice or in vain, and what is counted is what was moved.

#include <algorithm>
#include <iostream>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/layout/redistribution.h"
#include "graph/layout/reshard.h"
#include "gtest/gtest.h"
#include "tests/graph/reshard_simulator.h"
#include "tests/testing/seed.h"

namespace plancast {
namespace {

// Copies of a tile differ by at most the largest piece, and messages of one size by one.
void CheckBalance(const PairTransfers& transfers) {
  const Tiling& source = transfers.source();
  for (int64_t tile = 0; tile < source.num_tiles(); ++tile) {
    int64_t least = INT64_MAX, most = 0, largest = 0, smallest = INT64_MAX;
    size_t fewest = SIZE_MAX, greatest = 0;
    for (int64_t copy = 0; copy < source.copies; ++copy) {
      int64_t load = 0;
      const std::vector<Transfer> messages = transfers.From(source.DeviceOf(tile, copy));
      for (const Transfer& t : messages) {
        load += t.elements;
        largest = std::max(largest, t.elements);
        smallest = std::min(smallest, t.elements);
      }
      least = std::min(least, load);
      most = std::max(most, load);
      fewest = std::min(fewest, messages.size());
      greatest = std::max(greatest, messages.size());
    }
    EXPECT_LE(most - least, largest);
    if (largest == smallest) {
      EXPECT_LE(greatest - fewest, 1u);
    }
  }
}

// The messages of a device are the same whichever way one asks, and its class has them.
void CheckViews(const PairTransfers& transfers) {
  std::map<std::pair<int64_t, int64_t>, int64_t> pairs;
  transfers.ForEach([&](const Transfer& t) {
    EXPECT_TRUE(pairs.emplace(std::make_pair(t.source, t.target), t.elements).second);
  });
  const auto check = [&](const std::vector<TransferClass>& classes, size_t devices, bool sends) {
    size_t seen = 0, count = 0;
    for (const TransferClass& c : classes) {
      for (const int64_t device : c.devices) {
        ++seen;
        std::vector<int64_t> sizes;
        for (const Transfer& t : sends ? transfers.From(device) : transfers.To(device)) {
          EXPECT_EQ(sends ? t.source : t.target, device);
          const auto it = pairs.find(std::make_pair(t.source, t.target));
          ASSERT_TRUE(it != pairs.end());
          EXPECT_EQ(it->second, t.elements);
          sizes.push_back(t.elements);
        }
        std::sort(sizes.rbegin(), sizes.rend());
        EXPECT_EQ(sizes, c.messages);
        count += sizes.size();
      }
    }
    EXPECT_EQ(seen, devices);
    EXPECT_EQ(count, pairs.size());
  };
  check(transfers.Senders(), transfers.source().tile_of.size(), true);
  check(transfers.Receivers(), transfers.target().tile_of.size(), false);
}

void CheckPrograms(const ReshardProblem& problem, const std::vector<ReshardProgram>& programs) {
  int64_t direct = 0;  // what crosses if every device receives its tile from the source
  for (const ReshardProgram& program : programs) {
    ReshardSimulator simulator(program.problem);
    ASSERT_EQ(simulator.Run(program), "") << ReshardText(problem, &program);
    CheckBalance(program.transfers);
    CheckViews(program.transfers);
    ASSERT_EQ(program.transfers.kept(), simulator.Kept()) << ReshardText(problem, &program);
    int64_t wanted = 0, tiles = 0;  // by all devices; once a tile
    const Tiling target =
        Tiling::Of(program.problem.target.mesh, problem.shape, program.problem.target.layout);
    for (int64_t tile = 0; tile < target.num_tiles(); ++tile) {
      tiles += target.Elements(tile);
      wanted += target.Elements(tile) * target.copies;
    }
    switch (program.strategy) {
      case ReshardStrategy::kSendReceive:
        direct = wanted - program.transfers.kept();
        EXPECT_EQ(program.crossing(), direct);
        break;
      case ReshardStrategy::kScatterGather:
        EXPECT_EQ(program.crossing() * program.problem.target.mesh.SizeOf(program.after[0].axes),
                  direct);
        break;
      case ReshardStrategy::kBroadcast:
        EXPECT_EQ(program.crossing(), tiles);
        break;
    }
    if (testing::Test::HasFailure()) {
      ADD_FAILURE() << ReshardText(problem, &program);
      return;
    }
  }
}

class RandomProblems {
 public:
  explicit RandomProblems(uint64_t seed) : random_(seed) {}

  int64_t Below(int64_t n) { return static_cast<int64_t>(random_() % n); }

  DeviceMesh Mesh() {
    static const std::vector<std::vector<int64_t>> kSizes = {
        {1},    {2},    {8},    {5},       {2, 3},    {4, 2},
        {2, 4}, {3, 3}, {1, 6}, {2, 2, 2}, {3, 1, 2}, {2, 2, 3}};
    std::vector<MeshAxis> axes;
    for (const int64_t size : kSizes[Below(static_cast<int64_t>(kSizes.size()))]) {
      axes.push_back({std::string(1, static_cast<char>('a' + axes.size())), size});
    }
    return *DeviceMesh::Create(axes);
  }

  Layout AnyLayout(const DeviceMesh& mesh, int dims, bool halos, bool partial) {
    while (true) {
      Layout layout;
      for (int a = 0; a < mesh.num_axes(); ++a) {
        const int dim = static_cast<int>(Below(dims));
        Placement p = Placement::Shard(dim);
        const int64_t kind = Below(8);
        if (kind < 3) p = Placement::Replicate();
        if (kind == 3) p = Placement::Shard(dim, ShardPattern::kMirrored);
        if (kind == 4 && halos) p = Placement::Shard(dim, ShardPattern::kBlock, {1, 2});
        if (kind > 5 && partial) p = Placement::Partial();
        layout.placements.push_back(p);
      }
      if (layout.Verify(mesh, dims).ok()) return layout;
    }
  }

  ReshardProblem Problem(bool apart) {
    ReshardProblem problem;
    const int dims = 1 + static_cast<int>(Below(3));
    for (int d = 0; d < dims; ++d) {
      const int64_t even = 12 * (1 + Below(2)), odd = 1 + Below(13);
      problem.shape.push_back(Below(2) == 0 ? even : odd);
    }
    problem.source.mesh = Mesh();
    problem.target.mesh = Mesh();
    problem.source.layout = AnyLayout(problem.source.mesh, dims, true, false);
    problem.target.layout = AnyLayout(problem.target.mesh, dims, true, false);
    problem.source.first_device = Below(6);
    problem.target.first_device =
        apart ? problem.source.first_device + problem.source.mesh.num_devices() + Below(3)
              : Below(12);
    return problem;
  }

 private:
  std::mt19937_64 random_;
};

TEST(ReshardOracleTest, EveryDeviceGetsItsPart) {
  RandomProblems random(TestSeed(18));
  size_t programs = 0;
  for (int i = 0; i < 1500 && !HasFailure(); ++i) {
    const ReshardProblem problem = random.Problem(/*apart=*/true);
    const auto plans = PlanReshards(problem);
    ASSERT_TRUE(plans.ok()) << plans.status() << ReshardText(problem);
    CheckPrograms(problem, *plans);
    programs += plans->size();
  }
  std::cout << programs << " programs\n";
}

TEST(ReshardOracleTest, DevicesOfBothMeshesKeepWhatTheyHave) {
  RandomProblems random(TestSeed(19));
  int64_t kept = 0;
  for (int i = 0; i < 800 && !HasFailure(); ++i) {
    const ReshardProblem problem = random.Problem(/*apart=*/false);
    const auto plans = PlanReshards(problem);
    ASSERT_TRUE(plans.ok()) << plans.status() << ReshardText(problem);
    CheckPrograms(problem, *plans);
    kept += plans->front().transfers.kept();
  }
  EXPECT_GT(kept, 0);
}

// As stages of one mesh do today.
TEST(ReshardOracleTest, EqualMeshesAndLayoutsSendToTheirOwnCoordinates) {
  RandomProblems random(TestSeed(21));
  for (int i = 0; i < 500 && !HasFailure(); ++i) {
    ReshardProblem problem = random.Problem(/*apart=*/true);
    problem.source.layout = problem.source.layout.WithoutHalos();
    problem.target = problem.source;
    problem.target.first_device += problem.source.mesh.num_devices();
    const auto plans = PlanReshards(problem);
    ASSERT_TRUE(plans.ok()) << plans.status() << ReshardText(problem);
    CheckPrograms(problem, *plans);
    const ReshardSimulator simulator(problem);
    for (int64_t device = 0; device < problem.source.mesh.num_devices(); ++device) {
      const std::vector<Transfer> messages = plans->front().transfers.From(device);
      const int64_t held = simulator.Wanted(device);
      ASSERT_EQ(messages.size(), held > 0 ? 1u : 0u) << ReshardText(problem);
      if (held == 0) continue;
      EXPECT_EQ(messages[0], (Transfer{device, device, held})) << ReshardText(problem);
    }
    for (const ReshardProgram& program : *plans) {
      if (program.strategy != ReshardStrategy::kScatterGather) continue;
      // Every device has a slice to send, unless slices are fewer than devices.
      if (program.transfers.messages() < problem.source.mesh.num_devices()) continue;
      program.transfers.ForEach([](const Transfer& t) { EXPECT_EQ(t.source, t.target); });
    }
  }
}

// Partial sums become whole, in copies or in shards, which then go back.
TEST(ReshardOracleTest, GradientsAreReducedAndGoBack) {
  RandomProblems random(TestSeed(20));
  int reductions = 0;
  for (int i = 0; i < 800 && !HasFailure(); ++i) {
    const ReshardProblem forward = random.Problem(/*apart=*/true);
    const DeviceMesh& mesh = forward.target.mesh;
    const Layout gradient = random.AnyLayout(mesh, static_cast<int>(forward.shape.size()),
                                             /*halos=*/false, /*partial=*/true);
    const auto plans = PlanGradientReshards(forward, gradient);
    ASSERT_TRUE(plans.ok()) << plans.status() << ReshardText(forward);
    for (const ReshardProgram& program : *plans) {
      EXPECT_EQ(program.problem.target.layout, forward.source.layout.WithoutHalos());
      EXPECT_FALSE(program.problem.source.layout.has_partial());
      RelayoutSimulator simulator(mesh, forward.shape);
      simulator.Place(gradient);
      Layout at = gradient;
      for (const RelayoutStep& step : program.before) {
        ASSERT_EQ(simulator.Execute(at, step), "") << ReshardText(forward, &program);
        at = step.after;
        ++reductions;
      }
      ASSERT_EQ(simulator.Check(program.problem.source.layout), "")
          << ReshardText(forward, &program);
    }
    CheckPrograms({forward.shape, forward.target, forward.source}, *plans);
  }
  EXPECT_GT(reductions, 0);
}

}  // namespace
}  // namespace plancast
