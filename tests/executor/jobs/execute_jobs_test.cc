#include "executor/jobs/execute_jobs.h"

#include <numeric>

#include "executor/jobs/joint_simulation.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/executor/graph_builder.h"
#include "tests/executor/simulation.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kSecond = 1'000'000'000'000;
constexpr int64_t kNicSecond = 10'000'000'000;  // bytes that a NIC carries in a second

// `before` seconds of work, an all-reduce over both hosts that takes
// `transfer` seconds of a NIC, then `after` seconds.
ExecutionGraph TwoHosts(double before, double transfer, double after) {
  GraphBuilder b({{"dp", 2}});
  b.Block("step").Kernel(before).Comm(CollectiveKind::kAllReduce,
                                      static_cast<int64_t>(transfer * kNicSecond), {0}, {0},
                                      Purpose::kDp);
  b.Kernel(after, {1});
  b.Program("all").Run("step");
  return b.Build();
}

// Two devices to a host, which share its NIC.
Machine OneNic(int64_t hosts = 2) { return *Machine::Create(UnitMachine(hosts, 2, 2)); }

// Makespans from the arrivals on, folded and flat, with prices by hand: caps and
// loads of the NIC alone, and of the spine if a group leaves its pod.
std::vector<int64_t> Together(const std::vector<PlacedJob>& jobs, const Machine& machine) {
  std::vector<const PlacedJob*> pointers;
  for (const PlacedJob& job : jobs) pointers.push_back(&job);
  std::vector<int64_t> result;
  for (const bool discrete : {false, true}) {
    JointSimulation::Options how;
    how.discrete = discrete;
    how.realise = [&machine](const PlacedJob&) -> CommPricer::RealiseFn {
      return [&machine](const GroupPattern& group, const CommSpec& comm) {
        absl::StatusOr<RealisedCollective> realised = UnitComm(machine)(group, comm);
        const int spine = machine.FindLinkClass(LinkKind::kSpine);
        const std::vector<int64_t> members = group.Members();
        if (spine >= 0 && machine.PodOf(members.front()) != machine.PodOf(members.back())) {
          realised->loads.push_back({spine, 1 << 20});
        }
        return realised;
      };
    };
    const auto joint = JointSimulation::Run(pointers, machine, UnitCost(), how);
    EXPECT_TRUE(joint.ok()) << joint.status();
    std::vector<int64_t> makespans;
    for (size_t j = 0; j < jobs.size(); ++j) {
      makespans.push_back((*joint)->ResultOf(static_cast<int>(j), false).makespan_ps);
    }
    EXPECT_TRUE(result.empty() || result == makespans);
    result = makespans;
  }
  return result;
}

TEST(ExecuteJobsTest, TwoJobsOnOneNicHalveIt) {
  const ExecutionGraph plan = TwoHosts(1, 2, 1);
  EXPECT_THAT(Together({{"a", &plan, {0, 2}}}, OneNic()), ElementsAre(4 * kSecond));
  EXPECT_THAT(Together({{"a", &plan, {0, 2}}, {"b", &plan, {1, 3}}}, OneNic()),
              ElementsAre(6 * kSecond, 6 * kSecond));
}

TEST(ExecuteJobsTest, AJobArrivesInTheMiddleOfAnAllReduce) {
  const ExecutionGraph first = TwoHosts(1, 4, 1), second = TwoHosts(1, 1, 2);
  // From 1 to 3 `a` has the NIC to itself; from 3 on `b`, which came at 2, wants
  // it too: half each until `b` is done at 5, and `a` at 6.
  EXPECT_THAT(Together({{"a", &first, {0, 2}}, {"b", &second, {1, 3}, 2 * kSecond}}, OneNic()),
              ElementsAre(7 * kSecond, 5 * kSecond));
  // Long after, they do not meet.
  EXPECT_THAT(Together({{"a", &first, {0, 2}}, {"b", &second, {1, 3}, 6 * kSecond}}, OneNic()),
              ElementsAre(6 * kSecond, 4 * kSecond));
}

TEST(ExecuteJobsTest, ThreeJobsOnATree) {
  // Four hosts, two below each uplink of 12 GB/s.
  Machine::Spec spec = UnitMachine(4, 3, 1);
  spec.hosts_per_pod = 2;
  spec.rail_optimized = false;
  spec.oversubscription = 5;  // of 6 NICs of 10 GB/s
  const Machine machine = *Machine::Create(spec);
  const ExecutionGraph plan = TwoHosts(1, 1.2, 0);
  // `a` and `b` cross the uplinks, `c` stays below one.
  const PlacedJob a{"a", &plan, {0, 6}}, b{"b", &plan, {4, 10}}, c{"c", &plan, {2, 5}};
  const int64_t alone = 22 * kSecond / 10;
  EXPECT_THAT(Together({a, c}, machine), ElementsAre(alone, alone));
  EXPECT_THAT(Together({a, b, c}, machine), ElementsAre(3 * kSecond, 3 * kSecond, alone));
  // A third job across, with twice as much: 4 GB/s each until `a` and `b` are
  // done at 4, when it has half to go at the 10 GB/s of its NICs.
  const ExecutionGraph longer = TwoHosts(1, 2.4, 0);
  const PlacedJob d{"d", &longer, {1, 7}};
  EXPECT_THAT(Together({a, b, d}, machine),
              ElementsAre(4 * kSecond, 4 * kSecond, 52 * kSecond / 10));
}

