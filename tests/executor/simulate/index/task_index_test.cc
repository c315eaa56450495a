#include "executor/simulate/index/task_index.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/executor/graph_builder.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kCompute = static_cast<int>(StreamKind::kCompute);
constexpr int kModel = static_cast<int>(StreamKind::kModelComm);
constexpr int kGrad = static_cast<int>(StreamKind::kGradComm);

GraphBuilder& Comm(GraphBuilder& b, std::vector<int> deps, StreamKind stream) {
  return b.Comm(CollectiveKind::kAllReduce, 8, {0}, std::move(deps), Purpose::kTp, stream);
}

// Kernels 0, 2 and 3, with communications 1 and 4.
GraphBuilder FiveTasks() {
  GraphBuilder b({{"tp", 2}});
  b.Block("F", 1).Kernel(1, {~0});
  Comm(b, {0, ~0}, StreamKind::kModelComm);
  b.Kernel(1, {0, ~0}).Kernel(1, {0, 1, 2});
  Comm(b, {0, 1, 3}, StreamKind::kGradComm);
  return b;
}

std::vector<int32_t> Row(const std::vector<int32_t>& begin, const std::vector<int32_t>& all,
                         int32_t row) {
  return {all.begin() + begin[row], all.begin() + begin[row + 1]};
}

TEST(BlockIndexTest, OrdersTasksByStream) {
  const ExecutionGraph graph = FiveTasks().Build();
  const TaskIndex index = *TaskIndex::Create(graph);
  const BlockIndex& block = index.block(0);
  EXPECT_EQ(block.size, 5);
  EXPECT_EQ(block.streams, 1 << kCompute | 1 << kModel | 1 << kGrad);
  EXPECT_EQ(block.kernel_streams, 1 << kCompute);
  EXPECT_THAT(block.order, ElementsAre(0, 2, 3, 1, 4));
  EXPECT_THAT(block.rank, ElementsAre(0, 0, 1, 2, 0));
  EXPECT_THAT(block.position, ElementsAre(0, 3, 1, 2, 4));
  EXPECT_EQ(block.Count(kCompute), 3);
  EXPECT_EQ(block.Last(kCompute), 3);
  EXPECT_EQ(block.Last(kGrad), 4);
  EXPECT_EQ(block.Count(static_cast<int>(StreamKind::kSendNext)), 0);
}

// Not for its own stream, nor twice for one stream, nor for what it has waited for;
// for the port once in each stream.
TEST(BlockIndexTest, DropsWaitsThatAddNothing) {
  const ExecutionGraph graph = FiveTasks().Build();
  const TaskIndex index = *TaskIndex::Create(graph);
  const BlockIndex& block = index.block(0);
  EXPECT_THAT(Row(block.dep_begin, block.deps, 0), ElementsAre());
  EXPECT_THAT(Row(block.dep_begin, block.deps, 1), ElementsAre(0));
  EXPECT_THAT(Row(block.dep_begin, block.deps, 2), ElementsAre());
  EXPECT_THAT(Row(block.dep_begin, block.deps, 3), ElementsAre(1));
  EXPECT_THAT(Row(block.dep_begin, block.deps, 4), ElementsAre(3, 1));
  EXPECT_THAT(Row(block.port_begin, block.ports, 0), ElementsAre(0));
  EXPECT_THAT(Row(block.port_begin, block.ports, 1), ElementsAre(0));
  EXPECT_THAT(Row(block.port_begin, block.ports, 2), ElementsAre());
}

// Calls go before a kernel's first launch; negative ones are launches that the host is spared.
TEST(BlockIndexTest, CountsCalls) {
  GraphBuilder b({{"tp", 2}});
  b.Block("F").Kernel(1).Kernel(2).Kernel(3).Kernel(4);
  b.Program("all").Run("F");
  ExecutionGraph graph = b.Build();
  graph.kernels[0].calls = 5;
  graph.kernels[1].launches = 3;
  graph.kernels[1].calls = -2;
  graph.kernels[2].launches = 2;
  graph.kernels[2].calls = -4;
  graph.kernels[3].launches = 2;
  graph.kernels[3].calls = 1;
  const TaskIndex index = *TaskIndex::Create(graph);
  const BlockIndex& block = index.block(0);
  EXPECT_THAT(block.launches, ElementsAre(0, 6, 7, 7, 10));
  EXPECT_THAT(block.first_launch, ElementsAre(6, 7, 7, 9));
  EXPECT_EQ(index.FirstLaunchOf(0, {0, 0, 3}), 2);
}

