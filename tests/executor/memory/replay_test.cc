#include "executor/memory/replay.h"

#include "gtest/gtest.h"
#include "tests/executor/graph_builder.h"

namespace plancast {
namespace {

ClassMemory Replayed(const ExecutionGraph& graph, const MemoryOverhead& overhead = {}) {
  return ReplayProgram(graph, 0, ProfileBlocks(graph, overhead.allocator), overhead);
}

TEST(MemoryTest, CopiesThatLeaveSomethingPeakInTheLast) {
  GraphBuilder b({{"dp", 1}});
  b.Block("F").Kernel(1).Memory(false, 10).Memory(false, 5, MemoryKind::kWorkspace);
  b.Memory(true, -5, MemoryKind::kWorkspace);
  b.Program("all").Run("F", {}, 4);
  ExecutionGraph graph = b.Build();
  graph.programs[0].static_bytes[static_cast<int>(MemoryKind::kParameters)] = 100;
  const ClassMemory memory = Replayed(graph);
  EXPECT_EQ(memory.allocated, 145);
  EXPECT_EQ(memory.bytes[static_cast<int>(MemoryKind::kParameters)], 100);
  EXPECT_EQ(memory.bytes[static_cast<int>(MemoryKind::kActivations)], 40);
  EXPECT_EQ(memory.bytes[static_cast<int>(MemoryKind::kWorkspace)], 5);
}

TEST(MemoryTest, CopiesThatFreePeakInTheFirst) {
  GraphBuilder b({{"dp", 1}});
  b.Block("F").Kernel(1).Memory(false, 10);
  b.Block("B").Kernel(1).Memory(false, 7, MemoryKind::kGradients).Memory(true, -17);
  b.Program("all").Run("F", {}, 4).Run("B", {}, 4);
  EXPECT_EQ(Replayed(b.Build()).allocated, 47);
}

TEST(MemoryTest, ReservedAndDeviceAddWhatIsNamed) {
  GraphBuilder b({{"dp", 4}});
  b.Block("F").Kernel(1).Memory(false, 1000).Comm(CollectiveKind::kAllReduce, 8, {0});
  b.Program("all").Run("F");
  MemoryOverhead overhead;
  overhead.allocator.block_bytes = 512;
  overhead.allocator.fragmentation = 0.5;
  overhead.communicators.fixed_bytes = 70;
  overhead.context_bytes = 300;
  const ClassMemory memory = Replayed(b.Build(), overhead);
  EXPECT_EQ(memory.allocated, 1000);
  EXPECT_EQ(memory.rounding, 24);
  EXPECT_EQ(memory.fragmentation, 512);
  EXPECT_EQ(memory.reserved, 1536);
  EXPECT_EQ(memory.nccl, 70);
  EXPECT_EQ(memory.context, 300);
  EXPECT_EQ(memory.device, 1906);
}

TEST(MemoryTest, PoolsKeepTheirSegmentsWhenAnotherPeaks) {
  GraphBuilder b({{"dp", 1}});
  b.Block("small").Kernel(1).Memory(false, 600, MemoryKind::kActivations, "s");
  b.Memory(true, -600, MemoryKind::kActivations, "s");
  b.Block("large").Kernel(1).Memory(false, 5000, MemoryKind::kActivations, "l");
  b.Memory(true, -5000, MemoryKind::kActivations, "l");
  b.Program("all").Run("small", {}, 3).Run("large", {}, 2).Run("small");
  MemoryOverhead overhead;
  overhead.allocator.block_bytes = 512;
  overhead.allocator.small_bytes = 1024;
  overhead.allocator.small_segment_bytes = 2048;
  overhead.allocator.middle_segment_bytes = 4096;
  const ClassMemory memory = Replayed(b.Build(), overhead);
  EXPECT_EQ(memory.allocated, 5000);
  EXPECT_EQ(memory.reserved, 2048 + 8192);
}

TEST(MemoryTest, ThePlaceOfThePeakIsTheFirstOfTheHighest) {
  GraphBuilder b({{"dp", 1}});
  b.Block("F").Kernel(1).Memory(false, 10).Kernel(1).Memory(false, 5).Memory(true, -5);
  b.Block("B").Kernel(1).Memory(true, -10);
  b.Program("all").Run("F", {}, 3).Run("B", {}, 3).Run("F", {}, 3).Run("B", {}, 3);
  const ExecutionGraph graph = b.Build();
  const Peak peak = FindPeak(graph, 0, ProfileBlocks(graph, AllocatorParams()));
  EXPECT_EQ(peak.allocated, 35);
  EXPECT_EQ(peak.place.instance, 0);
  EXPECT_EQ(peak.place.layer, 2);
  EXPECT_EQ(peak.place.events, 2);
}

}  // namespace
}  // namespace plancast
