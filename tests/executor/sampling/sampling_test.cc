#include "executor/sampling/sampling.h"

#include <cmath>
#include <iostream>
#include <set>

#include "executor/executor.h"
#include "executor/sampling/random_numbers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/executor/graph_builder.h"
#include "tests/executor/random_plan.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kSecond = 1'000'000'000'000;
constexpr uint64_t kSeed = 7;

ExecutionGraph Kernels(int64_t devices, int layers) {
  GraphBuilder b({{"dp", devices}});
  b.Block("F").Kernel(1);
  b.Program("all").Run("F", {}, layers);
  return b.Build();
}

Distribution Drawn(const ExecutionGraph& graph, const Machine& machine,
                   const Randomness& randomness) {
  const auto drawn = ExecuteSamples(graph, machine, UnitCost(), RuntimeParams(), randomness);
  EXPECT_TRUE(drawn.ok()) << drawn.status();
  return *drawn;
}

TEST(RandomNumbersTest, AreHashesOfWhatTheyAreFor) {
  const RandomNumbers a(kSeed, 0), again(kSeed, 0), b(kSeed, 1), c(kSeed + 1, 0);
  EXPECT_EQ(a.Uniform(Draw::kKernel, 3, 4), again.Uniform(Draw::kKernel, 3, 4));
  std::set<double> distinct;
  for (const RandomNumbers* numbers : {&a, &b, &c}) {
    for (const Draw draw : {Draw::kKernel, Draw::kComm, Draw::kStraggler}) {
      for (int64_t i = 0; i < 10; ++i) {
        for (int64_t j = -5; j < 5; ++j) distinct.insert(numbers->Uniform(draw, i, j));
      }
    }
  }
  EXPECT_EQ(distinct.size(), 900);
  EXPECT_EQ(a.Noise(0, Draw::kKernel, 1, 2), 1);
}

TEST(RandomNumbersTest, NoiseIsLognormalWithMeanOne) {
  const RandomNumbers numbers(kSeed, 0);
  constexpr int kCount = 200'000;
  constexpr double kSigma = 0.3;
  double sum = 0, log_sum = 0, log_squares = 0;
  for (int i = 0; i < kCount; ++i) {
    const double noise = numbers.Noise(kSigma, Draw::kKernel, i % 1000, i / 1000);
    sum += noise;
    log_sum += std::log(noise);
    log_squares += std::log(noise) * std::log(noise);
  }
  EXPECT_NEAR(sum / kCount, 1, 5 * kSigma / std::sqrt(kCount));
  EXPECT_NEAR(log_sum / kCount, -kSigma * kSigma / 2, 5 * kSigma / std::sqrt(kCount));
  const double variance = log_squares / kCount - std::pow(log_sum / kCount, 2);
  EXPECT_NEAR(std::sqrt(variance), kSigma, 0.005);
}

TEST(SamplingTest, OneDeviceAddsItsNoise) {
  const Machine machine = *Machine::Create(UnitMachine(1, 1));
  const Distribution drawn = Drawn(Kernels(1, 5), machine, {0.1, 0, 1, 20, kSeed});
  for (int64_t s = 0; s < 20; ++s) {
    int64_t sum = 0;
    for (int64_t t = 0; t < 5; ++t) {
      sum += std::llround(static_cast<double>(kSecond) *
                          RandomNumbers(kSeed, s).Noise(0.1, Draw::kKernel, 0, t));
    }
    EXPECT_EQ(drawn.samples_ps[s], sum);
  }
}