TEST(BlockIndexTest, CountsLaunchesAndWaitsOfTheHost) {
  GraphBuilder b({{"tp", 2}});
  b.Block("F").Kernel(1).Kernel(2).HostSync();
  Comm(b, {}, StreamKind::kModelComm);
  b.Kernel(1);
  b.Program("all").Run("F", {}, 2).Run("F");
  ExecutionGraph graph = b.Build();
  graph.kernels[0].launches = 3;
  const TaskIndex index = *TaskIndex::Create(graph);
  const BlockIndex& block = index.block(0);
  EXPECT_TRUE(block.syncs);
  EXPECT_FALSE(block.captured);
  EXPECT_THAT(block.launches, ElementsAre(0, 3, 4, 5, 8));
  EXPECT_THAT(block.sync_before, ElementsAre(-1, -1, 1, 1, 1));
  EXPECT_TRUE(index.program(0).syncs);
  EXPECT_THAT(index.program(0).launches_before, ElementsAre(0, 16));
  EXPECT_EQ(index.LaunchesBefore(0, {0, 1, 1}), 11);
  EXPECT_EQ(index.LaunchesBefore(0, {1, 0, 2}), 20);
  EXPECT_EQ(index.LaunchesOf(0, {1, 0, 0}), 3);
  EXPECT_EQ(index.SyncBefore(0, {0, 0, 1}), TaskRef());
  EXPECT_EQ(index.SyncBefore(0, {0, 0, 2}), (TaskRef{0, 0, 1}));
  EXPECT_EQ(index.SyncBefore(0, {0, 1, 0}), (TaskRef{0, 0, 1}));
  EXPECT_EQ(index.SyncBefore(0, {1, 0, 1}), (TaskRef{0, 1, 1}));
}

// Two layers, then what has no tasks in the compute stream, then another layer.
class TaskIndexTest : public testing::Test {
 protected:
  TaskIndexTest() {
    GraphBuilder b = std::move(FiveTasks().OutPort(3).OutPort(~0));
    b.Block("comm", 2);
    Comm(b, {~1}, StreamKind::kModelComm);
    b.OutPort(0).OutPort(~0);
    b.Program("all");
    b.Run("F", {}, 2);
    b.Run("comm", {{0, 1, 0}, {0, 0, 1}});
    b.Run("F", {{1, -1, 0}, {0, -1, -1}});
    b.Run("comm", {{1, 1, 0}, {2, 0, 1}});
    graph_ = b.Build();
    index_ = *TaskIndex::Create(graph_);
  }

  TaskIndex::Refs OfPort(int32_t instance, int32_t layer, int32_t port) const {
    TaskIndex::Refs refs;
    index_.TasksOfPort(0, instance, layer, port, refs);
    return refs;
  }
  TaskIndex::Refs WaitsOf(const TaskRef& ref) const {
    TaskIndex::Refs refs;
    index_.WaitsOf(0, ref, refs);
    return refs;
  }

  ExecutionGraph graph_;
  TaskIndex index_;
};

TEST_F(TaskIndexTest, NumbersTasksInIssueOrder) {
  EXPECT_EQ(index_.program(0).tasks, 17);
  EXPECT_THAT(index_.program(0).issue_begin, ElementsAre(0, 10, 11, 16));
  EXPECT_EQ(index_.IssueOf(0, {0, 1, 2}), 7);
  EXPECT_EQ(index_.IssueOf(0, {2, 0, 4}), 15);
  EXPECT_EQ(index_.StreamOf(0, {2, 0, 4}), kGrad);
}

