// Of ops with conditions on positions, the device that is taken for the busiest has as much to do
// as the busiest of all devices.

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "compiler/lower/kernels/loop_pieces.h"
#include "graph/rule/op_rule.h"
#include "graph/split/op_split.h"
#include "gtest/gtest.h"
#include "tests/testing/seed.h"

namespace plancast {
namespace {

double PointsOf(const OpWork& work) {
  double points = work.pointwise_ops;
  for (const Contraction& c : work.contractions) points += c.flops;
  return points;
}

TEST(Busiest, HasTheMostOfAllDevices) {
  const uint64_t seed = TestSeed(20261127);
  std::mt19937 random(static_cast<uint32_t>(seed));
  const DeviceMesh mesh = *DeviceMesh::Create({{"dp", 2}, {"cp", 3}, {"tp", 4}});
  int unlike = 0;
  for (const char* name : {"attention", "attention_sinks", "softmax_causal_sinks"}) {
    const OpRule& rule = **FindRule(name);
    for (int turn = 0; turn < 200; ++turn) {
      // Every factor has at least as many elements as there are devices.
      std::vector<int64_t> extents;
      for (size_t f = 0; f < rule.factors().size(); ++f) extents.push_back(24 + random() % 8);
      FactorSplit split = FactorSplit::None(rule);
      for (int axis = 0; axis < 3; ++axis) {
        split.axes[random() % rule.factors().size()].push_back(axis);
      }
      const int end = static_cast<int>(rule.statements().size());
      double most = 0;
      for (int64_t device = 0; device < 24; ++device) {
        most = std::max(
            most, PointsOf(WorkOf(rule, DeviceIndices(split, mesh, extents, device), 0, end)));
      }
      EXPECT_EQ(PointsOf(WorkOfBusiest(rule, split, mesh, extents, 0, end)), most)
          << name << ", turn " << turn;
      unlike += CutsConditions(rule, split, mesh);
    }
  }
  EXPECT_GT(unlike, 100);
}

// Four queries and eight keys, cut over both: neither the first device nor the last has work.
TEST(Busiest, IsNeitherTheFirstNorTheLast) {
  const OpRule& rule = **FindRule("attention_sinks");
  const DeviceMesh mesh = *DeviceMesh::Create({{"dp", 2}, {"tp", 4}});
  std::vector<int64_t> extents(rule.factors().size(), 1);
  FactorSplit split = FactorSplit::None(rule);
  for (size_t f = 0; f < extents.size(); ++f) {
    if (rule.factors()[f] == "s") extents[f] = 4, split.axes[f] = {1};
    if (rule.factors()[f] == "t") extents[f] = 8, split.axes[f] = {0};
  }
  const OpWork work = WorkOfBusiest(rule, split, mesh, extents, 0, 1);
  ASSERT_EQ(work.contractions.size(), 1);
  EXPECT_EQ(work.contractions[0].flops, 2 * 4);  // the last query, four keys
}

}  // namespace
}  // namespace plancast
