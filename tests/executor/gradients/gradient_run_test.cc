#include "executor/gradients/gradient_run.h"

#include <algorithm>
#include <random>

#include "collectives/realise.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/executor/graph_builder.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;
using Kind = GradientTask::Kind;

constexpr int64_t kSecond = 1'000'000'000'000;
constexpr int64_t kMs = kSecond / 1000;
constexpr int64_t kMiB = 1 << 20;

Machine MachineOf(int64_t hosts, int64_t gpus, int64_t gpus_per_nic = 1) {
  auto machine = Machine::Create(UnitMachine(hosts, gpus, gpus_per_nic));
  EXPECT_OK(machine);
  return *std::move(machine);
}

GradientRun RunOf(const std::vector<GradientUnit>& units, const GradientTraffic& traffic,
                  const Machine& machine) {
  auto run = RunGradients(units, traffic, machine);
  EXPECT_OK(run);
  return run.ok() ? *std::move(run) : GradientRun();
}

// ByteScheduler's example: three layers that compute for 2 units each way, whose gradients take 3,
// 6 and 3 units, pushed to a server and pulled back over a duplex link.
int64_t Contrived(bool by_priority, int64_t partition) {
  std::vector<GradientUnit> units;
  for (const int64_t size : {3, 6, 3}) units.push_back({"", 2 * kSecond, 2 * kSecond, 0, size});
  GradientTraffic traffic;
  traffic.by_priority = by_priority;
  traffic.partition_bytes = partition;
  traffic.server_hosts = 1;
  traffic.waits_for_all = false;
  traffic.line = {1.0, 0.0};
  return RunOf(units, traffic, MachineOf(2, 1)).iteration_ps / kSecond;
}

TEST(GradientRunTest, TheExampleOfByteScheduler) {
  EXPECT_EQ(Contrived(/*by_priority=*/false, /*partition=*/0), 26);
  EXPECT_EQ(Contrived(/*by_priority=*/true, /*partition=*/1), 18);
  EXPECT_EQ(Contrived(/*by_priority=*/false, /*partition=*/1), 21);
  EXPECT_EQ(Contrived(/*by_priority=*/true, /*partition=*/0), 26);
}

std::vector<GradientUnit> Random(std::mt19937& random, int32_t count) {
  std::vector<GradientUnit> units;
  const auto draw = [&](int64_t most) {
    return std::uniform_int_distribution<int64_t>(0, most)(random);
  };
  for (int32_t u = 0; u < count; ++u) {
    units.push_back({"", draw(3 * kMs), draw(6 * kMs), draw(kMs), draw(20 * kMiB)});
  }
  return units;
}

TEST(GradientRunTest, CreditBoundsWhatIsInFlightAndNothingStarves) {
  std::mt19937 random(1);
  for (int turn = 0; turn < 60; ++turn) {
    const std::vector<GradientUnit> units = Random(random, 8);
    GradientTraffic traffic;
    traffic.by_priority = turn % 2 == 0;
    traffic.waits_for_all = turn % 3 == 0;
    traffic.server_hosts = turn % 4 == 1 ? 2 : 0;
    traffic.partition_bytes = std::uniform_int_distribution<int64_t>(kMiB, 8 * kMiB)(random);
    traffic.credit_bytes = std::uniform_int_distribution<int64_t>(1, 32 * kMiB)(random);
    SCOPED_TRACE(turn);
    const GradientRun run = RunOf(units, traffic, MachineOf(4, 2));
    EXPECT_LE(run.most_in_flight, traffic.credit_bytes - 1 + traffic.partition_bytes);
    int64_t bytes = 0, least = 0;
    for (const GradientUnit& unit : units) {
      bytes += unit.bytes;
      least += unit.forward_ps + unit.backward_ps + unit.update_ps;
    }
    // All has been sent: the run ends only once nothing waits.
    if (traffic.server_hosts == 0) {
      EXPECT_EQ(run.sent_bytes, bytes);
    }
    EXPECT_GE(run.iteration_ps, least);
    EXPECT_EQ(run.compute_ps, least);
  }
}

TEST(GradientRunTest, ACreditOfOneByteSendsOneAtATime) {
  std::mt19937 random(2);
  const std::vector<GradientUnit> units = Random(random, 6);
  GradientTraffic traffic;
  traffic.by_priority = true;
  traffic.partition_bytes = kMiB;
  traffic.waits_for_all = false;
  const GradientRun run = RunOf(units, traffic, MachineOf(4, 1));
  EXPECT_LE(run.most_in_flight, kMiB);
  // One after the other.
  int64_t end = 0;
  for (const GradientSpan& span : run.spans) {
    if (span.task.kind != Kind::kReduce) continue;
    EXPECT_GE(span.begin_ps, end);
    end = span.end_ps;
  }
}