TEST_F(TaskIndexTest, PlacesAscendAlongAStream) {
  const TaskRef along[] = {{0, 0, 0}, {0, 0, 2}, {0, 0, 3}, {0, 1, 0}, {2, 0, 0}};
  for (size_t i = 1; i < std::size(along); ++i) {
    EXPECT_LT(index_.PlaceOf(0, along[i - 1]), index_.PlaceOf(0, along[i])) << i;
  }
}

TEST_F(TaskIndexTest, ListsInstancesOfEachStream) {
  const ProgramIndex& program = index_.program(0);
  const auto lane = [&](int stream) {
    return std::vector<int32_t>(
        program.instances_of_streams.begin() + program.stream_begin[stream],
        program.instances_of_streams.begin() + program.stream_begin[stream + 1]);
  };
  EXPECT_THAT(lane(kCompute), ElementsAre(0, 2));
  EXPECT_THAT(lane(kModel), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(lane(kGrad), ElementsAre(0, 2));
}

TEST_F(TaskIndexTest, KnowsTheOneBeforeInTheStream) {
  EXPECT_EQ(index_.Predecessor(0, {0, 0, 0}), TaskRef());
  EXPECT_EQ(index_.Predecessor(0, {0, 0, 3}), (TaskRef{0, 0, 2}));
  EXPECT_EQ(index_.Predecessor(0, {0, 1, 0}), (TaskRef{0, 0, 3}));
  EXPECT_EQ(index_.Predecessor(0, {1, 0, 0}), (TaskRef{0, 1, 1}));
  EXPECT_EQ(index_.Predecessor(0, {2, 0, 0}), (TaskRef{0, 1, 3}));
}

TEST_F(TaskIndexTest, FindsWhatCompletesAPort) {
  // Of the first layer nothing does, of the second the first layer.
  EXPECT_THAT(OfPort(0, 0, 0), ElementsAre());
  EXPECT_THAT(OfPort(0, 1, 0), ElementsAre(TaskRef{0, 0, 3}));
  // Passed on by the last layer from the one before.
  EXPECT_THAT(OfPort(1, 0, 0), ElementsAre(TaskRef{0, 0, 3}));
  EXPECT_THAT(OfPort(1, 0, 1), ElementsAre(TaskRef{0, 1, 3}));
  EXPECT_THAT(OfPort(3, 0, 0), ElementsAre(TaskRef{0, 0, 3}));
  // All of an instance.
  EXPECT_THAT(OfPort(2, 0, 0), ElementsAre(TaskRef{1, 0, 0}));
  // What gates an instance: its number is that after the last port.
  EXPECT_THAT(OfPort(2, 0, 1), ElementsAre(TaskRef{0, 1, 3}, TaskRef{0, 1, 1}, TaskRef{0, 1, 4}));
}

TEST_F(TaskIndexTest, WaitsForOneTaskOfEachOtherStream) {
  EXPECT_THAT(WaitsOf({0, 0, 0}), ElementsAre());
  EXPECT_THAT(WaitsOf({0, 1, 1}), ElementsAre(TaskRef{0, 1, 0}));
  EXPECT_THAT(WaitsOf({0, 1, 3}), ElementsAre(TaskRef{0, 1, 1}));
  EXPECT_THAT(WaitsOf({2, 0, 0}), ElementsAre(TaskRef{1, 0, 0}, TaskRef{0, 1, 4}));
  EXPECT_THAT(WaitsOf({3, 0, 0}), ElementsAre(TaskRef{2, 0, 3}));
}

TEST_F(TaskIndexTest, MemoryOfAnotherMakesNoDifference) {
  GraphBuilder b({{"tp", 2}});
  b.Block("x").Kernel(1).Kernel(2).HostSync();
  b.Block("y").Kernel(1);
  b.Block("z").Kernel(1);
  b.Program("one").Run("x").Run("y", {}, 3);
  b.Program("two").Run("z");
  const ExecutionGraph other = b.Build();
  const TaskIndex again = *TaskIndex::Create(graph_, {}, *TaskIndex::Create(other));
  for (int32_t block = 0; block < 2; ++block) {
    const BlockIndex &one = index_.block(block), &two = again.block(block);
    EXPECT_EQ(one.order, two.order);
    EXPECT_EQ(one.rank, two.rank);
    EXPECT_EQ(one.dep_begin, two.dep_begin);
    EXPECT_EQ(one.deps, two.deps);
    EXPECT_EQ(one.ports, two.ports);
    EXPECT_EQ(one.launches, two.launches);
    EXPECT_EQ(one.sync_before, two.sync_before);
    EXPECT_EQ(one.syncs, two.syncs);
    EXPECT_TRUE(std::equal(one.order_begin, one.order_begin + kNumStreams + 1, two.order_begin));
  }
  EXPECT_EQ(index_.program(0).tasks, again.program(0).tasks);
  EXPECT_EQ(index_.program(0).instances_of_streams, again.program(0).instances_of_streams);
  EXPECT_EQ(index_.program(0).issue_begin, again.program(0).issue_begin);
  EXPECT_EQ(index_.program(0).launches_before, again.program(0).launches_before);
  EXPECT_EQ(index_.program(0).sync_before, again.program(0).sync_before);
}

TEST(CudaGraphsTest, CapturedBlocksHaveNoLaunches) {
  GraphBuilder b({{"tp", 2}});
  b.Block("F").Kernel(1).Kernel(1);
  b.Block("sync").Kernel(1).HostSync();
  b.Program("all").Run("F", {}, 4, 0).Run("F", {}, 1, 0).Run("F", {}, 1, 1);
  b.Run("sync", {}, 1, 1).Run("F", {}, 1, 1);
  const ExecutionGraph graph = b.Build();
  const TaskIndex index = *TaskIndex::Create(graph, {true});
  EXPECT_TRUE(index.block(0).captured);
  EXPECT_FALSE(index.block(1).captured);
  EXPECT_THAT(index.block(0).launches, ElementsAre(0, 0, 0));
  EXPECT_THAT(index.block(1).launches, ElementsAre(0, 1));
  // One for each micro-batch, and one after the host has waited.
  EXPECT_THAT(index.program(0).graphs, ElementsAre(1, 1, 2, 2, 3));
  EXPECT_TRUE(TaskIndex::Create(graph)->program(0).graphs.empty());
}

TEST(RendezvousTest, EachProgramComesWithATask) {
  GraphBuilder b({{"pp", 2}});
  b.Block("F").Kernel(1);
  b.Block("send").Kernel(1);
  b.Comm(CollectiveKind::kSendRecv, 8, {0}, {0}).Meets();
  b.Block("recv").Comm(CollectiveKind::kSendRecv, 8, {0}).Meets();
  const int meeting = b.Rendezvous();
  b.Program("stage 0", {{0, 0}}).Run("F").Run("send", {}, 1, 0, meeting);
  b.Program("stage 1", {{0, 1}}).Run("recv", {}, 1, 0, meeting);
  const ExecutionGraph graph = b.Build();
  const TaskIndex index = *TaskIndex::Create(graph);
  EXPECT_EQ(index.AtRendezvous(meeting, 0), (TaskRef{1, 0, 1}));
  EXPECT_EQ(index.AtRendezvous(meeting, 1), (TaskRef{0, 0, 0}));
  EXPECT_EQ(index.AtRendezvous(meeting, 2), TaskRef());
}

TEST(LimitsTest, LayersMustFitAPlace) {
  GraphBuilder b({{"tp", 2}});
  b.Block("F").Kernel(1);
  b.Program("all").Run("F", {}, (1 << 14) - 1);
  EXPECT_TRUE(TaskIndex::Create(b.Build()).ok());
  b.Run("F", {}, 1 << 14);
  EXPECT_THAT(TaskIndex::Create(b.Build()).status().message(),
              HasSubstr("program `all` has 2 instances of up to 16384 layers"));
}

}  // namespace
}  // namespace plancast
