#include "strategy/strategy_tree.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

StrategyTree Tree(const std::string& plan) {
  return StrategyTree::FromShortForm(*ParseShortForm(plan));
}

// What `path` inherits for one axis: "heads | ffn <- layers.*.attn".
std::string SplitOf(const StrategyTree& tree, const std::string& path, const std::string& axis) {
  const absl::StatusOr<Resolved> resolved = tree.Resolve(path);
  if (!resolved.ok()) return std::string(resolved.status().message());
  for (const ResolvedSplit& split : resolved->splits) {
    if (split.directive.axis != axis) continue;
    std::string text;
    for (const std::string& dim : split.directive.levels[0].dims) text += dim + " ";
    return text + "<- " + (split.source.empty() ? "root" : split.source);
  }
  return "nothing";
}

TEST(StrategyTreeTest, TheRootOfAPlanSplitsLikeMegatron) {
  const StrategyTree tree = Tree("dp=2,tp=4");
  EXPECT_EQ(SplitOf(tree, "layers.*.attn.qkv", "dp"), "batch <- root");
  EXPECT_EQ(SplitOf(tree, "layers.*.attn.qkv", "tp"),
            "heads ffn shared_ffn expert_ffn vocab <- root");
  EXPECT_EQ(SplitOf(Tree("tp=4,sp"), "head.norm", "tp"),
            "heads ffn shared_ffn expert_ffn vocab seq slots <- root");
}

TEST(StrategyTreeTest, PlanWideDirectivesHoldEverywhere) {
  const StrategyTree tree = Tree("zero=1,recompute=selective,bucket=25MB");
  ASSERT_OK_AND_ASSIGN(const Resolved resolved, tree.Resolve("layers.*.mlp.fc1"));
  EXPECT_EQ(resolved.recompute, Recompute::kSelective);
  EXPECT_EQ(resolved.homes[HomeKind::kState], (Home{"dp", false}));
  EXPECT_EQ(resolved.homes.zero(), 1);
  EXPECT_EQ(resolved.bucket_bytes, 25'000'000);
}

TEST(StrategyTreeTest, AChangedPlanChangesTheRoot) {
  StrategyTree tree = Tree("tp=4");
  tree.plan().sp = true;
  EXPECT_EQ(SplitOf(tree, "head.norm", "tp"),
            "heads ffn shared_ffn expert_ffn vocab seq slots <- root");
}

TEST(StrategyTreeTest, LongerPathsWinThenThoseWithFewerStars) {
  StrategyTree tree = Tree("tp=4");
  (*tree.Node("layers.*.mlp"))->SetSplit({"tp", {"hidden"}});
  EXPECT_EQ(SplitOf(tree, "layers.*.mlp.fc1", "tp"), "hidden <- layers.*.mlp");
  EXPECT_EQ(SplitOf(tree, "layers.*.attn.qkv", "tp"),
            "heads ffn shared_ffn expert_ffn vocab <- root");
  (*tree.Node("layers.*.mlp.fc1"))->SetSplit({"tp", {"ffn"}});
  EXPECT_EQ(SplitOf(tree, "layers.*.mlp.fc1", "tp"), "ffn <- layers.*.mlp.fc1");
  (*tree.Node("layers.*.*.fc1"))->SetSplit({"tp", {"seq"}});
  EXPECT_EQ(SplitOf(tree, "layers.*.mlp.fc1", "tp"), "ffn <- layers.*.mlp.fc1");
  EXPECT_EQ(SplitOf(tree, "layers.*.moe.fc1", "tp"), "seq <- layers.*.*.fc1");
}

TEST(StrategyTreeTest, WhatANodeDoesNotSayIsInherited) {
  StrategyTree tree = Tree("tp=4,recompute=selective");
  (*tree.Node("layers.*.mlp"))->recompute = Recompute::kFull;
  ASSERT_OK_AND_ASSIGN(const Resolved resolved, tree.Resolve("layers.*.mlp.fc1"));
  EXPECT_EQ(resolved.recompute, Recompute::kFull);
  EXPECT_EQ(resolved.recompute_source, "layers.*.mlp");
  EXPECT_EQ(SplitOf(tree, "layers.*.mlp.fc1", "tp"),
            "heads ffn shared_ffn expert_ffn vocab <- root");
}

TEST(StrategyTreeTest, AnEmptySplitCutsNothing) {
  StrategyTree tree = Tree("tp=4");
  (*tree.Node("head"))->SetSplit({"tp", {}});
  EXPECT_EQ(SplitOf(tree, "head.logits", "tp"), "<- head");
}