// Whatever waits while a part begins is not more urgent.
TEST(GradientRunTest, TheMostUrgentGoesFirst) {
  std::mt19937 random(3);
  for (int turn = 0; turn < 20; ++turn) {
    const std::vector<GradientUnit> units = Random(random, 10);
    GradientTraffic traffic;
    traffic.by_priority = true;
    traffic.partition_bytes = 2 * kMiB;
    traffic.waits_for_all = false;
    const GradientRun run = RunOf(units, traffic, MachineOf(4, 1));
    std::vector<int64_t> made(units.size());
    for (const GradientSpan& span : run.spans) {
      if (span.task.kind == Kind::kBackward) made[span.task.unit] = span.end_ps;
    }
    for (const GradientSpan& a : run.spans) {
      for (const GradientSpan& b : run.spans) {
        if (a.task.kind != Kind::kReduce || b.task.kind != Kind::kReduce) continue;
        const bool waited = made[b.task.unit] <= a.begin_ps && b.begin_ps > a.begin_ps;
        EXPECT_FALSE(waited && b.task.unit < a.task.unit);
      }
    }
  }
}

// 440 MB of gradients, made evenly by a backward pass of 80 ms on four cards, reduced at a bus
// bandwidth of 8 GB/s: milliseconds from its begin.
double BucketsOf(int64_t cap_mib, double alpha_us, double half_mib) {
  constexpr int64_t kAll = 440'000'000;
  std::vector<GradientUnit> units;
  int64_t made = 0;
  // By MiB, the last of which is the first that is run forward.
  for (int64_t left = kAll; left > 0; left -= kMiB) {
    const int64_t bytes = std::min(left, kMiB);
    const int64_t until = made + bytes;
    const auto at = [](int64_t b) {
      return static_cast<int64_t>(80.0 * kMs * (static_cast<double>(b) / kAll));
    };
    units.push_back({"", 0, at(until) - at(made), 0, bytes});
    made = until;
  }
  std::reverse(units.begin(), units.end());
  GradientTraffic traffic;
  traffic.bucket_bytes = cap_mib * kMiB;
  traffic.first_bucket_bytes = kMiB;
  traffic.overhead_ps = static_cast<int64_t>(alpha_us * 1e6);
  traffic.line = {8e9, half_mib * kMiB};
  return static_cast<double>(RunOf(units, traffic, MachineOf(1, 4)).iteration_ps) / kMs;
}

TEST(GradientRunTest, BucketsAreNeitherTooSmallNorTooLarge) {
  const int64_t caps[] = {1, 5, 10, 25, 50, 100, 420};
  const struct {
    double alpha_us;
    std::vector<double> ms;
  } rows[] = {{10, {86.9, 84.3, 84.8, 87.4, 92.1, 101.6, 162.3}},
              {100, {124.7, 91.9, 88.6, 89.0, 92.9, 102.1, 162.4}},
              {1000, {502.7, 167.7, 126.4, 104.3, 101.0, 106.6, 163.3}}};
  for (const auto& row : rows) {
    for (size_t c = 0; c < std::size(caps); ++c) {
      EXPECT_NEAR(BucketsOf(caps[c], row.alpha_us, 0), row.ms[c], 0.06)
          << row.alpha_us << " us, " << caps[c] << " MiB";
    }
  }
}

TEST(GradientRunTest, TheBestBucketGrowsWithTheSizeThatLinksNeed) {
  const auto best = [](double alpha_us, double half_mib) {
    int64_t best = 0;
    double least = 1e9;
    for (const int64_t cap : {1, 5, 10, 25, 50, 100, 420}) {
      const double ms = BucketsOf(cap, alpha_us, half_mib);
      if (ms < least) {
        least = ms;
        best = cap;
      }
    }
    return best;
  };
  EXPECT_EQ(best(10, 0), 5);
  EXPECT_EQ(best(100, 0), 10);
  EXPECT_EQ(best(1000, 0), 50);
  for (const double alpha_us : {10, 100}) {
    EXPECT_EQ(best(alpha_us, 1), 25);
    EXPECT_EQ(best(alpha_us, 4), 50);
  }
}

