#include "planner/forecast/balanced_cuts.h"

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/model/builder.h"
#include "gtest/gtest.h"
#include "planner/forecast/flops.h"
#include "tests/testing/seed.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A module of products from width to width, each followed by an op without any.
ModelGraph Net(const std::vector<int64_t>& widths) {
  ModelBuilder model("net");
  EXPECT_OK(model.AddDim("batch", 0));
  EXPECT_OK(model.AddDim("seq", 2));
  for (size_t w = 0; w < widths.size(); ++w) {
    EXPECT_OK(model.AddDim(absl::StrCat("w", w), widths[w]));
  }
  ModuleBuilder net = model.Module("net");
  EXPECT_OK(net.Input("x", DType::kCompute, {"batch", "seq", "w0"}));
  std::string last = "x";
  for (size_t w = 1; w < widths.size(); ++w) {
    const std::string fc = absl::StrCat("fc", w), act = absl::StrCat("act", w);
    EXPECT_OK(net.Parameter(fc + ".w", {absl::StrCat("w", w), absl::StrCat("w", w - 1)}));
    EXPECT_OK(net.Call(fc, "linear", {last, fc + ".w"}, {fc + ".y"}));
    EXPECT_OK(net.Call(act, "relu", {fc + ".y"}, {act + ".y"}));
    last = act + ".y";
  }
  EXPECT_OK(net.OutPort(last));
  EXPECT_OK(model.Append("net", net));
  return *model.Build();
}

// Work of the largest part.
double Largest(const ModelGraph& graph, const std::vector<ModelCut>& cuts) {
  const ModelGraph bound = graph.WithBatch(1);
  double largest = 0, part = 0;
  for (size_t o = 0; o < bound.bodies[0].ops.size(); ++o) {
    const ModelCut here{0, 0, static_cast<int>(o)};
    if (std::find(cuts.begin(), cuts.end(), here) != cuts.end()) part = 0;
    part += ForwardFlops(bound, bound.bodies[0].ops[o]);
    largest = std::max(largest, part);
  }
  return largest;
}

TEST(BalancedCutsTest, TheLargestPartIsAsSmallAsCanBe) {
  // Products of 8*8, 8*8, 8*32 and 32*8: two parts are the first three, or the last two.
  EXPECT_THAT(*BalancedCuts(Net({8, 8, 8, 8, 8}), 2), ElementsAre(ModelCut{0, 0, 4}));
  EXPECT_THAT(*BalancedCuts(Net({8, 8, 8, 8, 8}), 4),
              ElementsAre(ModelCut{0, 0, 2}, ModelCut{0, 0, 4}, ModelCut{0, 0, 6}));
  // One large product alone.
  EXPECT_THAT(*BalancedCuts(Net({4, 4, 64, 64, 4}), 3),
              ElementsAre(ModelCut{0, 0, 4}, ModelCut{0, 0, 6}));
}

TEST(BalancedCutsTest, IsTheBestOfAllCutsOfRandomNets) {
  std::mt19937 random(static_cast<uint32_t>(TestSeed(3)));
  for (int round = 0; round < 50; ++round) {
    std::vector<int64_t> widths;
    for (int w = 0; w < 6; ++w) widths.push_back(1 + static_cast<int64_t>(random() % 40));
    const ModelGraph graph = Net(widths);
    const auto cuts = BalancedCuts(graph, 3);
    ASSERT_OK(cuts);
    double least = std::numeric_limits<double>::infinity();
    const int ops = static_cast<int>(graph.bodies[0].ops.size());
    for (int a = 1; a < ops; ++a) {
      for (int b = a + 1; b < ops; ++b) {
        least = std::min(least, Largest(graph, {{0, 0, a}, {0, 0, b}}));
      }
    }
    EXPECT_DOUBLE_EQ(Largest(graph, *cuts), least);
  }
}

TEST(BalancedCutsTest, RefusesMorePartsThanProducts) {
  EXPECT_THAT(BalancedCuts(Net({8, 8, 8}), 3).status().message(),
              HasSubstr("3 virtual stages are more than the 2 products"));
}

}  // namespace
}  // namespace plancast
