#include "executor/memory/reasons.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/executor/graph_builder.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> Lines(const PeakReasons& reasons) {
  std::vector<std::string> lines;
  for (const LiveTensor& tensor : reasons.tensors) {
    lines.push_back(absl::StrCat(tensor.name, " ", tensor.copies, " x ", tensor.bytes_each, " of ",
                                 absl::StrJoin(tensor.micro_batches, ",")));
  }
  return lines;
}

// Two micro-batches of three layers forward, then backward.
GraphBuilder TwoMicroBatches() {
  GraphBuilder b({{"dp", 1}});
  const MemoryKind kind = MemoryKind::kActivations;
  b.Block("layers.F").Kernel(1).Memory(false, 100, kind, "layers.*.fc1.y");
  b.Memory(false, 7, kind, "layers.*.tmp").Memory(true, -7, kind, "layers.*.tmp");
  b.Block("layers.B").Kernel(1).Memory(false, 30, kind, "d layers.*.fc1.y");
  b.Memory(true, -30, kind, "d layers.*.fc1.y").Memory(true, -100, kind, "layers.*.fc1.y");
  b.Program("all");
  b.Run("layers.F", {}, 3, 0).Run("layers.F", {}, 3, 1);
  b.Run("layers.B", {}, 3, 0).Run("layers.B", {}, 3, 1);
  return b;
}

TEST(ReasonsTest, NameWhatIsAliveWithCopiesAndMicroBatches) {
  ExecutionGraph graph = TwoMicroBatches().Build();
  graph.programs[0].static_bytes[static_cast<int>(MemoryKind::kParameters)] = 50;
  graph.programs[0].static_bytes[static_cast<int>(MemoryKind::kOptimizer)] = 200;
  const PeakReasons reasons = ExplainPeak(graph, 0);
  EXPECT_EQ(reasons.allocated, 600 + 30 + 250);
  EXPECT_EQ(reasons.block, "layers.B");
  EXPECT_EQ(reasons.micro_batch, 0);
  EXPECT_EQ(reasons.layer, 0);
  EXPECT_THAT(Lines(reasons), ElementsAre("layers.*.fc1.y 6 x 100 of 0,1", "optimizer 1 x 200 of ",
                                          "parameters 1 x 50 of ", "d layers.*.fc1.y 1 x 30 of 0"));
}

TEST(ReasonsTest, ATensorIsCalledByWhoHoldsIt) {
  GraphBuilder b({{"dp", 1}});
  const MemoryKind kind = MemoryKind::kActivations;
  b.Block("embedding.F").Kernel(1).Memory(false, 10, kind, "embedding.y");
  b.Block("layers.F").Kernel(1).Memory(false, 10, kind, "layers.*.y");
  b.Program("all").Run("embedding.F").Run("layers.F", {}, 2);
  ExecutionGraph graph = b.Build();
  graph.blocks[0].gives = {{0, 10}};
  graph.blocks[1].tensors.push_back("layers.*.x");
  graph.blocks[1].takes = {{1, 10}};
  graph.blocks[1].gives = {{0, 10}};
  EXPECT_THAT(Lines(ExplainPeak(graph, 0)),
              ElementsAre("layers.*.x 2 x 10 of 0", "layers.*.y 1 x 10 of 0"));
  // Nobody holds what the last layer has made until somebody takes it.
  graph.programs[0].instances[1].layer_count = 1;
  graph.blocks.push_back(graph.blocks[0]);
  graph.blocks.back().tensors = {"other"};
  graph.blocks.back().gives.clear();
  graph.programs[0].instances.push_back(graph.programs[0].instances[0]);
  graph.programs[0].instances.back().block = 2;
  EXPECT_THAT(
      Lines(ExplainPeak(graph, 0)),
      ElementsAre("(between modules) 1 x 10 of 0", "layers.*.x 1 x 10 of 0", "other 1 x 10 of 0"));
}

// Gradients of a unit come one by one and go together.
TEST(ReasonsTest, PartsThatGoTogetherAreOneTensor) {
  GraphBuilder b({{"dp", 1}});
  const MemoryKind kind = MemoryKind::kGradients;
  b.Block("layers.B").Kernel(1).Memory(false, 10, kind, "d layer");
  b.Memory(false, 20, kind, "d layer").Memory(true, -30, kind, "d layer");
  b.Block("head.B").Kernel(1).Memory(false, 40, kind, "d head");
  b.Program("all").Run("layers.B", {}, 3).Run("head.B");
  const PeakReasons reasons = ExplainPeak(b.Build(), 0);
  EXPECT_EQ(reasons.allocated, 40);
  EXPECT_THAT(Lines(reasons), ElementsAre("d head 1 x 40 of 0"));
}

TEST(ReasonsTest, AProgramWithoutActivationsHasItsStateAlone) {
  GraphBuilder b({{"dp", 1}});
  b.Block("F").Kernel(1);
  b.Program("all").Run("F");
  ExecutionGraph graph = b.Build();
  graph.programs[0].static_bytes[static_cast<int>(MemoryKind::kGradients)] = 5;
  const PeakReasons reasons = ExplainPeak(graph, 0);
  EXPECT_EQ(reasons.block, "");
  EXPECT_THAT(Lines(reasons), ElementsAre("gradients 1 x 5 of "));
}

}  // namespace
}  // namespace plancast