TEST(StrategyTreeTest, EquallySpecificNodesThatDifferAreAConflict) {
  StrategyTree tree = Tree("tp=4");
  (*tree.Node("*.*.mlp.fc1"))->SetSplit({"tp", {"seq"}});
  (*tree.Node("layers.*.*.fc1"))->SetSplit({"tp", {"ffn"}});
  const std::string error = SplitOf(tree, "layers.*.mlp.fc1", "tp");
  EXPECT_THAT(error, HasSubstr("`*.*.mlp.fc1` and `layers.*.*.fc1` are equally specific"));
  EXPECT_THAT(error, HasSubstr("split over `tp` of `layers.*.mlp.fc1`: `seq` and `ffn`"));
  // A more specific node settles it.
  (*tree.Node("layers.*.mlp.fc1"))->SetSplit({"tp", {"vocab"}});
  EXPECT_EQ(SplitOf(tree, "layers.*.mlp.fc1", "tp"), "vocab <- layers.*.mlp.fc1");
}

TEST(StrategyTreeTest, EquallySpecificNodesThatAgreeAreFine) {
  StrategyTree tree = Tree("tp=4");
  (*tree.Node("*.*.mlp.fc1"))->recompute = Recompute::kFull;
  (*tree.Node("layers.*.*.fc1"))->recompute = Recompute::kFull;
  EXPECT_EQ(tree.Resolve("layers.*.mlp.fc1")->recompute, Recompute::kFull);
}

TEST(StrategyTreeTest, RefusesMalformedPaths) {
  StrategyTree tree;
  const auto code = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(tree.Node("layers..attn"), StatusIs(code, HasSubstr("empty component")));
  EXPECT_THAT(tree.Node(".attn"), StatusIs(code, HasSubstr("empty component")));
  EXPECT_THAT(tree.Node("layers.at tn"), StatusIs(code, HasSubstr("has ` ` in a component")));
  EXPECT_THAT(tree.Node("layers.*attn"), StatusIs(code, HasSubstr("has `*` in a component")));
  EXPECT_THAT(tree.Node("layers[0:8"), StatusIs(code, HasSubstr("bracket is not closed")));
}

TEST(StrategyTreeTest, WhatIsSaidOfSomeLayersGoesBeforeAllOfThem) {
  StrategyTree tree = Tree("tp=4");
  (*tree.Node("layers.*.mlp"))->SetSplit({"tp", {"all"}});
  (*tree.Node("layers[2:6].mlp"))->SetSplit({"tp", {"some"}});
  (*tree.Node("layers[3].mlp"))->SetSplit({"tp", {"one"}});
  const auto at = [&](absl::string_view path) {
    return tree.Resolve(path)->splits.back().directive.levels[0].dims[0];
  };
  EXPECT_EQ(at("layers.0.mlp.fc1"), "all");
  EXPECT_EQ(at("layers.2.mlp.fc1"), "some");
  EXPECT_EQ(at("layers.3.mlp.fc1"), "one");
  EXPECT_EQ(at("layers.*.mlp.fc1"), "all");
  EXPECT_THAT(tree.Explain("layers.*.mlp.fc1"),
              IsOkAndHolds(HasSubstr("some layers are told otherwise by `layers[2:6].mlp`\n")));
}

TEST(StrategyTreeTest, TwoSlicesThatDisagreeNameEachOther) {
  StrategyTree tree;
  (*tree.Node("layers[0:4]"))->recompute = Recompute::kFull;
  (*tree.Node("layers[2:6]"))->recompute = Recompute::kNone;
  EXPECT_OK(tree.Resolve("layers.1.mlp.fc1"));
  EXPECT_THAT(tree.Resolve("layers.3.mlp.fc1"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("`layers[0:4]` and `layers[2:6]` are equally specific and "
                                 "disagree about the recompute of `layers.3.mlp.fc1`")));
}

TEST(StrategyTreeTest, LayersFromTheEndNeedTheLengthOfTheList) {
  StrategyTree tree;
  (*tree.Node("layers[-1]"))->recompute = Recompute::kFull;
  EXPECT_THAT(tree.Explain("layers.7.mlp", 8), IsOkAndHolds(HasSubstr("from `layers[-1]`")));
  EXPECT_THAT(tree.Explain("layers.7.mlp", 9), IsOkAndHolds(HasSubstr("recompute: none")));
  EXPECT_THAT(tree.Explain("layers.7.mlp"), IsOkAndHolds(HasSubstr("counts from the end")));
}

TEST(StrategyTreeTest, OneNodeUnderTwoTextsIsOne) {
  StrategyTree tree;
  EXPECT_EQ(*tree.Node("layers[3].mlp"), *tree.Node("layers.3.mlp"));
  EXPECT_EQ(tree.nodes().size(), 1);
}

TEST(StrategyTreeTest, ExplainSaysWhichNodeDecidedWhat) {
  StrategyTree tree = Tree("dp=2,tp=8,recompute=selective,bucket=25MB,zero=1");
  (*tree.Node("layers.*.attn"))->SetSplit({"tp", {"heads"}});
  EXPECT_THAT(tree.Explain("layers.*.attn.qkv"),
              IsOkAndHolds("split dp: batch             from root (dp=2)\n"
                           "split tp: heads             from `layers.*.attn` (tp=8)\n"
                           "recompute: selective        from root\n"
                           "home weights: replicate     from root\n"
                           "home gradients: replicate   from root\n"
                           "home state: shard(dp)       from root\n"
                           "home activations: device    from root\n"
                           "bucket: 25MB                from root\n"));
}

