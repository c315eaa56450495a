#include "executor/memory.h"

#include "gtest/gtest.h"
#include "tests/executor/graph_builder.h"

namespace plancast {
namespace {

TEST(MemoryTest, CopiesThatLeaveSomethingPeakInTheLast) {
  GraphBuilder b({{"dp", 1}});
  b.Block("F").Kernel(1).Memory(false, 10).Memory(false, 5, MemoryKind::kWorkspace);
  b.Memory(true, -5, MemoryKind::kWorkspace);
  b.Program("all").Run("F", {}, 4);
  ExecutionGraph graph = b.Build();
  graph.programs[0].static_bytes[static_cast<int>(MemoryKind::kParameters)] = 100;
  const ClassMemory memory = ReplayProgram(graph, 0, RuntimeParams());
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
  EXPECT_EQ(ReplayProgram(b.Build(), 0, RuntimeParams()).allocated, 47);
}

TEST(MemoryTest, ReservedAndDeviceAddWhatTheRuntimeTakes) {
  GraphBuilder b({{"dp", 1}});
  b.Block("F").Kernel(1).Memory(false, 1000);
  b.Program("all").Run("F");
  RuntimeParams runtime;
  runtime.allocator_rounding = 0.05;
  runtime.context_bytes = 300;
  const ClassMemory memory = ReplayProgram(b.Build(), 0, runtime);
  EXPECT_EQ(memory.allocated, 1000);
  EXPECT_EQ(memory.reserved, 1050);
  EXPECT_EQ(memory.device, 1350);
}

}  // namespace
}  // namespace plancast
