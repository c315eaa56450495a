#include "executor/dag/execute_dags.h"

#include <algorithm>
#include <vector>

#include "collectives/realise.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/executor/graph_builder.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = DagTask::Kind;

constexpr int64_t kMiB = 1 << 20;

Machine UnitMachineOf(int64_t hosts, int64_t gpus) {
  auto machine = Machine::Create(UnitMachine(hosts, gpus));
  EXPECT_OK(machine);
  return *std::move(machine);
}

DagTask Kernel(int64_t ps) {
  DagTask task;
  task.kind = Kind::kKernel;
  task.duration_ps = ps;
  return task;
}

DagTask Reduce(int64_t bytes, int32_t group = 0) {
  DagTask task;
  task.kind = Kind::kCollective;
  task.bytes = bytes;
  task.group = group;
  return task;
}

DagTask Message(bool send, int64_t peer, int64_t bytes, int64_t tag = 0) {
  DagTask task;
  task.kind = send ? Kind::kSend : Kind::kRecv;
  task.peer = peer;
  task.bytes = bytes;
  task.tag = tag;
  return task;
}

RankDag Row(const std::vector<DagTask>& tasks, bool chain) {
  RankDag dag;
  for (const DagTask& task : tasks) {
    const auto last = static_cast<int32_t>(dag.tasks.size()) - 1;
    dag.Add(task, chain && last >= 0 ? std::vector<int32_t>{last} : std::vector<int32_t>{});
  }
  return dag;
}

DagJob OnAll(RankDag dag, int64_t ranks) {
  DagJob job;
  job.dags = {std::move(dag)};
  job.dag_of.assign(ranks, 0);
  job.groups.emplace_back();
  for (int64_t r = 0; r < ranks; ++r) job.groups[0].push_back(r);
  return job;
}

int64_t Alone(const Machine& machine, std::vector<int64_t> members, CollectiveKind kind,
              int64_t bytes) {
  const auto realised = Realise(machine, GroupPattern::Of(members), kind, bytes);
  EXPECT_OK(realised);
  return AloneTime(machine, *realised);
}

TEST(ExecuteDagsTest, AChainAndAnOverlap) {
  const Machine machine = UnitMachineOf(1, 4);
  const int64_t reduce = Alone(machine, {0, 1, 2, 3}, CollectiveKind::kAllReduce, kMiB);
  const int64_t kernel = 3 * reduce;
  const auto chain = ExecuteDags(OnAll(Row({Kernel(kernel), Reduce(kMiB)}, true), 4), machine);
  ASSERT_OK(chain);
  EXPECT_EQ(chain->makespan_ps, kernel + reduce);
  EXPECT_EQ(chain->ranks[2].kernels_ps, kernel);
  EXPECT_EQ(chain->ranks[2].exposed_ps, reduce);
  const auto overlap = ExecuteDags(OnAll(Row({Kernel(kernel), Reduce(kMiB)}, false), 4), machine);
  ASSERT_OK(overlap);
  EXPECT_EQ(overlap->makespan_ps, kernel);
  EXPECT_EQ(overlap->ranks[0].exposed_ps, 0);
  ASSERT_EQ(overlap->comms.size(), 1);
  EXPECT_EQ(overlap->comms[0].end_ps, reduce);
}

// Each begins once, also where it waits for nothing but the one before it.
TEST(ExecuteDagsTest, ARowOfCollectivesTakesTheSumOfThem) {
  const Machine machine = UnitMachineOf(1, 4);
  const int64_t reduce = Alone(machine, {0, 1, 2, 3}, CollectiveKind::kAllReduce, kMiB);
  for (const bool chain : {true, false}) {
    const auto row =
        ExecuteDags(OnAll(Row(std::vector<DagTask>(9, Reduce(kMiB)), chain), 4), machine);
    ASSERT_OK(row);
    EXPECT_EQ(row->makespan_ps, 9 * reduce) << chain;
    ASSERT_EQ(row->comms.size(), 9) << chain;
    for (const DagComm& comm : row->comms) {
      EXPECT_EQ(comm.members, 4);
      EXPECT_EQ(comm.end_ps - comm.begin_ps, reduce);
    }
  }
}