TEST(SamplingTest, EveryCommunicationHasItsNoise) {
  GraphBuilder b({{"tp", 2}});
  b.Block("F").Comm(CollectiveKind::kAllReduce, 1'000'000'000, {0});
  b.Program("all").Run("F", {}, 3);
  const Machine machine = *Machine::Create(UnitMachine(1, 2));
  const int64_t now = Execute(b.Build(), machine, UnitCost(), RuntimeParams())->makespan_ps;
  const Distribution drawn = Drawn(b.Build(), machine, {0.2, 0, 1, 10, kSeed});
  for (int64_t s = 0; s < 10; ++s) {
    double sum = 0;
    for (int64_t t = 0; t < 3; ++t) {
      sum += RandomNumbers(kSeed, s).Noise(0.2, Draw::kComm, 0, t) / 3;
    }
    EXPECT_NEAR(static_cast<double>(drawn.samples_ps[s]), sum * static_cast<double>(now),
                1e-8 * static_cast<double>(now));
  }
}

TEST(SamplingTest, StragglersHoldTheIterationUp) {
  // 1 or 2 seconds, for each device; the slowest counts.
  const Machine machine = *Machine::Create(UnitMachine(2, 4));
  const Distribution drawn = Drawn(Kernels(8, 1), machine, {0, 0.1, 0.5, 2000, kSeed});
  int64_t slow = 0;
  for (int64_t time : drawn.samples_ps) {
    ASSERT_TRUE(time == kSecond || time == 2 * kSecond);
    slow += time == 2 * kSecond;
  }
  EXPECT_NEAR(static_cast<double>(slow) / 2000, 1 - std::pow(0.9, 8), 0.05);
  EXPECT_EQ(drawn.quantile_s(0), 1);
  EXPECT_EQ(drawn.quantile_s(1), 2);
  // With next to no jitter, unfolded, the same devices are slow.
  const Distribution flat = Drawn(Kernels(8, 1), machine, {1e-9, 0.1, 0.5, 2000, kSeed});
  for (size_t s = 0; s < flat.samples_ps.size(); ++s) {
    EXPECT_NEAR(static_cast<double>(flat.samples_ps[s]), static_cast<double>(drawn.samples_ps[s]),
                1e-7 * kSecond);
  }
}

TEST(SamplingTest, TheSameSeedGivesTheSameDigitsOnAnyNumberOfThreads) {
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    const RandomPlan plan = DrawPlan(seed);
    const Machine machine = *Machine::Create(plan.machine);
    const auto as_is = Execute(plan.graph, machine, UnitCost(), RuntimeParams());
    if (!as_is.ok()) continue;
    for (const double jitter : {0.0, 0.05}) {
      Randomness randomness{jitter, 0.2, 0.7, 6, seed};
      const std::vector<int64_t> one = Drawn(plan.graph, machine, randomness).samples_ps;
      randomness.threads = 3;
      EXPECT_EQ(Drawn(plan.graph, machine, randomness).samples_ps, one) << "seed " << seed;
    }
    // Nothing random: the deterministic time, folded and, by a whisper, flat.
    for (int64_t time : Drawn(plan.graph, machine, {0, 0, 1, 3, seed}).samples_ps) {
      EXPECT_EQ(time, as_is->makespan_ps) << "seed " << seed;
    }
    for (int64_t time : Drawn(plan.graph, machine, {1e-15, 0, 1, 2, seed}).samples_ps) {
      EXPECT_EQ(time, as_is->makespan_ps) << "seed " << seed;
    }
  }
}

TEST(SamplingTest, SummarisesSamples) {
  Distribution distribution;
  distribution.samples_ps = {4 * kSecond, kSecond, 2 * kSecond, 3 * kSecond};
  EXPECT_DOUBLE_EQ(distribution.mean_s(), 2.5);
  EXPECT_DOUBLE_EQ(distribution.stddev_s(), std::sqrt(5.0 / 3));
  EXPECT_DOUBLE_EQ(distribution.quantile_s(0.5), 2.5);
  EXPECT_DOUBLE_EQ(distribution.quantile_s(0.05), 1.15);
  EXPECT_DOUBLE_EQ(distribution.quantile_s(0.95), 3.85);
}

TEST(SamplingTest, ErrorsSayWhatIsRight) {
  const Machine machine = *Machine::Create(UnitMachine(1, 1));
  const auto error = [&](const ExecutionGraph& graph, const Randomness& randomness) {
    return std::string(
        ExecuteSamples(graph, machine, UnitCost(), RuntimeParams(), randomness).status().message());
  };
  EXPECT_THAT(error(Kernels(1, 1), {-1, 0, 1, 1}), HasSubstr("`jitter` is -1"));
  EXPECT_THAT(error(Kernels(1, 1), {0, 2, 1, 1}), HasSubstr("a probability from 0 to 1"));
  EXPECT_THAT(error(Kernels(1, 1), {0, 0.5, 0, 1}), HasSubstr("a share of the speed"));
  EXPECT_THAT(error(Kernels(100'000, 1'000), {0.1, 0, 1, 1}),
              HasSubstr("this plan has 100000000 tasks on 100000 devices; the most is 20000000"));
  EXPECT_THAT(error(Kernels(2, 1), {0.1, 0, 1, 1}), HasSubstr("the machine has 1"));
}

}  // namespace
}  // namespace plancast