TEST(GradientRunTest, AccumulationSendsOncePerIteration) {
  const std::vector<GradientUnit> units = {{"a", 10 * kMs, 20 * kMs, 0, 100 * kMiB},
                                           {"b", 10 * kMs, 20 * kMs, 0, 100 * kMiB}};
  GradientTraffic traffic;
  traffic.line = {1e9, 0};
  const Machine machine = MachineOf(1, 4);
  const auto exposed = [&](const GradientRun& run) { return run.iteration_ps - run.compute_ps; };
  const int64_t one = exposed(RunOf(units, traffic, machine));
  ASSERT_GT(one, 0);
  for (const int64_t passes : {2, 4, 8}) {
    traffic.passes = passes;
    traffic.each_pass_sends = false;
    const GradientRun last = RunOf(units, traffic, machine);
    EXPECT_EQ(exposed(last), one);
    EXPECT_EQ(last.sent_bytes, 200 * kMiB);
    traffic.each_pass_sends = true;
    const GradientRun each = RunOf(units, traffic, machine);
    EXPECT_EQ(exposed(each), passes * one);
    EXPECT_EQ(each.sent_bytes, passes * 200 * kMiB);
    EXPECT_EQ(each.compute_ps, last.compute_ps);
  }
}

TEST(GradientRunTest, HalfTheBytesHelpOnlyWhatShows) {
  GradientTraffic traffic;
  traffic.line = {1e9, 0};
  const Machine machine = MachineOf(1, 4);
  const auto time = [&](int64_t compute, int64_t bytes) {
    std::vector<GradientUnit> units = {{"a", compute, 2 * compute, 0, 0},
                                       {"b", compute, 2 * compute, 0, bytes}};
    return RunOf(units, traffic, machine).iteration_ps;
  };
  // 150 and 75 ms to send, beside 2 s or 2 ms of the backward pass.
  EXPECT_EQ(time(kSecond, 100'000'000), time(kSecond, 50'000'000));
  EXPECT_EQ(time(kMs, 100'000'000) - time(kMs, 50'000'000), 75 * kMs);
}

// Seconds in which gradients alone go to servers and back, or through all-reduces.
double Alone(int64_t workers, int64_t servers, int64_t bytes) {
  GradientTraffic traffic;
  traffic.server_hosts = servers;
  traffic.partition_bytes = servers > 0 ? bytes / 512 : 0;
  // Parts for all servers at any time; all at once, pushes would end when pulls begin.
  traffic.credit_bytes = bytes / 16;
  const Machine machine = MachineOf(workers + servers, 1);
  return static_cast<double>(RunOf({{"all", 0, 0, 0, bytes}}, traffic, machine).iteration_ps) /
         kSecond;
}

TEST(GradientRunTest, ServersSendHalfOfWhatAllReducesDo) {
  constexpr int64_t kBytes = int64_t{1} << 32;
  double ratio = 0;
  for (const int64_t workers : {2, 4, 8, 16}) {
    const auto n = static_cast<double>(workers);
    const double now = Alone(workers, 0, kBytes) / Alone(workers, workers, kBytes);
    EXPECT_GT(now, ratio);
    // 2 (n - 1) / n, less what pushes and pulls do not overlap.
    EXPECT_NEAR(now, 2 * (n - 1) / n, 0.25) << workers;
    ratio = now;
  }
  EXPECT_GT(ratio, 1.6);
}

TEST(GradientRunTest, HalfTheServersTakeTwiceAsLong) {
  constexpr int64_t kBytes = int64_t{1} << 32;
  const double eight = Alone(8, 8, kBytes), four = Alone(8, 4, kBytes), two = Alone(8, 2, kBytes);
  EXPECT_NEAR(four / eight, 2, 0.1);
  EXPECT_NEAR(two / four, 2, 0.1);
}

// Workers that do not sum among themselves send as often as there are workers in a host.
TEST(GradientRunTest, SumsInsideOfHostsSpareTheirInterfaces) {
  const Machine machine = MachineOf(8, 4, /*gpus_per_nic=*/4);
  GradientTraffic traffic;
  traffic.server_hosts = 4;
  traffic.partition_bytes = 4 * kMiB;
  traffic.credit_bytes = 64 * kMiB;
  const std::vector<GradientUnit> units = {{"all", 0, 0, 0, int64_t{1} << 30}};
  const GradientRun inside = RunOf(units, traffic, machine);
  traffic.sums_in_hosts = false;
  const GradientRun each = RunOf(units, traffic, machine);
  EXPECT_EQ(each.sent_bytes, 4 * inside.sent_bytes);
  EXPECT_GT(each.iteration_ps, 3 * inside.iteration_ps);
}