// All send before they receive.
TEST(ExecuteDagsTest, BufferedSendsDoNotWaitForTheirReceives) {
  const Machine machine = UnitMachineOf(1, 4);
  DagJob job;
  job.groups.emplace_back(std::vector<int64_t>{0, 1, 2, 3});
  for (int64_t r = 0; r < 4; ++r) {
    job.dags.push_back(
        Row({Message(true, (r + 1) % 4, kMiB), Message(false, (r + 3) % 4, kMiB)}, true));
    job.dag_of.push_back(static_cast<int32_t>(r));
  }
  EXPECT_TRUE(IsDeadlock(ExecuteDags(job, machine).status()));
  job.buffered_sends = true;
  const auto ring = ExecuteDags(job, machine);
  ASSERT_OK(ring);
  EXPECT_EQ(ring->makespan_ps, Alone(machine, {0, 1}, CollectiveKind::kSendRecv, kMiB));
  EXPECT_EQ(ring->comms.size(), 4);
  // A receive that comes late finds its message there.
  job.dags[1] =
      Row({Message(true, 2, kMiB), Kernel(1'000'000'000'000), Message(false, 0, kMiB)}, true);
  const auto late = ExecuteDags(job, machine);
  ASSERT_OK(late);
  EXPECT_EQ(late->ranks[1].finish_ps, ring->makespan_ps + 1'000'000'000'000);
  EXPECT_EQ(late->ranks[0].finish_ps, ring->makespan_ps);
  // One that nobody sends to never ends.
  job.dags[3] = Row({Message(false, 2, kMiB)}, true);
  EXPECT_TRUE(IsDeadlock(ExecuteDags(job, machine).status()));
}

