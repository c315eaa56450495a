#include "executor/memory/allocator_replay.h"

#include "executor/memory/replay.h"
#include "gtest/gtest.h"
#include "tests/executor/graph_builder.h"
#include "tests/executor/memory/pytorch_allocator.h"
#include "tests/executor/random_plan.h"

namespace plancast {
namespace {

AllocatorParams WithReserve() {
  AllocatorParams params = PyTorch();
  params.fragmentation = 0.05;
  return params;
}

// Four layers keep 20 MiB each and work with 40; backward frees them in reverse.
ExecutionGraph Layers() {
  GraphBuilder b({{"dp", 1}});
  b.Block("F").Kernel(1).Memory(false, 40 * kMiB, MemoryKind::kWorkspace, "w");
  b.Memory(false, 20 * kMiB, MemoryKind::kActivations, "x");
  b.Memory(true, -40 * kMiB, MemoryKind::kWorkspace, "w");
  b.Block("B").Kernel(1).Memory(true, -20 * kMiB, MemoryKind::kActivations, "x");
  b.Program("all").Run("F", {}, 4).Run("B", {}, 4);
  return b.Build();
}

TEST(AllocatorReplayTest, WorkspacesBetweenKeptTensorsAreSplitAndServeAgain) {
  // 40, 20 | of the free 40 the next 40, then 20 more | ...
  const AllocatorReplay replay = ReplayAllocator(Layers(), 0, WithReserve(), {});
  EXPECT_EQ(replay.live, (40 + 4 * 20) * kMiB);
  EXPECT_EQ(replay.reserved, (40 + 4 * 20) * kMiB);
  EXPECT_FALSE(replay.out_of_memory);
}

TEST(AllocatorReplayTest, AtTheLimitItSaysWhatWouldHaveBeenNeeded) {
  const AllocatorReplay replay = ReplayAllocator(Layers(), 0, WithReserve(), {110 * kMiB});
  EXPECT_TRUE(replay.out_of_memory);
  EXPECT_EQ(replay.reserved, 120 * kMiB);
  EXPECT_EQ(replay.place.instance, 0);
  EXPECT_EQ(replay.place.layer, 3);
}

TEST(AllocatorReplayTest, StateIsThereFromTheStart) {
  ExecutionGraph graph = Layers();
  graph.programs[0].static_bytes[static_cast<int>(MemoryKind::kParameters)] = 30 * kMiB;
  EXPECT_EQ(ReplayAllocator(graph, 0, WithReserve(), {}).reserved, 150 * kMiB);
}

TEST(AllocatorReplayTest, TheFirstStepAllocatesTheOptimizersState) {
  // It lies where activations lay, which then need as much elsewhere.
  ExecutionGraph graph = Layers();
  graph.programs[0].static_bytes[static_cast<int>(MemoryKind::kOptimizer)] = 30 * kMiB;
  const AllocatorReplay replay = ReplayFirstSteps(graph, 0, WithReserve(), {});
  EXPECT_EQ(replay.live, 150 * kMiB);
  EXPECT_GE(replay.reserved, 150 * kMiB);
  // At its end the first iteration has nothing but state.
  EXPECT_EQ(ReplayFirstSteps(Layers(), 0, WithReserve(), {}).reserved, 120 * kMiB);
}

TEST(AllocatorReplayTest, SegmentsHoldWhatIsLive) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    const RandomPlan plan = DrawPlan(seed);
    for (size_t p = 0; p < plan.graph.programs.size(); ++p) {
      const auto program = static_cast<int32_t>(p);
      const AllocatorReplay replay = ReplayAllocator(plan.graph, program, WithReserve(), {});
      EXPECT_GE(replay.reserved, replay.live);
      if (replay.reserved == 0) continue;
      const AllocatorReplay again =
          ReplayAllocator(plan.graph, program, WithReserve(), {replay.reserved});
      EXPECT_FALSE(again.out_of_memory);
      EXPECT_EQ(again.reserved, replay.reserved);
    }
  }
}

TEST(AllocatorReplayTest, WhatFitsAlsoFitsInMore) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    const RandomPlan plan = DrawPlan(seed);
    for (size_t p = 0; p < plan.graph.programs.size(); ++p) {
      const auto program = static_cast<int32_t>(p);
      const AllocatorReplay all = ReplayAllocator(plan.graph, program, WithReserve(), {});
      bool fitted = false;
      for (int64_t capacity = all.live; capacity <= all.reserved; capacity += kMiB) {
        const AllocatorReplay replay =
            ReplayAllocator(plan.graph, program, WithReserve(), {capacity, all.live});
        EXPECT_EQ(replay.out_of_memory, replay.reserved > capacity);
        EXPECT_GE(!replay.out_of_memory, fitted) << seed << ": " << capacity;
        fitted = !replay.out_of_memory;
      }
    }
  }
}

TEST(AllocatorReplayTest, TheReplayDecidesNearTheCapacityAndAShareElsewhere) {
  const ExecutionGraph graph = Layers();
  MemoryOverhead overhead;
  overhead.allocator = WithReserve();
  const auto device = [&](int64_t capacity) {
    overhead.capacity_bytes = capacity;
    return DeviceBytes(graph, 0, ProfileBlocks(graph, overhead.allocator), overhead);
  };
  EXPECT_EQ(device(0), 126 * kMiB);
  EXPECT_EQ(device(1000 * kMiB), 126 * kMiB);
  EXPECT_EQ(device(122 * kMiB), 120 * kMiB);  // fits, where 5 % more would not
}

}  // namespace
}  // namespace plancast