// Connections of their own keep all interfaces busy where one part at a time does not.
TEST(GradientRunTest, WholeTensorsAreSpreadOverServers) {
  const Machine machine = MachineOf(8, 1);
  GradientTraffic traffic;
  traffic.server_hosts = 4;
  traffic.credit_bytes = 0;
  const std::vector<GradientUnit> units = {{"all", 0, 0, 0, int64_t{1} << 30}};
  const GradientRun whole = RunOf(units, traffic, machine);
  EXPECT_EQ(whole.parts, 1);
  traffic.spread_bytes = 4'000'000;
  const GradientRun spread = RunOf(units, traffic, machine);
  EXPECT_EQ(spread.parts, 4);
  EXPECT_NEAR(static_cast<double>(whole.iteration_ps) / static_cast<double>(spread.iteration_ps), 4,
              0.1);
}

TEST(GradientRunTest, OneMessageIsPricedByTheMachine) {
  const Machine machine = MachineOf(2, 4);
  const auto realised = Realise(machine, GroupPattern::Of({0, 1, 2, 3, 4, 5, 6, 7}),
                                CollectiveKind::kAllReduce, 64 * kMiB);
  ASSERT_OK(realised);
  const GradientRun run = RunOf({{"a", kMs, 2 * kMs, kMs, 64 * kMiB}}, GradientTraffic(), machine);
  EXPECT_EQ(run.iteration_ps, 4 * kMs + AloneTime(machine, *realised));
}

// Copies back begin with the first bucket's sum, one bucket after the other; those into buckets are
// part of the backward pass.
TEST(GradientRunTest, CopiesBesideBucketsShowWhereNothingIsAheadOfThem) {
  const std::vector<GradientUnit> units(4, {"layer", kMs, 2 * kMs, 0, 1'000'000});
  GradientTraffic traffic;
  traffic.line = {1e9, 0};
  const auto time = [&] { return RunOf(units, traffic, MachineOf(1, 2)).iteration_ps; };
  // Each all-reduce takes 1 ms and hides below the next 2 ms of the backward pass, but the last.
  EXPECT_EQ(time(), (4 * 3 + 1) * kMs);
  traffic.unpack_s_per_byte = 0.25e-9;
  EXPECT_EQ(time(), (4 * 3 + 1) * kMs + kMs / 4);  // three of four while the last is on its way
  traffic.pack_s_per_byte = 0.5e-9;
  EXPECT_EQ(time(), (4 * 3 + 1) * kMs + kMs / 4 + 4 * kMs / 2);
  traffic.waits_for_all = false;
  EXPECT_EQ(RunOf(units, traffic, MachineOf(1, 2)).compute_ps,
            4 * 3 * kMs + 4 * (kMs / 4 + kMs / 2));
}

TEST(GradientRunTest, FlagsGoBehindAllGradients) {
  const std::vector<GradientUnit> units(4, {"layer", kMs, 2 * kMs, 0, 1'000'000});
  GradientTraffic traffic;
  traffic.line = {1e9, 0};
  traffic.overhead_ps = kMs;
  const auto time = [&] { return RunOf(units, traffic, MachineOf(1, 2)).iteration_ps; };
  const int64_t without = time();
  traffic.flag_bytes = 100'000;
  EXPECT_EQ(time(), without + kMs + kMs / 10);
  traffic.passes = 2;
  EXPECT_EQ(RunOf(units, traffic, MachineOf(1, 2)).parts, 5);
  traffic.server_hosts = 1;
  const GradientRun run = RunOf(units, traffic, MachineOf(2, 2));
  EXPECT_EQ(run.sent_bytes, 4'100'000 / 2);
}

TEST(GradientRunTest, WhatIsNoTrafficIsRefused) {
  const std::vector<GradientUnit> units = {{"a", 1, 1, 0, int64_t{1} << 40}};
  GradientTraffic traffic;
  traffic.credit_bytes = -1;
  EXPECT_THAT(RunGradients(units, traffic, MachineOf(1, 2)).status().message(),
              HasSubstr("the credit is -1"));
  traffic.credit_bytes = 1;
  traffic.server_hosts = 1;
  EXPECT_THAT(RunGradients(units, traffic, MachineOf(1, 2)).status().message(),
              HasSubstr("leave no worker"));
  traffic.server_hosts = 0;
  traffic.partition_bytes = 1;
  EXPECT_THAT(RunGradients(units, traffic, MachineOf(1, 2)).status().message(),
              HasSubstr("too many parts"));
}

}  // namespace
}  // namespace plancast
