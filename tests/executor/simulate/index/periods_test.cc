#include "executor/simulate/index/periods.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/plan_under_test.h"
#include "tests/executor/graph_builder.h"

namespace plancast {
namespace {

// Forward and backward pass of each micro-batch, one after the other, between what
// happens once.
ExecutionGraph InTurn(int micro_batches, int odd = -1) {
  GraphBuilder b({{"dp", 1}});
  b.Block("begin").Kernel(1);
  b.Block("F", 1).Kernel(1, {~0}).OutPort(0);
  b.Block("B", 1).Kernel(2, {~0});
  b.Block("end").Kernel(1);
  b.Program("all").Run("begin");
  for (int m = 0; m < micro_batches; ++m) {
    b.Run(m == odd ? "B" : "F", {{0, -1, -1}}, 1, m);
    b.Run("B", {{b.last_instance(), 0, 0}}, 1, m);
  }
  b.Run("end");
  return b.Build();
}

// Two stages; the second does as `turns` says in each micro-batch.
ExecutionGraph TwoStages(int micro_batches, int turns, int late = -1) {
  GraphBuilder b({{"pp", 2}});
  b.Block("F").Kernel(1);
  b.Block("send").Comm(CollectiveKind::kSendRecv, 8, {0}).Meets();
  std::vector<int> meetings;
  for (int m = 0; m < micro_batches; ++m) meetings.push_back(b.Rendezvous());
  // One of the second stage is met a micro-batch later.
  b.Program("stage 0", {{0, 0}});
  for (int m = 0; m < micro_batches; ++m) {
    b.Run("F", {}, 1, m).Run("send", {}, 1, m, meetings[m]);
  }
  if (late >= 0) std::swap(meetings[late], meetings[late + 1]);
  b.Program("stage 1", {{0, 1}});
  for (int m = 0; m < micro_batches; ++m) {
    b.Run("send", {}, 1, m, meetings[m]);
    for (int t = 0; t < turns; ++t) b.Run("F", {}, 1, m);
  }
  return b.Build();
}

// How many instances in a row are as those a period later.
int32_t AlikeIn(const ExecutionGraph& graph, const Periods& periods, int32_t program) {
  int32_t alike = 0;
  for (size_t i = 0; i < graph.programs[program].instances.size(); ++i) {
    alike += periods.Alike(program, static_cast<int32_t>(i)) ? 1 : 0;
  }
  return alike;
}

TEST(PeriodsTest, MicroBatchesInTurn) {
  const ExecutionGraph graph = InTurn(8);
  const Periods periods(graph);
  EXPECT_EQ(periods.Of(0), 2);
  EXPECT_FALSE(periods.Alike(0, -1));
  EXPECT_FALSE(periods.Alike(0, 0));
  for (int32_t i = 1; i < 15; ++i) EXPECT_TRUE(periods.Alike(0, i)) << i;
  // The last micro-batch has none after it.
  for (int32_t i = 15; i < 18; ++i) EXPECT_FALSE(periods.Alike(0, i)) << i;
}

TEST(PeriodsTest, FewMicroBatchesAreNone) {
  EXPECT_EQ(Periods(InTurn(3)).Of(0), 2);
  EXPECT_EQ(Periods(InTurn(2)).Of(0), 0);
  EXPECT_EQ(Periods(InTurn(1)).Of(0), 0);
  EXPECT_EQ(Periods(InTurn(0)).Of(0), 0);
}

TEST(PeriodsTest, OneThatIsUnlikeTheOthersEndsThem) {
  const ExecutionGraph graph = InTurn(12, 9);
  const Periods periods(graph);
  EXPECT_EQ(periods.Of(0), 2);
  EXPECT_TRUE(periods.Alike(0, 16));
  EXPECT_FALSE(periods.Alike(0, 17));
  EXPECT_FALSE(periods.Alike(0, 19));
  EXPECT_TRUE(periods.Alike(0, 21));
}

TEST(PeriodsTest, JoinsAreAPeriodLaterOrWithWhatHappenedOnce) {
  ExecutionGraph graph = InTurn(12);
  Program& program = graph.programs[0];
  program.joins[program.instances[20].join_begin].from -= 2;  // as the one before
  program.joins[program.instances[17].join_begin].to_port = 0;
  const Periods periods(graph);
  EXPECT_EQ(periods.Of(0), 2);
  for (const int32_t i : {17, 20}) {
    EXPECT_FALSE(periods.Alike(0, i - 2)) << i;
    EXPECT_FALSE(periods.Alike(0, i)) << i;
  }
  EXPECT_TRUE(periods.Alike(0, 16));
  EXPECT_TRUE(periods.Alike(0, 19));
}

TEST(PeriodsTest, LayersAndPhasesCount) {
  ExecutionGraph graph = InTurn(12);
  Program& program = graph.programs[0];
  program.instances[16].layer_count = 2;
  program.instances[19].phase = Phase::kBackward;
  program.instances[22].chunk = 1;
  const Periods periods(graph);
  for (const int32_t i : {16, 19, 22}) {
    EXPECT_FALSE(periods.Alike(0, i - 2)) << i;
    EXPECT_FALSE(periods.Alike(0, i)) << i;
  }
}

TEST(PeriodsTest, ProgramsMayHavePeriodsOfTheirOwn) {
  const ExecutionGraph graph = TwoStages(8, 3);
  const Periods periods(graph);
  EXPECT_EQ(periods.Of(0), 2);
  EXPECT_EQ(periods.Of(1), 4);
  EXPECT_EQ(AlikeIn(graph, periods, 0), 14);
  EXPECT_EQ(AlikeIn(graph, periods, 1), 28);
}

TEST(PeriodsTest, PeersAreAPeriodLaterToo) {
  const ExecutionGraph graph = TwoStages(8, 1, 6);
  const Periods periods(graph);
  EXPECT_EQ(periods.Of(0), 2);
  EXPECT_TRUE(periods.Alike(0, 9));
  EXPECT_FALSE(periods.Alike(0, 11));
  EXPECT_TRUE(periods.Alike(0, 10));
}

TEST(PeriodsTest, AProgramWithoutOneSpoilsIt) {
  ExecutionGraph graph = TwoStages(8, 1);
  for (Instance& instance : graph.programs[1].instances) instance.micro_batch = 0;
  const Periods periods(graph);
  EXPECT_EQ(periods.Of(0), 0);
  EXPECT_EQ(periods.Of(1), 0);
  graph.programs.emplace_back();
  EXPECT_EQ(Periods(graph).Of(2), 0);
}

// Compiled plans.
ExecutionGraph Compiled(int64_t stages, Schedule schedule, int64_t chunks, int64_t micro_batches) {
  PlanUnderTest plan = PlanUnderTest::Of(SmallGpt());
  plan.Pp(stages, schedule, chunks).MicroBatches(1, micro_batches);
  absl::StatusOr<ExecutionGraph> graph = plan.Compile();
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

int32_t InstancesOf(const Program& program, int32_t micro_batch) {
  return static_cast<int32_t>(
      std::count_if(program.instances.begin(), program.instances.end(),
                    [&](const Instance& instance) { return instance.micro_batch == micro_batch; }));
}

// All programs repeat in their middles by so many micro-batches, one after another.
void ExpectPeriods(const ExecutionGraph& graph, int32_t micro_batches) {
  const Periods periods(graph);
  for (size_t p = 0; p < graph.programs.size(); ++p) {
    SCOPED_TRACE(testing::Message() << "program " << p);
    const auto& instances = graph.programs[p].instances;
    const int32_t length = periods.Of(static_cast<int32_t>(p));
    ASSERT_EQ(length, micro_batches * InstancesOf(graph.programs[p], 5));
    const auto middle = static_cast<int32_t>(instances.size()) / 2;
    for (int32_t i = middle - length; i < middle; ++i) {
      EXPECT_TRUE(periods.Alike(static_cast<int32_t>(p), i)) << i;
      EXPECT_EQ(instances[i + length].micro_batch, instances[i].micro_batch + micro_batches) << i;
    }
  }
}

TEST(PeriodsOfPlansTest, OneForwardOneBackward) {
  const ExecutionGraph graph = Compiled(4, Schedule::k1f1b, 1, 16);
  ASSERT_EQ(graph.programs.size(), 4);
  ExpectPeriods(graph, 1);
}

TEST(PeriodsOfPlansTest, InterleavedStagesGoRoundByTheirNumber) {
  const ExecutionGraph graph = Compiled(2, Schedule::kInterleaved, 2, 32);
  ASSERT_EQ(graph.programs.size(), 2);
  ExpectPeriods(graph, 2);
}

TEST(PeriodsOfPlansTest, NoPipeline) {
  const ExecutionGraph graph = Compiled(1, Schedule::k1f1b, 1, 16);
  ASSERT_EQ(graph.programs.size(), 1);
  ExpectPeriods(graph, 1);
}

// Parameters are gathered once, before the first micro-batch.
TEST(PeriodsOfPlansTest, ShardedOptimizers) {
  PlanUnderTest plan = PlanUnderTest::Of(SmallGpt());
  plan.Dp(2).Tp(2).Pp(4).Zero1().MicroBatches(1, 32);
  absl::StatusOr<ExecutionGraph> graph = plan.Compile();
  ASSERT_TRUE(graph.ok()) << graph.status();
  ExpectPeriods(*graph, 1);
}

// They turn round in their middles.
TEST(PeriodsOfPlansTest, AllForwardsBeforeAllBackwardsHaveNone) {
  const ExecutionGraph graph = Compiled(4, Schedule::kGpipe, 1, 16);
  const Periods periods(graph);
  for (int32_t p = 0; p < 4; ++p) EXPECT_EQ(periods.Of(p), 0) << p;
}

TEST(PeriodsOfPlansTest, APipelineThatIsHardlyFullHasNone) {
  EXPECT_EQ(Periods(Compiled(4, Schedule::k1f1b, 1, 2)).Of(0), 0);
  EXPECT_EQ(Periods(Compiled(1, Schedule::k1f1b, 1, 1)).Of(0), 0);
}

// All forward passes before all backward ones.
TEST(PeriodsTest, OneAfterAnotherIsFoundFromWithin) {
  GraphBuilder b({{"dp", 1}});
  b.Block("F", 1).Kernel(1, {~0}).OutPort(0);
  b.Block("norm").Kernel(1);
  b.Block("B", 1).Kernel(2, {~0});
  b.Program("all");
  for (int m = 0; m < 80; ++m) b.Run("F", {}, 1, m);
  for (int m = 0; m < 80; ++m) b.Run("norm", {}, 1, m).Run("B", {}, 1, m);
  const ExecutionGraph graph = b.Build();
  Periods periods(graph);
  EXPECT_FALSE(periods.found());
  EXPECT_TRUE(periods.FindFrom({4}));
  EXPECT_EQ(periods.Of(0), 1);
  EXPECT_TRUE(periods.Alike(0, 78));
  EXPECT_FALSE(periods.Alike(0, 79));
  // What is left of them does not make a while.
  EXPECT_FALSE(periods.FindFrom({44}));
  EXPECT_FALSE(periods.found());
  EXPECT_TRUE(periods.FindFrom({85}));
  EXPECT_EQ(periods.Of(0), 2);
  EXPECT_TRUE(periods.FindFrom({4}));
  periods.Forget();
  EXPECT_FALSE(periods.found());
}

// Tables turn after several steps of a rule; programs that do so after unlike numbers of
// micro-batches have a period when all have.
TEST(PeriodsTest, SeveralMicroBatchesMayBeOnePeriod) {
  GraphBuilder b({{"pp", 2}});
  b.Block("F", 1).Kernel(1, {~0}).OutPort(0);
  b.Block("B", 1).Kernel(2, {~0});
  b.Program("two", {{0, 0}});
  for (int m = 0; m < 80; m += 2) {
    b.Run("F", {}, 1, m).Run("F", {}, 1, m + 1).Run("B", {}, 1, m).Run("B", {}, 1, m + 1);
  }
  b.Program("three", {{0, 1}});
  for (int m = 0; m < 81; m += 3) {
    for (int i = 0; i < 3; ++i) b.Run("F", {}, 1, m + i);
    for (int i = 0; i < 3; ++i) b.Run("B", {}, 1, m + i);
  }
  const ExecutionGraph graph = b.Build();
  Periods periods(graph);
  periods.Forget();
  EXPECT_TRUE(periods.FindFrom({4, 6}));
  EXPECT_EQ(periods.Of(0), 12);
  EXPECT_EQ(periods.Of(1), 12);
  EXPECT_TRUE(periods.Widen(2));
  EXPECT_EQ(periods.Of(0), 24);
  periods.Narrow(2);
  EXPECT_EQ(periods.Of(0), 12);
}

}  // namespace
}  // namespace plancast