TEST(StrategyTreeTest, DebugStringHasOneLineANode) {
  StrategyTree tree = Tree("dp=2,tp=8");
  (*tree.Node("head"))->recompute = Recompute::kFull;
  EXPECT_EQ(tree.DebugString(),
            "plan dp=2,tp=8\n"
            "root { split dp: batch; split tp: heads | ffn | shared_ffn | expert_ffn | vocab }\n"
            "head { recompute: full }\n");
}

TEST(StrategyTreeTest, ExplainSaysEachLevelAndItsNode) {
  StrategyTree tree = Tree("tp=8");
  ASSERT_OK_AND_ASSIGN(SplitDirective split,
                       SplitDirective::Parse("tp", {"heads|ffn", "seq/2", "/2"}));
  (*tree.Node("layers[0:4]"))->SetSplit(split);
  ASSERT_OK_AND_ASSIGN(const std::string text, tree.Explain("layers.3.attn.qkv", 8));
  EXPECT_THAT(text, HasSubstr("split tp /2: heads | ffn    from `layers[0:4]` (tp=8)\n"
                              "split tp /2: seq            from `layers[0:4]` (tp=8)\n"
                              "split tp /2: -              from `layers[0:4]` (tp=8)\n"));
  EXPECT_THAT(tree.Explain("layers.4.attn.qkv", 8), IsOkAndHolds(HasSubstr("from root (tp=8)")));
}

TEST(StrategyTreeTest, NodesThatDisagreeAboutLevelsAreNamed) {
  StrategyTree tree = Tree("tp=8");
  (*tree.Node("layers.*.attn"))->SetSplit(*SplitDirective::Parse("tp", {"heads/4", "seq/2"}));
  (*tree.Node("*.*.attn"))->SetSplit({"tp", {}});
  (*tree.Node("layers[0:4].attn"))->SetSplit(*SplitDirective::Parse("tp", {"heads/2", "seq/4"}));
  (*tree.Node("layers[2:6].attn"))->SetSplit(*SplitDirective::Parse("tp", {"heads/4", "seq/2"}));
  EXPECT_THAT(std::string(tree.Resolve("layers.2.attn.qkv").status().message()),
              HasSubstr("`heads/2, seq/4` and `heads/4, seq/2`"));
}

TEST(StrategyTreeTest, OneSplitPerAxisAndNode) {
  Directives node;
  EXPECT_TRUE(node.empty());
  node.SetSplit({"tp", {"ffn"}});
  node.SetSplit({"tp", {"heads"}});
  ASSERT_EQ(node.split.size(), 1u);
  EXPECT_THAT(node.FindSplit("tp")->levels[0].dims, ElementsAre("heads"));
  EXPECT_EQ(node.FindSplit("dp"), nullptr);
  EXPECT_FALSE(node.empty());
}

TEST(StrategyTreeTest, AdaptersLeaveTheRestFrozen) {
  StrategyTree tree = StrategyTree::FromShortForm(*ParseShortForm("dp=2"));
  EXPECT_FALSE(tree.fine_tunes());
  ASSERT_OK_AND_ASSIGN(Directives * layers, tree.Node("layers.*"));
  layers->lora = LoraDirective{16, {"qkv"}, 0, ""};
  ASSERT_OK_AND_ASSIGN(Directives * head, tree.Node("head"));
  head->train = true;
  EXPECT_TRUE(tree.fine_tunes());
  ASSERT_OK_AND_ASSIGN(const Resolved qkv, tree.Resolve("layers.*.attn.qkv"));
  EXPECT_FALSE(qkv.train);
  EXPECT_EQ(qkv.lora->rank, 16);
  ASSERT_OK_AND_ASSIGN(const Resolved embedding, tree.Resolve("embedding.tokens"));
  EXPECT_FALSE(embedding.train || embedding.lora.has_value());
  ASSERT_OK_AND_ASSIGN(const Resolved logits, tree.Resolve("head.logits"));
  EXPECT_TRUE(logits.train);
  ASSERT_OK_AND_ASSIGN(const std::string text, tree.Explain("layers.3.attn.qkv"));
  EXPECT_THAT(text, HasSubstr("train: false"));
  EXPECT_THAT(text, HasSubstr("lora: rank=16 on qkv"));
}

TEST(StrategyTreeTest, TheNearestNodeSaysWhatIsTrained) {
  StrategyTree tree;
  (*tree.Node(""))->train = false;
  (*tree.Node("layers[4:8]"))->train = true;
  (*tree.Node("layers.*.attn.norm"))->train = false;
  EXPECT_FALSE(tree.Resolve("layers.3.mlp.fc1")->train);
  EXPECT_TRUE(tree.Resolve("layers.4.mlp.fc1")->train);
  EXPECT_FALSE(tree.Resolve("layers.4.attn.norm")->train);
}

}  // namespace
}  // namespace plancast
