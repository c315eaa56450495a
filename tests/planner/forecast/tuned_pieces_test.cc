// Pieces that simulation chooses.

#include "planner/forecast/tuned_pieces.h"

#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

StrategyTree Tree() {
  const auto tree = StrategyTree::FromJson(
      R"json({"nodes": {
        "layer.a": {"rewrite": ["overlap(a, all_reduce, pieces: tuned)"]},
        "layer.b": {"rewrite": ["split(all_reduce)", "overlap(b, reduce_scatter, pieces: tuned)"]},
        "layer.c": {"rewrite": ["overlap(c, all_reduce, pieces: 4)"]}}})json",
      "test");
  EXPECT_OK(tree.status());
  return *tree;
}

int64_t PiecesOf(const StrategyTree& tree, const std::string& node, size_t rewrite) {
  return tree.nodes().at(node).rewrites[rewrite].pieces;
}

TEST(TunedPiecesTest, TheFastestOfEachIsTaken) {
  EXPECT_TRUE(LeavesPiecesOpen(Tree()));
  std::map<std::string, std::string> chosen;
  int simulated = 0;
  // Fastest with 8 of a and 2 of b.
  const auto time = [&](const StrategyTree& tree) -> absl::StatusOr<int64_t> {
    ++simulated;
    return 100 + std::abs(PiecesOf(tree, "layer.a", 0) - 8) +
           std::abs(PiecesOf(tree, "layer.b", 1) - 2);
  };
  const auto tuned = TunePieces(Tree(), 64, time, &chosen);
  ASSERT_OK(tuned.status());
  EXPECT_FALSE(LeavesPiecesOpen(*tuned));
  EXPECT_EQ(PiecesOf(*tuned, "layer.a", 0), 8);
  EXPECT_EQ(PiecesOf(*tuned, "layer.b", 1), 2);
  EXPECT_EQ(PiecesOf(*tuned, "layer.c", 0), 4);
  EXPECT_EQ(chosen.at("pieces of layer.a.a"), "8");
  EXPECT_EQ(chosen.at("pieces of layer.b.b"), "2");
  EXPECT_EQ(simulated, 1 + 2 * 6);
}

TEST(TunedPiecesTest, WhatDoesNotDivideIsLeftOut) {
  std::map<std::string, std::string> chosen;
  const auto time = [](const StrategyTree& tree) -> absl::StatusOr<int64_t> {
    const int64_t pieces = PiecesOf(tree, "layer.a", 0);
    if (pieces == 4) return absl::InvalidArgumentError("does not divide");
    return 100 - pieces;
  };
  EXPECT_EQ(PiecesOf(*TunePieces(Tree(), 4, time, &chosen), "layer.a", 0), 2);
  const auto never = [](const StrategyTree&) -> absl::StatusOr<int64_t> {
    return absl::InvalidArgumentError("no such op");
  };
  EXPECT_THAT(TunePieces(Tree(), 4, never, &chosen).status().message(), HasSubstr("no such op"));
}

}  // namespace
}  // namespace plancast
