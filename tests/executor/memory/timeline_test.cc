#include "executor/memory/timeline.h"

#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/executor/graph_builder.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

std::vector<std::pair<int64_t, int64_t>> Points(const MemoryTimeline& timeline) {
  std::vector<std::pair<int64_t, int64_t>> points;
  for (const MemoryPoint& point : timeline.points) {
    points.emplace_back(point.issued, point.bytes.total());
  }
  return points;
}

// Two tasks a layer: the first keeps 100, the second borrows 5.
ExecutionGraph Layers(int layers) {
  GraphBuilder b({{"dp", 1}});
  b.Block("F").Kernel(1).Memory(false, 100).Kernel(1).Memory(false, 5).Memory(true, -5);
  b.Program("all").Run("F", {}, layers).Run("F", {}, layers, 1);
  return b.Build();
}

TEST(TimelineTest, AnInstanceIsItsHighestPointAndItsEndHoweverManyLayersItHas) {
  EXPECT_THAT(Points(MemoryOverIssueOrder(Layers(3), 0)),
              ElementsAre(Pair(0, 0), Pair(5, 305), Pair(6, 300), Pair(11, 605), Pair(12, 600)));
  EXPECT_EQ(MemoryOverIssueOrder(Layers(1000), 0).points.size(), 5u);
}

TEST(TimelineTest, EveryLayerIfAskedFor) {
  EXPECT_THAT(Points(MemoryOverIssueOrder(Layers(1), 0, {true, 100})),
              ElementsAre(Pair(0, 0), Pair(1, 105), Pair(2, 100), Pair(3, 205), Pair(4, 200)));
  EXPECT_EQ(MemoryOverIssueOrder(Layers(10), 0, {true, 100}).points.size(), 1u + 2 * 20);
}

TEST(TimelineTest, TimesAscendWithTheSlices) {
  const ExecutionGraph graph = Layers(2);
  SimResult result;
  for (int32_t micro_batch = 0; micro_batch < 2; ++micro_batch) {
    for (int32_t layer = 0; layer < 2; ++layer) {
      for (int32_t task = 0; task < 2; ++task) {
        Slice slice;
        slice.task = task;
        slice.layer = layer;
        slice.micro_batch = micro_batch;
        slice.start_ps = 1000 * micro_batch + 100 * layer + 50 * task;
        slice.end_ps = slice.start_ps + 50;
        result.slices.push_back(slice);
      }
    }
  }
  const MemoryTimeline timeline = MemoryOverIssueOrder(graph, 0);
  EXPECT_THAT(TimesOf(timeline, graph, 0, result, 0), ElementsAre(0, 150, 200, 1150, 1200));
}

}  // namespace
}  // namespace plancast
