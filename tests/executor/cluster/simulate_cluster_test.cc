#include "executor/cluster/simulate_cluster.h"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "executor/cluster/cluster_simulation.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kSecond = 1'000'000'000'000;

// Eight hosts of four GPUs and one interface below four leaves of two uplinks.
Fabric Clos() {
  Fabric::Spec spec;
  spec.hosts = 8;
  spec.gpus_per_host = 4;
  spec.nic_bytes_per_s = 1'000'000'000;
  spec.tiers.push_back({"leaf", {0, 0, 1, 1, 2, 2, 3, 3}, 2, 1'000'000'000, false});
  return *Fabric::Create(spec);
}

ClusterJob MakeJob(std::string name, int64_t gpus, double compute_s, double transfer_s) {
  ClusterJob job;
  job.name = std::move(name);
  job.gpus = gpus;
  job.phases = {{static_cast<int64_t>(compute_s * kSecond), 0, 0},
                {0, static_cast<int64_t>(transfer_s * kSecond), 0}};
  job.busy_ps = job.phases[0].compute_ps;
  job.work = compute_s * static_cast<double>(gpus);
  return job;
}

ClusterJob On(ClusterJob job, std::vector<int64_t> devices) {
  job.gpus = static_cast<int64_t>(devices.size());
  job.devices = std::move(devices);
  job.placement = GpuPlacement::kGiven;
  return job;
}

TEST(SimulateCluster, JobsThatDoNotMeetTakeWhatTheyTakeAlone) {
  const Fabric fabric = Clos();
  std::vector<ClusterJob> jobs = {On(MakeJob("a", 8, 1, 2), {0, 1, 4, 5}),
                                  On(MakeJob("b", 8, 2, 1), {8, 9, 12, 13})};
  for (ClusterJob& job : jobs) job.iterations = 100;
  ASSERT_OK_AND_ASSIGN(const ClusterOutcome outcome, SimulateCluster(fabric, jobs, {}));
  EXPECT_EQ(outcome.jobs[0].end_ps, 300 * kSecond);
  EXPECT_EQ(outcome.jobs[1].end_ps, 300 * kSecond);
  EXPECT_TRUE(outcome.waits.empty());
}

TEST(SimulateCluster, OneEndsAndTheOtherGoesOnAlone) {
  const Fabric fabric = Clos();
  // Both cross interface 0 of hosts 0 and 1; fair, each iteration takes 3 s.
  std::vector<ClusterJob> jobs = {On(MakeJob("a", 2, 1, 1), {0, 4}),
                                  On(MakeJob("b", 2, 1, 1), {1, 5})};
  jobs[0].iterations = 10;
  jobs[1].iterations = 20;
  ASSERT_OK_AND_ASSIGN(const ClusterOutcome outcome, SimulateCluster(fabric, jobs, {}));
  EXPECT_NEAR(static_cast<double>(outcome.jobs[0].end_ps) / kSecond, 30, 1e-6);
  EXPECT_NEAR(static_cast<double>(outcome.jobs[1].end_ps) / kSecond, 30 + 20, 1e-6);
  double lost = 0;
  for (const ClusterOutcome::Wait& wait : outcome.waits) lost += wait.seconds;
  EXPECT_NEAR(lost, 20, 1e-6);
}

TEST(SimulateCluster, JobsWaitForGpusInOrderUnlessBackfilled) {
  const Fabric fabric = Clos();
  std::vector<ClusterJob> jobs = {MakeJob("all but two", 30, 1, 0), MakeJob("large", 32, 1, 0),
                                  MakeJob("small", 2, 1, 0)};
  for (ClusterJob& job : jobs) job.iterations = 10;
  ASSERT_OK_AND_ASSIGN(const ClusterOutcome fifo, SimulateCluster(fabric, jobs, {}));
  EXPECT_EQ(fifo.jobs[1].start_ps, 10 * kSecond);
  EXPECT_EQ(fifo.jobs[2].start_ps, 20 * kSecond);
  ClusterOptions options;
  options.backfill = true;
  ASSERT_OK_AND_ASSIGN(const ClusterOutcome filled, SimulateCluster(fabric, jobs, options));
  EXPECT_EQ(filled.jobs[2].start_ps, 0);
}

TEST(SimulateCluster, GpusAreGivenToOneJobAtATime) {
  const Fabric fabric = Clos();
  std::vector<ClusterJob> jobs = {On(MakeJob("a", 2, 1, 0), {0, 1}),
                                  On(MakeJob("b", 2, 1, 0), {1, 2})};
  jobs[0].where = "jobs.csv:2";
  jobs[1].where = "jobs.csv:3";
  jobs[0].iterations = jobs[1].iterations = 10;
  EXPECT_THAT(SimulateCluster(fabric, jobs, {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("jobs.csv:3: job `b`"), HasSubstr("GPU 1 of host 0"),
                             HasSubstr("(jobs.csv:2) still runs"))));
  jobs[1].arrival_ps = 10 * kSecond;
  ASSERT_OK_AND_ASSIGN(const ClusterOutcome outcome, SimulateCluster(fabric, jobs, {}));
  EXPECT_EQ(outcome.jobs[1].start_ps, 10 * kSecond);
}

TEST(SimulateCluster, WhatCannotRunIsRefused) {
  const Fabric fabric = Clos();
  EXPECT_THAT(SimulateCluster(fabric, {MakeJob("a", 33, 1, 0)}, {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("needs 33 GPUs")));
  EXPECT_THAT(SimulateCluster(fabric, {On(MakeJob("a", 1, 1, 0), {32})}, {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("given GPU 32")));
  EXPECT_THAT(SimulateCluster(fabric, {MakeJob("a", 1, 0, 0)}, {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("neither computes")));
}

TEST(SimulateCluster, TheClockHolds) {
  const Fabric fabric = Clos();
  ClusterJob job = MakeJob("endless", 4, 1e6, 0);
  job.iterations = int64_t{1} << 49;
  EXPECT_THAT(SimulateCluster(fabric, {job}, {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("job `endless`"), HasSubstr("92 days"))));
  ClusterOptions options;
  options.until_ps = 7'000'000 * kSecond;
  ASSERT_OK_AND_ASSIGN(const ClusterOutcome outcome, SimulateCluster(fabric, {job}, options));
  EXPECT_EQ(outcome.jobs[0].iterations, 7);
  job.iterations = 7;
  EXPECT_EQ(SimulateCluster(fabric, {job}, {})->jobs[0].end_ps, 7'000'000 * kSecond);
}

std::vector<ClusterJob> RandomJobs(std::mt19937& random) {
  std::vector<ClusterJob> jobs;
  int64_t arrival = 0;
  for (int j = 0; j < 12; ++j) {
    const int64_t gpus = int64_t{1} << (random() % 4);
    ClusterJob job = MakeJob("j" + std::to_string(j), gpus, 0.125 * (1 + random() % 16),
                             0.125 * (1 + random() % 8));
    job.placement = random() % 2 ? GpuPlacement::kPacked : GpuPlacement::kSpread;
    job.iterations = 20 + random() % 100;
    job.weight = 1 + random() % 3;
    arrival += static_cast<int64_t>(random() % 20) * kSecond;
    job.arrival_ps = arrival;
    jobs.push_back(job);
  }
  return jobs;
}

// From change to change by steady states, or event by event.
TEST(SimulateCluster, SteadyStatesAreAsRunningAll) {
  const Fabric fabric = Clos();
  std::mt19937 random(11);
  for (int round = 0; round < 60; ++round) {
    const std::vector<ClusterJob> jobs = RandomJobs(random);
    ClusterOptions options;
    options.sharing = static_cast<ClusterSharing>(round % 3);
    options.paths = static_cast<PathChoice>(round / 3 % 3);
    options.backfill = round % 2 == 1;
    options.most_events = 200'000;
    ASSERT_OK_AND_ASSIGN(const ClusterOutcome quick, SimulateCluster(fabric, jobs, options));
    options.shortcuts = false;
    ASSERT_OK_AND_ASSIGN(const ClusterOutcome whole, SimulateCluster(fabric, jobs, options));
    for (size_t j = 0; j < jobs.size(); ++j) {
      EXPECT_NEAR(static_cast<double>(quick.jobs[j].end_ps) / kSecond,
                  static_cast<double>(whole.jobs[j].end_ps) / kSecond, 1e-3)
          << "round " << round << " job " << j;
      EXPECT_EQ(quick.jobs[j].iterations, jobs[j].iterations);
    }
  }
}

void ExpectSame(const ClusterOutcome& a, const ClusterOutcome& b) {
  EXPECT_EQ(a.end_ps, b.end_ps);
  EXPECT_EQ(a.steady_runs, b.steady_runs);
  EXPECT_EQ(a.off_by, b.off_by);
  ASSERT_EQ(a.jobs.size(), b.jobs.size());
  for (size_t j = 0; j < a.jobs.size(); ++j) {
    const ClusterJobOutcome &one = a.jobs[j], &other = b.jobs[j];
    EXPECT_EQ(one.start_ps, other.start_ps);
    EXPECT_EQ(one.end_ps, other.end_ps);
    EXPECT_EQ(one.iterations, other.iterations);
    EXPECT_EQ(one.steady_ps, other.steady_ps);
    EXPECT_EQ(one.intensity, other.intensity);
    EXPECT_EQ(one.correction, other.correction);
    EXPECT_EQ(one.level, other.level);
    EXPECT_EQ(one.devices, other.devices);
  }
  ASSERT_EQ(a.links.size(), b.links.size());
  for (size_t l = 0; l < a.links.size(); ++l) {
    EXPECT_EQ(a.links[l].bytes, b.links[l].bytes);
    EXPECT_EQ(a.links[l].bytes_per_s, b.links[l].bytes_per_s);
    EXPECT_EQ(a.links[l].jobs, b.links[l].jobs);
  }
  ASSERT_EQ(a.waits.size(), b.waits.size());
  for (size_t w = 0; w < a.waits.size(); ++w) EXPECT_EQ(a.waits[w].seconds, b.waits[w].seconds);
  ASSERT_EQ(a.stretches.size(), b.stretches.size());
  for (size_t s = 0; s < a.stretches.size(); ++s) {
    EXPECT_EQ(a.stretches[s].to_ps, b.stretches[s].to_ps);
    EXPECT_EQ(a.stretches[s].iteration_ps, b.stretches[s].iteration_ps);
  }
  ASSERT_EQ(a.slices.size(), b.slices.size());
  for (size_t s = 0; s < a.slices.size(); ++s) EXPECT_EQ(a.slices[s].end_ps, b.slices[s].end_ps);
}

// Killed between any two changes and resumed elsewhere, every digit of the outcome is the same.
TEST(SimulateCluster, ASavedStateGoesOnAsIfNothingHadHappened) {
  const Fabric fabric = Clos();
  std::mt19937 random(23);
  for (int round = 0; round < 30; ++round) {
    const std::vector<ClusterJob> jobs = RandomJobs(random);
    ClusterOptions options;
    options.sharing = static_cast<ClusterSharing>(round % 3);
    options.paths = static_cast<PathChoice>(round / 3 % 3);
    options.backfill = round % 2 == 1;
    options.levels = round % 4;
    options.slices_until = round % 5 == 0 ? 20 * kSecond : 0;
    if (round % 7 == 6) options.until_ps = 100 * kSecond;
    ASSERT_OK_AND_ASSIGN(const ClusterOutcome whole, SimulateCluster(fabric, jobs, options));
    std::string state;
    int64_t resumed = 0;
    for (bool over = false; !over; ++resumed) {
      ClusterSimulation simulation(fabric, jobs, options);
      if (resumed > 0) {
        EXPECT_OK(simulation.Restore(state));
      }
      uint32_t left = 1 + random() % 4;
      ASSERT_OK_AND_ASSIGN(over, simulation.Run([&] { return left-- == 0; }));
      if (over) ExpectSame(simulation.TakeOutcome(), whole);
      state = simulation.Save();
    }
    EXPECT_GT(resumed, 2);
  }
}

TEST(SimulateCluster, AStateOfSomethingElseIsRefused) {
  const Fabric fabric = Clos();
  std::mt19937 random(3);
  const std::vector<ClusterJob> jobs = RandomJobs(random);
  ClusterSimulation simulation(fabric, jobs, {});
  int left = 6;
  ASSERT_OK_AND_ASSIGN(const bool over, simulation.Run([&] { return left-- == 0; }));
  ASSERT_FALSE(over);
  const std::string state = simulation.Save();
  const auto refuses = [&](absl::Span<const ClusterJob> others, const std::string& bytes) {
    ClusterSimulation other(fabric, others, {});
    return !other.Restore(bytes).ok();
  };
  EXPECT_FALSE(refuses(jobs, state));
  EXPECT_TRUE(refuses(absl::MakeConstSpan(jobs).subspan(1), state));
  for (size_t size : {size_t{0}, size_t{7}, state.size() / 2, state.size() - 1}) {
    EXPECT_TRUE(refuses(jobs, state.substr(0, size))) << size;
  }
  EXPECT_TRUE(refuses(jobs, state + "x"));
}

// A link never carries more than it can, and no job is faster than alone.
TEST(SimulateCluster, Laws) {
  const Fabric fabric = Clos();
  std::mt19937 random(5);
  for (int round = 0; round < 30; ++round) {
    const std::vector<ClusterJob> jobs = RandomJobs(random);
    ClusterOptions options;
    options.sharing = static_cast<ClusterSharing>(round % 3);
    options.levels = round % 4;
    ASSERT_OK_AND_ASSIGN(const ClusterOutcome outcome, SimulateCluster(fabric, jobs, options));
    for (const ClusterOutcome::Link& link : outcome.links) {
      EXPECT_LE(link.bytes, static_cast<double>(fabric.capacities()[link.link]) *
                                static_cast<double>(outcome.end_ps) / kSecond * (1 + 1e-9));
    }
    for (size_t j = 0; j < jobs.size(); ++j) {
      const ClusterJobOutcome& job = outcome.jobs[j];
      EXPECT_GE(job.end_ps - job.start_ps, job.alone_ps * job.iterations - 1000);
      EXPECT_GE(job.start_ps, jobs[j].arrival_ps);
    }
  }
}

}  // namespace
}  // namespace plancast
