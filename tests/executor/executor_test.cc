#include "executor/executor.h"

#include <algorithm>
#include <map>

#include "gtest/gtest.h"
#include "tests/executor/graph_builder.h"

namespace plancast {
namespace {

// Two stages, `replicas` of 4 GPUs each, `micro_batches` of `layers` layers.
ExecutionGraph TwoStages(int64_t replicas, int layers, int micro_batches) {
  GraphBuilder b({{"pp", 2}, {"dp", replicas}, {"tp", 4}});
  b.Block("F", 1).Kernel(0.01, {~0}).Memory(false, 100);
  b.Comm(CollectiveKind::kAllReduce, 10'000'000, {2}, {0}).OutPort(1);
  b.Block("send", 1).Comm(CollectiveKind::kSendRecv, 1'000'000, {0}, {~0}, Purpose::kPp,
                          StreamKind::kSendNext);
  b.Meets();
  b.Block("recv").Comm(CollectiveKind::kSendRecv, 1'000'000, {0}, {}, Purpose::kPp,
                       StreamKind::kRecvPrev);
  b.Meets().OutPort(0);
  b.Block("optimizer", 1)
      .Comm(CollectiveKind::kAllReduce, 100'000'000, {1}, {~0}, Purpose::kDp,
            StreamKind::kGradComm);
  b.Kernel(0.02, {0}, Purpose::kOptimizer);
  std::vector<int> meetings;
  b.Program("stage 0", {{0, 0}});
  for (int m = 0; m < micro_batches; ++m) {
    b.Run("F", {}, layers, m);
    meetings.push_back(b.Rendezvous());
    b.Run("send", {{b.last_instance(), 0, 0}}, 1, m, meetings.back());
  }
  b.Run("optimizer", {{b.last_instance(), -1, 0}});
  b.Program("stage 1", {{0, 1}});
  for (int m = 0; m < micro_batches; ++m) {
    b.Run("recv", {}, 1, m, meetings[m]);
    b.Run("F", {{b.last_instance(), 0, 0}}, layers, m);
  }
  b.Run("optimizer", {{b.last_instance(), -1, 0}});
  return b.Build();
}

SimResult Go(const ExecutionGraph& graph, int64_t hosts, bool timeline = false) {
  const Machine machine = *Machine::Create(UnitMachine(hosts, 8));
  RuntimeParams runtime;
  runtime.launch_s = 5e-6;
  runtime.iteration_s = 0.01;
  SimulateOptions options;
  options.timeline = timeline;
  const auto result = Execute(graph, machine, UnitCost(), runtime, options);
  EXPECT_TRUE(result.ok()) << result.status();
  return *result;
}

TEST(ExecutorTest, BreakdownsAndTheCriticalPathSumToTheMakespan) {
  const SimResult result = Go(TwoStages(4, 3, 5), 4);
  ASSERT_EQ(result.classes.size(), 2);
  for (const DeviceClassResult& row : result.classes) {
    EXPECT_EQ(row.breakdown.total(), result.makespan_ps) << row.name;
    EXPECT_EQ(row.breakdown.compute, 150'000'000'000) << row.name;
    EXPECT_GT(row.breakdown.exposed_tp, 0) << row.name;
    EXPECT_GT(row.breakdown.exposed_dp, 0) << row.name;
    EXPECT_EQ(row.breakdown.other, 10'000'000'000) << row.name;
    EXPECT_EQ(row.devices, 16);
  }
  EXPECT_EQ(result.critical_path.total(), result.makespan_ps);
  EXPECT_GT(result.factors.at("unit/kernel").seconds, 0.15);
  EXPECT_GT(result.provenance_seconds.at("analytic"), 0.15);
}

TEST(ExecutorTest, CudaGraphsTakeLaunchesOffSmallKernels) {
  // Ten layers of four kernels of 1 us: the host needs 10 us for each launch.
  GraphBuilder b({{"dp", 1}});
  b.Block("F", 1);
  for (int i = 0; i < 4; ++i) b.Kernel(1e-6);
  b.Program("all").Run("F", {}, 10, 0).Run("F", {}, 10, 1);
  const Machine machine = *Machine::Create(UnitMachine(1, 1));
  RuntimeParams runtime;
  runtime.launch_s = 10e-6;
  runtime.graph_launch_s = 25e-6;
  const auto eager = Execute(b.Build(), machine, UnitCost(), runtime);
  ASSERT_TRUE(eager.ok()) << eager.status();
  // 80 launches, and the last kernel.
  EXPECT_EQ(eager->makespan_ps, 801'000'000);
  EXPECT_EQ(eager->classes[0].breakdown.launch, 721'000'000);
  runtime.cuda_graphs = true;
  const auto graphs = Execute(b.Build(), machine, UnitCost(), runtime);
  ASSERT_TRUE(graphs.ok()) << graphs.status();
  // A graph for each micro-batch of 40 us; the second is launched alongside the first.
  EXPECT_EQ(graphs->makespan_ps, 25'000'000 + 80'000'000);
  EXPECT_EQ(graphs->classes[0].breakdown.launch, 25'000'000);
}

TEST(ExecutorTest, WhatTheHostWaitsForIsNotCaptured) {
  GraphBuilder b({{"dp", 1}});
  b.Block("F").Kernel(1e-6).Kernel(1e-6).HostSync();
  b.Block("B").Kernel(1e-6).Kernel(1e-6);
  b.Program("all").Run("F").Run("B");
  const Machine machine = *Machine::Create(UnitMachine(1, 1));
  RuntimeParams runtime;
  runtime.launch_s = 10e-6;
  runtime.graph_launch_s = 5e-6;
  runtime.cuda_graphs = true;
  const auto result = Execute(b.Build(), machine, UnitCost(), runtime);
  ASSERT_TRUE(result.ok()) << result.status();
  // Launches at 10 and 20, over at 21; the graph at 26, two kernels.
  EXPECT_EQ(result->makespan_ps, 28'000'000);
}

TEST(ExecutorTest, CountersGrowWithClassesAndInstancesOnly) {
  const Counters one = Go(TwoStages(2, 3, 5), 2).counters;
  const Counters wide = Go(TwoStages(16, 3, 5), 16).counters;
  const Counters deep = Go(TwoStages(2, 6, 5), 2).counters;
  EXPECT_EQ(wide.tasks, 8 * one.tasks);
  EXPECT_EQ(wide.device_classes, one.device_classes);
  EXPECT_EQ(wide.instances, one.instances);
  EXPECT_EQ(wide.materialised_tasks, one.materialised_tasks);
  EXPECT_EQ(deep.blocks, one.blocks);
  EXPECT_EQ(deep.instances, one.instances);
}

// A module of which nothing is left to do, e.g. one that only renames.
TEST(ExecutorTest, BlocksWithoutTasksTakeNothing) {
  GraphBuilder b({{"tp", 4}});
  b.Block("nothing", 1).OutPort(~0);
  b.Block("F", 1).Kernel(0.01, {~0});
  b.Program("all", {});
  b.Run("nothing", {}, 3);
  b.Run("F", {{b.last_instance(), 0, 0}}, 2);
  const SimResult result = Go(b.Build(), 1);
  EXPECT_EQ(result.counters.tasks, 2 * 4);
  EXPECT_EQ(result.classes[0].breakdown.total(), result.makespan_ps);
}

TEST(ExecutorTest, SlicesOfAStreamDoNotOverlap) {
  const SimResult result = Go(TwoStages(4, 3, 5), 4, /*timeline=*/true);
  EXPECT_EQ(static_cast<int64_t>(result.slices.size()), result.counters.tasks / 16);
  EXPECT_TRUE(
      std::is_sorted(result.slices.begin(), result.slices.end(),
                     [](const Slice& a, const Slice& b) { return a.start_ps < b.start_ps; }));
  std::map<std::pair<int32_t, StreamKind>, int64_t> end;
  for (const Slice& slice : result.slices) {
    int64_t& last = end[{slice.device_class, slice.stream}];
    EXPECT_GE(slice.start_ps, last);
    last = slice.end_ps;
  }
}

TEST(ExecutorTest, ABrokenGraphIsAnError) {
  ExecutionGraph graph = TwoStages(2, 1, 1);
  graph.rendezvous[0].parties.pop_back();
  const Machine machine = *Machine::Create(UnitMachine(2, 8));
  EXPECT_FALSE(Execute(graph, machine, UnitCost(), RuntimeParams()).ok());
}

TEST(ExecutorTest, RunsAreEqualToTheLastDigit) {
  const ExecutionGraph graph = TwoStages(4, 3, 5);
  EXPECT_EQ(Go(graph, 4).makespan_ps, Go(graph, 4).makespan_ps);
}

}  // namespace
}  // namespace plancast
