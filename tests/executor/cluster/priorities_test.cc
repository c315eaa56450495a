#include "executor/cluster/priorities.h"

#include <cstdint>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace plancast {
namespace {

constexpr int64_t kSecond = 1'000'000'000'000;

Loop MakeLoop(double compute_s, double transfer_s) {
  Loop loop;
  loop.uses = {{0, int64_t{1} << 20}};
  loop.alone_level = int64_t{1} << 40;
  loop.phases.push_back({static_cast<int64_t>(compute_s * kSecond), 0});
  loop.phases.push_back({0, int128{static_cast<int64_t>(transfer_s * kSecond)} * loop.AloneQ16()});
  return loop;
}

TEST(Priorities, Intensity) {
  EXPECT_DOUBLE_EQ(GpuIntensity(64, MakeLoop(2, 2)), 32);
  Loop silent = MakeLoop(2, 2);
  silent.uses.clear();
  EXPECT_GE(GpuIntensity(64, silent), 1e29);
}

// First, P's communication gets 2 s * (1/4 - 1/5) a second more done, Q's 3 s * (1/5 - 1/8)
// less.
TEST(Priorities, CorrectionComparesBothOrders) {
  const Loop p = MakeLoop(2, 2), q = MakeLoop(2, 3);
  EXPECT_NEAR(CorrectionFactor(p, q), (2 * 0.05) / (3 * 0.075), 1e-6);
  EXPECT_NEAR(CorrectionFactor(q, p) * CorrectionFactor(p, q), 1, 1e-6);
  EXPECT_NEAR(CorrectionFactor(p, p), 1, 1e-6);
}

// What an assignment loses: pairs in one level.
double Lost(const std::vector<CompetingPair>& edges, const std::vector<int32_t>& levels) {
  double lost = 0;
  for (const CompetingPair& edge : edges) {
    if (levels[edge.first] == levels[edge.second]) lost += edge.weight;
  }
  return lost;
}

TEST(Priorities, LevelsKeepTheOrderOfThoseThatCompete) {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    const int32_t n = 2 + static_cast<int32_t>(random() % 9);
    std::vector<CompetingPair> edges;
    for (int32_t a = 0; a < n; ++a) {
      for (int32_t b = a + 1; b < n; ++b) {
        if (random() % 2) edges.push_back({a, b, 1.0 + static_cast<double>(random() % 100)});
      }
    }
    double before = -1;
    for (int32_t k = 1; k <= n; ++k) {
      const std::vector<int32_t> levels = CompressedLevels(n, edges, k, 7);
      for (const CompetingPair& edge : edges) {
        EXPECT_LE(levels[edge.first], levels[edge.second]);
      }
      const double lost = Lost(edges, levels);
      if (before >= 0) {
        EXPECT_LE(lost, before);
      }
      before = lost;
    }
    EXPECT_EQ(before, 0);
  }
}

TEST(Priorities, JobsThatDoNotCompeteMayShareALevel) {
  // 0 - 1 and 2 - 3: two levels are enough, whatever the order.
  const std::vector<CompetingPair> edges = {{0, 1, 5}, {2, 3, 4}};
  EXPECT_EQ(Lost(edges, CompressedLevels(4, edges, 2, 1)), 0);
}

}  // namespace
}  // namespace plancast
