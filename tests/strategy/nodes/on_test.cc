#include "strategy/nodes/on.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strategy/strategy_tree.h"
#include "strategy/tree_check.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

TEST(OnTest, RanksAndPartsAreReadAndWritten) {
  for (const char* text : {"0", "3", "0/2", "1/2", "3/4"}) {
    ASSERT_OK_AND_ASSIGN(const OnDirective on, ParseOn("dp", text));
    EXPECT_EQ(PrintOn(on), text);
  }
  for (const char* text : {"", "x", "-1", "1/", "/2", "1/0", "1.5", "0/2/2"}) {
    EXPECT_THAT(ParseOn("dp", text).status().message(), HasSubstr("names no ranks of `dp`"))
        << text;
  }
  EXPECT_THAT(ParseOn("dp", "2/2").status().message(), HasSubstr("of 2 parts there are 0 to 1"));
}

TEST(OnTest, PartsAreEqualAndInOrder) {
  ASSERT_OK_AND_ASSIGN(const OnDirective half, ParseOn("dp", "1/2"));
  ASSERT_OK_AND_ASSIGN(const OnRanks ranks, RanksOf(half, 8));
  EXPECT_EQ(ranks.first, 4);
  EXPECT_EQ(ranks.count, 4);
  ASSERT_OK_AND_ASSIGN(const OnDirective one, ParseOn("dp", "7"));
  EXPECT_EQ(RanksOf(one, 8)->first, 7);
  EXPECT_THAT(RanksOf(one, 4).status().message(), HasSubstr("`dp` has 4 ranks here, 0 to 3"));
  EXPECT_THAT(RanksOf(half, 3).status().message(), HasSubstr("do not divide into 2 equal parts"));
}

StrategyTree TreeOf(const std::string& node) {
  absl::StatusOr<StrategyTree> tree = StrategyTree::FromJson(
      R"({"plan": "dp=4,tp=2", "nodes": {"layers.*.mlp": )" + node + "}}", "tree");
  EXPECT_OK(tree);
  return *tree;
}

TEST(OnTest, TheNearestNodeDecides) {
  StrategyTree tree = TreeOf(R"({"on": {"dp": 1, "tp": "0/2"}})");
  EXPECT_EQ(*StrategyTree::FromJson(tree.ToJson(), "again"), tree);
  (*tree.Node("layers.*.mlp.fc1"))->SetOn(*ParseOn("dp", "2"));
  const std::string text = *tree.Explain("layers.*.mlp.fc1");
  EXPECT_THAT(text, HasSubstr("on dp: 2"));
  EXPECT_THAT(text, HasSubstr("from `layers.*.mlp.fc1`"));
  EXPECT_THAT(text, HasSubstr("on tp: 0/2"));
  EXPECT_THAT(*tree.Explain("layers.*.attn"), ::testing::Not(HasSubstr("on dp")));
}

TEST(OnTest, WhatNoRanksCanTakeIsRefused) {
  const std::vector<SizedAxis> mesh = {{"pp", 1}, {"dp", 4}, {"tp", 2}, {"ep", 2}};
  const auto refused = [&](const std::string& node) {
    return std::string(CheckTree(TreeOf(node), mesh, {}).message());
  };
  EXPECT_EQ(refused(R"({"on": {"dp": 1}, "split": {"tp": ["ffn"]}})"), "");
  EXPECT_EQ(refused(R"({"on": {"dp": "0/2"}, "split": {"dp": ["batch"]}})"), "");
  EXPECT_THAT(refused(R"({"on": {"dp": 4}})"), HasSubstr("`dp` has 4 ranks here"));
  EXPECT_THAT(refused(R"({"on": {"dq": 0}})"), HasSubstr("Did you mean `dp`?"));
  EXPECT_THAT(refused(R"({"on": {"pp": 0}})"), HasSubstr("what a stage holds is said by `stages`"));
  EXPECT_THAT(refused(R"({"on": {"ep": 0}})"), HasSubstr("a view of others"));
  EXPECT_THAT(refused(R"({"on": {"dp": 1}, "split": {"dp": ["batch"]}})"),
              HasSubstr("splits over `dp` what is on one rank of it"));
  const absl::StatusOr<StrategyTree> root =
      StrategyTree::FromJson(R"({"plan": "dp=4", "nodes": {"": {"on": {"dp": 1}}}})", "tree");
  ASSERT_OK(root);
  EXPECT_THAT(CheckTree(*root, mesh, {}).message(), HasSubstr("would leave devices idle"));
}

}  // namespace
}  // namespace plancast