// Through collectives::Realise.
PlacedJob On(const std::string& name, const ExecutionGraph& plan, std::vector<int64_t> devices,
             int64_t arrival_ps = 0) {
  PlacedJob job;
  job.name = name;
  job.graph = &plan;
  job.devices = std::move(devices);
  job.arrival_ps = arrival_ps;
  job.runtime.iteration_s = 0.25;
  return job;
}

JobsResult Go(const std::vector<PlacedJob>& jobs, const Machine& machine) {
  const auto result = ExecuteJobs(jobs, machine, UnitCost());
  EXPECT_TRUE(result.ok()) << result.status();
  return *result;
}

TEST(ExecuteJobsTest, EachJobHasItsOwnResultAndSlowdown) {
  const ExecutionGraph plan = TwoHosts(1, 2, 1);
  const JobsResult both = Go({On("a", plan, {0, 2}), On("b", plan, {1, 3}, kSecond / 2)}, OneNic());
  ASSERT_EQ(both.jobs.size(), 2);
  for (const JobResult& job : both.jobs) {
    EXPECT_GT(job.slowdown(), 1.2);
    EXPECT_EQ(job.result.critical_path.total(), job.result.makespan_ps);
    EXPECT_EQ(job.result.critical_path.compute, 2 * kSecond);
    EXPECT_EQ(job.result.critical_path.other, kSecond / 4);
    ASSERT_EQ(job.result.classes.size(), 1);
    EXPECT_EQ(job.result.classes[0].name, "all");
    EXPECT_EQ(job.result.classes[0].devices, 2);
    EXPECT_EQ(job.result.classes[0].breakdown.total(), job.result.makespan_ps);
    EXPECT_EQ(job.result.counters.tasks, 6);
  }
  EXPECT_EQ(both.jobs[0].result.classes[0].representative, 0);
  EXPECT_EQ(both.jobs[1].result.classes[0].representative, 1);
  EXPECT_THAT(both.jobs[0].with, ElementsAre(1));
  EXPECT_EQ(both.jobs[0].alone_ps, Go({On("a", plan, {0, 2})}, OneNic()).jobs[0].alone_ps);
  EXPECT_EQ(both.makespan_ps, kSecond / 2 + both.jobs[1].result.makespan_ps);
}

TEST(ExecuteJobsTest, JobsOnSeparateLinksKeepEveryDigit) {
  const ExecutionGraph plan = TwoHosts(1, 2, 1);
  const Machine machine = OneNic(4);
  const JobsResult result = Go(
      {On("a", plan, {0, 2}), On("b", plan, {4, 6}, kSecond / 3), On("c", plan, {5, 7})}, machine);
  EXPECT_EQ(result.jobs[0].result.makespan_ps, result.jobs[0].alone_ps);
  EXPECT_EQ(result.jobs[0].slowdown(), 1.0);
  EXPECT_THAT(result.jobs[0].with, ElementsAre());
  EXPECT_GT(result.jobs[1].slowdown(), 1.0);
  EXPECT_THAT(result.jobs[1].with, ElementsAre(2));
}

TEST(ExecuteJobsTest, ClassesSplitOnlyWhereJobsMeet) {
  GraphBuilder b({{"dp", 8}, {"tp", 2}});
  b.Block("step").Kernel(1).Comm(CollectiveKind::kAllReduce, kNicSecond, {0}, {0}, Purpose::kDp);
  b.Program("all").Run("step");
  const ExecutionGraph wide = b.Build(), narrow = TwoHosts(1, 2, 1);
  std::vector<int64_t> devices;
  // GPUs 0 and 1 of every host, each two to a NIC.
  const Machine machine = *Machine::Create(UnitMachine(8, 4, 2));
  for (int64_t host = 0; host < 8; ++host) {
    devices.push_back(4 * host);
    devices.push_back(4 * host + 2);
  }
  const JobsResult alone = Go({On("wide", wide, devices)}, machine);
  EXPECT_EQ(alone.jobs[0].result.classes.size(), 1);
  // Another job on the first NICs of hosts 2 and 3 slows down the group of all
  // GPUs 0, whatever host they are in; the GPUs 2 keep their pace.
  const JobsResult both = Go({On("wide", wide, devices), On("narrow", narrow, {9, 13})}, machine);
  const std::vector<DeviceClassResult>& classes = both.jobs[0].result.classes;
  ASSERT_EQ(classes.size(), 2);
  EXPECT_EQ(classes[0].devices, 8);
  EXPECT_EQ(classes[0].representative, 0);
  EXPECT_EQ(classes[1].devices, 8);
  EXPECT_EQ(classes[1].representative, 2);
  EXPECT_GT(classes[0].finish_ps, classes[1].finish_ps);
  EXPECT_EQ(classes[1].finish_ps, alone.jobs[0].result.classes[0].finish_ps);
  EXPECT_EQ(both.jobs[1].result.classes.size(), 1);
}

TEST(ExecuteJobsTest, ErrorsNameTheJob) {
  const ExecutionGraph plan = TwoHosts(1, 2, 1);
  EXPECT_THAT(ExecuteJobs({{"a", &plan, {0, 2}}, {"b", &plan, {2, 3}}}, OneNic(), UnitCost()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("jobs `a` and `b` are both placed on device 2")));
}

}  // namespace
}  // namespace plancast