TEST(ExecuteDagsTest, ACollectiveWaitsForItsLastMember) {
  const Machine machine = UnitMachineOf(1, 2);
  DagJob job = OnAll(Row({Reduce(kMiB)}, true), 2);
  job.dags.push_back(Row({Kernel(1'000'000'000), Reduce(kMiB)}, true));
  job.dag_of[1] = 1;
  const auto result = ExecuteDags(job, machine);
  ASSERT_OK(result);
  const int64_t reduce = Alone(machine, {0, 1}, CollectiveKind::kAllReduce, kMiB);
  EXPECT_EQ(result->makespan_ps, 1'000'000'000 + reduce);
  EXPECT_EQ(result->ranks[0].exposed_ps, result->makespan_ps);
  EXPECT_EQ(result->comms[0].begin_ps, 1'000'000'000);
}

TEST(ExecuteDagsTest, CollectivesOfAGroupRunInOrderThoseOfOthersBesideThem) {
  const Machine machine = UnitMachineOf(2, 2);
  const int64_t pair = Alone(machine, {0, 1}, CollectiveKind::kAllReduce, kMiB);
  DagJob job = OnAll(Row({Reduce(kMiB, 1), Reduce(kMiB, 1)}, false), 4);
  job.groups.push_back({0, 1});
  job.groups.push_back({2, 3});
  job.dags.push_back(Row({Reduce(kMiB, 2)}, false));
  job.dag_of = {0, 0, 1, 1};
  const auto result = ExecuteDags(job, machine);
  ASSERT_OK(result);
  EXPECT_EQ(result->ranks[0].finish_ps, 2 * pair);
  EXPECT_EQ(result->ranks[2].finish_ps, pair);
}

TEST(ExecuteDagsTest, MessagesMeetByTagAndShareLinks) {
  const Machine machine = UnitMachineOf(2, 2);
  const int64_t alone = Alone(machine, {0, 2}, CollectiveKind::kSendRecv, 1 << 26);
  const auto run = [&](bool both) {
    DagJob job;
    job.groups.emplace_back(std::vector<int64_t>{0, 1, 2, 3});
    job.dags = {Row({Message(true, 2, 1 << 26, 5)}, false),
                Row({Message(false, 0, 1 << 26, 5)}, false), RankDag(),
                Row({Message(true, 0, 1 << 26)}, false)};
    if (both) job.dags[0].Add(Message(false, 3, 1 << 26));
    job.dag_of = {0, 2, 1, both ? 3 : 2};
    return ExecuteDags(job, machine);
  };
  const auto one = run(false), two = run(true);
  ASSERT_OK(one);
  ASSERT_OK(two);
  EXPECT_EQ(one->makespan_ps, alone);
  // In and out of one device are two directions of its links.
  EXPECT_EQ(two->makespan_ps, alone);
}

// Reductions of two ranks that take a thousand picoseconds each, all free at once.
DagJob Queued(CommQueue queue, const std::vector<int32_t>& priorities) {
  std::vector<DagTask> tasks;
  for (const int32_t priority : priorities) {
    DagTask task = Reduce(kMiB);
    task.queue = 0;
    task.priority = priority;
    task.takes_ps = 1000;
    tasks.push_back(task);
  }
  DagJob job = OnAll(Row(tasks, false), 2);
  job.queues = {queue};
  return job;
}

std::vector<int32_t> OrderOf(const DagResult& result) {
  std::vector<int32_t> order;
  for (const DagSpan& span : result.spans) order.push_back(span.task);
  return order;
}

TEST(ExecuteDagsTest, QueuesLetGoByPriorityOrInTurn) {
  const Machine machine = UnitMachineOf(1, 2);
  const auto made = ExecuteDags(Queued({false, 1}, {3, 1, 2}), machine);
  ASSERT_OK(made);
  EXPECT_THAT(OrderOf(*made), ElementsAre(0, 1, 2));
  EXPECT_EQ(made->makespan_ps, 3000);
  const auto urgent = ExecuteDags(Queued({true, 1}, {3, 1, 2}), machine);
  ASSERT_OK(urgent);
  EXPECT_THAT(OrderOf(*urgent), ElementsAre(1, 2, 0));
  EXPECT_THAT(urgent->most_in_flight, ElementsAre(kMiB));
}

TEST(ExecuteDagsTest, CreditLetsSeveralGo) {
  const Machine machine = UnitMachineOf(1, 2);
  const auto two = ExecuteDags(Queued({true, kMiB + 1}, {3, 1, 2, 4}), machine);
  ASSERT_OK(two);
  EXPECT_EQ(two->makespan_ps, 2000);
  EXPECT_THAT(two->most_in_flight, ElementsAre(2 * kMiB));
}

TEST(ExecuteDagsTest, WhatIsImmediateWaitsForNoCredit) {
  const Machine machine = UnitMachineOf(1, 2);
  const auto result = ExecuteDags(Queued({true, 1}, {0, 1, -1, -1}), machine);
  ASSERT_OK(result);
  EXPECT_EQ(result->makespan_ps, 2000);
  EXPECT_THAT(result->most_in_flight, ElementsAre(kMiB));
  for (const DagSpan& span : result->spans) {
    if (span.task >= 2) {
      EXPECT_EQ(span.begin_ps, 0);
    }
  }
}

// A part ends when another is made: what is made then is looked at before the next one goes.
TEST(ExecuteDagsTest, WhatIsMadeAtTheSameTimeCounts) {
  const Machine machine = UnitMachineOf(1, 2);
  DagJob job = Queued({true, 1}, {5, 5, 0});
  DagTask kernel = Kernel(1000);
  job.dags[0] = RankDag();
  const DagJob as = Queued({true, 1}, {5, 5, 0});
  job.dags[0].Add(kernel);
  for (int i = 0; i < 3; ++i) {
    job.dags[0].Add(as.dags[0].tasks[i], i == 2 ? std::vector<int32_t>{0} : std::vector<int32_t>{});
  }
  const auto result = ExecuteDags(job, machine);
  ASSERT_OK(result);
  std::vector<int32_t> order = OrderOf(*result);
  order.erase(std::remove(order.begin(), order.end(), 0), order.end());
  EXPECT_THAT(order, ElementsAre(1, 3, 2));
}

TEST(ExecuteDagsTest, MessagesTakeTurnsBySenderOrByReceiver) {
  const Machine machine = UnitMachineOf(1, 3);
  for (const bool apart : {false, true}) {
    DagJob job;
    job.queues = {{false, 1, apart}};
    std::vector<DagTask> sends = {Message(true, 1, kMiB), Message(true, 2, kMiB)};
    for (DagTask& send : sends) {
      send.queue = 0;
      send.takes_ps = 1000;
    }
    job.dags = {Row(sends, false), Row({Message(false, 0, kMiB)}, false)};
    job.dag_of = {0, 1, 1};
    const auto result = ExecuteDags(job, machine);
    ASSERT_OK(result);
    EXPECT_EQ(result->makespan_ps, apart ? 1000 : 2000);
  }
}

TEST(ExecuteDagsTest, QueuesThatAreNoneAreRefused) {
  const Machine machine = UnitMachineOf(1, 2);
  EXPECT_THAT(ExecuteDags(Queued({true, 0}, {1}), machine).status().message(),
              HasSubstr("at least one byte"));
  DagJob job = Queued({true, 1}, {1, 2});
  job.dags[0].tasks[1].queue = -1;
  EXPECT_THAT(ExecuteDags(job, machine).status().message(), HasSubstr("turns in one queue"));
  job.dags[0].tasks[1].queue = 7;
  EXPECT_THAT(ExecuteDags(job, machine).status().message(), HasSubstr("no valid queue"));
}

TEST(ExecuteDagsTest, ErrorsSayWhoWaits) {
  const Machine machine = UnitMachineOf(1, 2);
  DagJob job = OnAll(Row({Reduce(8)}, false), 2);
  job.dags.push_back(Row({Message(false, 0, 8)}, false));
  job.dag_of[1] = 1;
  EXPECT_THAT(ExecuteDags(job, machine).status().message(), HasSubstr("rank 0 never ends"));
  EXPECT_THAT(ExecuteDags(OnAll(Row({Reduce(8)}, false), 3), machine).status().message(),
              HasSubstr("the job has 3 ranks, the machine 2 devices"));
  job.dags[1] = Row({Reduce(9)}, false);
  EXPECT_THAT(ExecuteDags(job, machine).status().message(), HasSubstr("not the collective"));
  RankDag circle = Row({Kernel(1), Kernel(1)}, true);
  circle.dep_begin = {0, 1, 2};
  circle.deps = {1, 0};
  EXPECT_THAT(ExecuteDags(OnAll(circle, 2), machine).status().message(), HasSubstr("circle"));
}

}  // namespace
}  // namespace plancast
