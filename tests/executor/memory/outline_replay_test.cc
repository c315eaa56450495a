#include "executor/memory/outline_replay.h"

#include <random>
#include <vector>

#include "executor/memory/allocator_replay.h"
#include "executor/memory/replay.h"
#include "gtest/gtest.h"
#include "tests/executor/memory/pytorch_allocator.h"
#include "tests/executor/random_plan.h"
#include "tests/testing/seed.h"

namespace plancast {
namespace {

// Every program cut into parts at random; equal neighbours of one instance share a part.
ProgramOutline OutlineOf(const Program& program, std::mt19937& random) {
  ProgramOutline outline;
  outline.written = program;
  const auto size = static_cast<int32_t>(program.instances.size());
  for (int32_t begin = 0; begin < size;) {
    const auto end = std::min(size, begin + 1 + static_cast<int32_t>(random() % 4));
    outline.turns.push_back({static_cast<int32_t>(outline.parts.size()), 0});
    outline.parts.push_back({begin, end, 0});
    begin = end;
  }
  return outline;
}

TEST(OutlineReplayTest, PeaksAndPlacesAreThoseOfThePrograms) {
  std::mt19937 random(TestSeed(11));
  const AllocatorParams params = PyTorch();
  for (uint32_t seed = 0; seed < 60; ++seed) {
    const ExecutionGraph graph = DrawPlan(seed).graph;
    const std::vector<BlockProfile> profiles = ProfileBlocks(graph, params);
    std::vector<const BlockProfile*> by_number;
    for (const BlockProfile& profile : profiles) by_number.push_back(&profile);
    TensorNames numbers;
    std::vector<std::vector<int32_t>> names;
    for (const Block& block : graph.blocks) names.push_back(numbers.NumbersOf(block));
    std::vector<NamedBlock> named;
    for (size_t b = 0; b < names.size(); ++b) named.push_back({&graph.blocks[b], &names[b]});
    for (size_t p = 0; p < graph.programs.size(); ++p) {
      const auto program = static_cast<int32_t>(p);
      const ProgramOutline outline = OutlineOf(graph.programs[p], random);
      std::vector<PartProfile> parts;
      const Peak peak = FindPeak(outline, by_number, &parts);
      const Peak exact = FindPeak(graph, program, profiles);
      EXPECT_EQ(peak.allocated, exact.allocated);
      EXPECT_EQ(peak.pools.small, exact.pools.small);
      EXPECT_EQ(peak.pools.large, exact.pools.large);
      EXPECT_EQ(peak.largest, exact.largest);
      const AllocatorReplay placed = ReplayAllocator(outline, named, numbers.size(), params, {});
      EXPECT_EQ(placed.reserved, ReplayAllocator(graph, program, params, {}).reserved);
    }
  }
}

TEST(OutlineReplayTest, WhatComesAgainLeavesAsMuchAsItFinds) {
  ProgramOutline outline;
  outline.written.instances.resize(2);
  for (int32_t i = 0; i < 2; ++i) {
    outline.written.instances[i].block = i;
    outline.parts.push_back({i, i + 1, 0});
    outline.turns.push_back({i, 0});
  }
  BlockProfile takes, gives;
  takes.live.net = takes.large_pool.net = takes.host = 10;
  gives.live.net = gives.large_pool.net = gives.host = -10;
  const auto leaves = [&](int32_t begin, int32_t end) {
    outline.like_begin = begin;
    outline.like_end = end;
    return LeavesAsMuch(outline, std::vector<const BlockProfile*>{&takes, &gives});
  };
  EXPECT_TRUE(leaves(0, 0));
  EXPECT_TRUE(leaves(0, 2));
  EXPECT_FALSE(leaves(0, 1));
  gives.large_pool.net = -9;  // rounded otherwise
  EXPECT_FALSE(leaves(0, 2));
  gives.large_pool.net = -10, gives.host = 0;
  EXPECT_FALSE(leaves(0, 2));
}

}  // namespace
}  // namespace plancast
