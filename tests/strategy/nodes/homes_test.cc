#include "strategy/nodes/homes.h"

#include <gtest/gtest.h>

#include <string>

#include "strategy/strategy_tree.h"
#include "strategy/tree_check.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

HomeDirective Said(std::initializer_list<std::pair<HomeKind, const char*>> homes) {
  HomeDirective directive;
  for (const auto& [kind, home] : homes) directive[kind] = *ParseHome(kind, home);
  return directive;
}

constexpr auto kW = HomeKind::kWeights;
constexpr auto kG = HomeKind::kGradients;
constexpr auto kS = HomeKind::kState;
constexpr auto kA = HomeKind::kActivations;

StrategyTree Tree(const char* plan) { return StrategyTree::FromShortForm(*ParseShortForm(plan)); }

TEST(HomesTest, WordsRoundTrip) {
  for (const HomeKind kind : {kW, kG, kS}) {
    for (const char* home : {"replicate", "shard(dp)", "host", "shard(dp)+host", "shard(tp)",
                             "shard(dp,tp)", "shard(dp,tp)+host", "on(dp=0)", "on(tp=12)"}) {
      ASSERT_OK_AND_ASSIGN(const Home parsed, ParseHome(kind, home));
      EXPECT_EQ(PrintHome(kind, parsed), home);
    }
  }
  for (const char* home : {"device", "host"}) {
    ASSERT_OK_AND_ASSIGN(const Home parsed, ParseHome(kA, home));
    EXPECT_EQ(PrintHome(kA, parsed), home);
  }
}

TEST(HomesTest, AxesComeInAnyOrder) {
  EXPECT_EQ(PrintHome(kW, *ParseHome(kW, "shard(tp, dp)")), "shard(dp,tp)");
  EXPECT_EQ(ParseHome(kW, "shard(tp,dp)"), ParseHome(kW, "shard(dp,tp)"));
  EXPECT_THAT(ParseHome(kW, "shard(dp,tp)")->axes(), testing::ElementsAre("dp", "tp"));
  EXPECT_THAT(ParseHome(kW, "shard(dp,dp)").status().message(), HasSubstr("names `dp` twice"));
  EXPECT_THAT(ParseHome(kW, "shard(dp,)").status().message(), HasSubstr("lacks the name"));
}

TEST(HomesTest, OtherWordsAreRefused) {
  for (const char* home : {"", "shard", "shard()", "sharded(dp)", "shard(dp", "device", "host+host",
                           "replicate+host", "shard(dp)+"}) {
    EXPECT_THAT(ParseHome(kS, home),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is not a home layout")))
        << home;
  }
  EXPECT_THAT(ParseHome(kA, "disk"), StatusIs(absl::StatusCode::kInvalidArgument,
                                              HasSubstr("`shard(tp)+host`, and `on(pp=3)`")));
  EXPECT_THAT(ParseHome(kW, "device(3)"), StatusIs(absl::StatusCode::kInvalidArgument,
                                                   HasSubstr("Write `on(dp=3)` for rank 3")));
  for (const char* home : {"on(dp)", "on(=1)", "on(dp=x)", "on(dp=-1)", "on(dp=1=2)", "on()"}) {
    EXPECT_THAT(ParseHome(kS, home).status().message(), HasSubstr("does not say a rank")) << home;
  }
  EXPECT_THAT(ParseHome(kS, "on(dp=1,tp=0)").status().message(), HasSubstr("a rank of one"));
  EXPECT_THAT(ParseHome(kS, "on(dp=1)+host"),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("the host of one rank")));
  EXPECT_THAT(ParseHome(kA, "on(dp=1)").status().message(),
              HasSubstr("`on: {dp: 1}` to run the node on rank 1"));
  EXPECT_THAT(ParseHome(kA, "device(1)").status().message(),
              HasSubstr("Write `on(pp=3)` for stage 3"));
  EXPECT_THAT(ParseHome(kA, "on(pp=x)").status().message(), HasSubstr("does not say a rank"));
}

TEST(HomesTest, ShardingFollowsFromTheStateToTheWeights) {
  const HomeDirective weights = Said({{kW, "shard(dp)"}});
  EXPECT_EQ(weights.AxisOf(kG), "dp");
  EXPECT_EQ(weights.AxisOf(kS), "dp");
  const HomeDirective gradients = Said({{kG, "shard(dp)"}});
  EXPECT_EQ(gradients.AxisOf(kW), std::nullopt);
  EXPECT_EQ(gradients.AxisOf(kS), "dp");
  const HomeDirective whole = Said({{kS, "replicate"}});
  EXPECT_EQ(whole.AxisOf(kW), "");
  EXPECT_EQ(whole.AxisOf(kG), "");
  EXPECT_EQ(Said({{kG, "replicate"}}).AxisOf(kS), std::nullopt);
  EXPECT_EQ(weights.AxisOf(kA), std::nullopt);
}

TEST(HomesTest, OneRankKeepsWhatFollows) {
  const HomeDirective weights = Said({{kW, "on(dp=1)"}});
  for (const HomeKind kind : {kG, kS}) {
    EXPECT_EQ(PrintHome(kind, *weights.SharingOf(kind)), "on(dp=1)");
  }
  EXPECT_EQ(Said({{kS, "on(dp=1)"}}).SharingOf(kG), std::nullopt);
  EXPECT_OK(Said({{kG, "on(dp=1)"}, {kS, "on(dp=1)"}}).Check());
  EXPECT_THAT(Said({{kG, "on(dp=1)"}, {kS, "on(dp=0)"}}).Check().message(),
              HasSubstr("Write `state: on(dp=1)`, or leave it out"));
  EXPECT_FALSE(Said({{kW, "on(dp=1)"}, {kG, "shard(dp)"}}).Check().ok());
  EXPECT_FALSE(Said({{kW, "shard(dp)"}, {kS, "on(dp=1)"}}).Check().ok());
}

TEST(HomesTest, ARankIsOneThatTheMeshHas) {
  const auto refused = [](const char* node, const char* home) {
    StrategyTree tree = Tree("dp=2,tp=2");
    (*tree.Node(node))->home = Said({{kS, home}});
    return std::string(
        CheckTree(tree, {{"pp", 2}, {"dp", 2}, {"ep", 2}, {"tp", 2}}, ModelPaths()).message());
  };
  EXPECT_EQ(refused("head", "on(dp=1)"), "");
  EXPECT_THAT(refused("head", "on(dp=2)"), HasSubstr("`dp` has 2 ranks here, 0 to 1"));
  EXPECT_THAT(refused("head", "on(pp=1)"), HasSubstr("`pp` deals whole layers to stages"));
  EXPECT_THAT(refused("head", "on(ep=1)"), HasSubstr("a view of other axes"));
  EXPECT_THAT(refused("head", "on(cp=0)"), HasSubstr("no mesh axis `cp`"));
  EXPECT_THAT(refused("", "on(dp=1)"), HasSubstr("Say it at `*`"));
}

TEST(HomesTest, ActivationsMayBeSharedOut) {
  const absl::StatusOr<Home> home = ParseHome(kA, "shard(tp, cp)");
  ASSERT_OK(home.status());
  EXPECT_EQ(PrintHome(kA, *home), "shard(cp,tp)");
  const absl::StatusOr<Home> there = ParseHome(kA, "shard(tp)+host");
  ASSERT_OK(there.status());
  EXPECT_TRUE(there->on_host);
  EXPECT_EQ(PrintHome(kA, *there), "shard(tp)+host");
  EXPECT_FALSE(ParseHome(kA, "device+host").ok());
  EXPECT_FALSE(ParseHome(kA, "on(pp=1)+host").ok());
}

TEST(HomesTest, ActivationsMayWaitOnAnotherStage) {
  const absl::StatusOr<Home> home = ParseHome(kA, "on(pp=1)");
  ASSERT_OK(home.status());
  EXPECT_EQ(PrintHome(kA, *home), "on(pp=1)");
  const auto refused = [](const char* node, const char* words) {
    StrategyTree tree = Tree("pp=2,tp=2");
    (*tree.Node(node))->home = Said({{kA, words}});
    return std::string(CheckTree(tree, {{"pp", 2}, {"dp", 1}, {"tp", 2}}, ModelPaths()).message());
  };
  EXPECT_EQ(refused("layers[0]", "on(pp=1)"), "");
  EXPECT_THAT(refused("layers[0]", "on(pp=2)"), HasSubstr("`pp` has 2 ranks here, 0 to 1"));
  EXPECT_THAT(refused("layers[0]", "shard(pp)"), HasSubstr("`pp` deals whole layers to stages"));
  EXPECT_THAT(refused("", "on(pp=1)"), HasSubstr("Say it at `*`"));
}

TEST(HomesTest, ContradictionsAreRefused) {
  EXPECT_OK(Said({{kW, "shard(dp)"}, {kG, "shard(dp)"}, {kS, "shard(dp)+host"}}).Check());
  EXPECT_OK(Said({{kW, "replicate"}, {kG, "replicate"}, {kS, "shard(dp)"}}).Check());
  EXPECT_THAT(Said({{kW, "shard(dp)"}, {kG, "replicate"}}).Check().message(),
              HasSubstr("Write `gradients: shard(dp)`, or leave it out, and it follows."));
  EXPECT_FALSE(Said({{kW, "shard(dp)"}, {kS, "replicate"}}).Check().ok());
  EXPECT_FALSE(Said({{kG, "shard(dp)"}, {kS, "host"}}).Check().ok());
  EXPECT_OK(Said({{kW, "host"}, {kG, "host"}, {kS, "host"}}).Check());
  EXPECT_THAT(Said({{kW, "host"}, {kS, "replicate"}}).Check().message(),
              HasSubstr("the host updates what it keeps. Write `state: host`, or leave it out"));
  EXPECT_FALSE(Said({{kG, "host"}, {kS, "shard(dp)+host"}}).Check().ok());
  EXPECT_FALSE(Said({{kW, "shard(dp,tp)"}, {kS, "shard(dp)"}}).Check().ok());
  EXPECT_THAT(Said({{kG, "shard(dp)+host"}}).Check().message(),
              HasSubstr("gradients are where the update is"));
}

TEST(HomesTest, WhatIsWholeOnTheHostIsUpdatedThere) {
  const HomeDirective weights = Said({{kW, "host"}});
  for (const HomeKind kind : {kG, kS}) {
    EXPECT_EQ(weights.AxisOf(kind), "");
    EXPECT_EQ(weights.OnHost(kind), true);
  }
  EXPECT_EQ(weights.OnHost(kA), std::nullopt);
  const HomeDirective gradients = Said({{kG, "host"}});
  EXPECT_EQ(gradients.OnHost(kS), true);
  EXPECT_EQ(gradients.OnHost(kW), std::nullopt);
  EXPECT_EQ(Said({{kS, "host"}}).OnHost(kG), std::nullopt);
}

TEST(HomesTest, ThePlansZeroAndOffloadAreHomesOfTheRoot) {
  const auto explained = [](const char* plan) {
    const std::string text = *Tree(plan).Explain("layers.*.mlp.fc1");
    return text.substr(text.find("home weights"));
  };
  EXPECT_THAT(explained("zero=3"), HasSubstr("home weights: shard(dp)       "));
  EXPECT_THAT(explained("zero=3"), HasSubstr("home gradients: shard(dp)       "));
  EXPECT_THAT(explained("zero=2"), HasSubstr("home weights: replicate "));
  EXPECT_THAT(explained("zero=2,offload=optimizer"), HasSubstr("home gradients: shard(dp)+host"));
  EXPECT_THAT(explained("zero=3,offload=param"), HasSubstr("home weights: shard(dp)+host"));
  EXPECT_THAT(explained("offload=optimizer+activations"), HasSubstr("home state: host "));
  EXPECT_THAT(explained("offload=activations"), HasSubstr("home activations: host "));
}

TEST(HomesTest, NodesDecideKindByKind) {
  StrategyTree tree = Tree("zero=3,offload=optimizer");
  (*tree.Node("layers.*"))->home = Said({{kG, "replicate"}});
  (*tree.Node("layers.*.mlp"))->home = Said({{kA, "host"}, {kS, "shard(dp)"}});
  ASSERT_OK_AND_ASSIGN(const Resolved fc1, tree.Resolve("layers.*.mlp.fc1"));
  EXPECT_EQ(fc1.homes.zero(), 1);
  EXPECT_FALSE(fc1.homes[kS].on_host);
  EXPECT_TRUE(fc1.homes[kA].on_host);
  EXPECT_EQ(fc1.home_sources[static_cast<int>(kW)], "layers.*");
  EXPECT_EQ(fc1.home_sources[static_cast<int>(kS)], "layers.*.mlp");
  ASSERT_OK_AND_ASSIGN(const Resolved head, tree.Resolve("head.logits"));
  EXPECT_EQ(head.homes.zero(), 3);
  EXPECT_TRUE(head.homes[kG].on_host);  // with the update
}

TEST(HomesTest, ANearerNodeTakesBackFromTheHost) {
  StrategyTree tree = Tree("zero=3,offload=param");
  (*tree.Node("layers.*"))->home = Said({{kW, "host"}});
  (*tree.Node("layers.*.mlp"))->home =
      Said({{kW, "replicate"}, {kG, "replicate"}, {kS, "replicate"}});
  (*tree.Node("head"))->home = Said({{kS, "replicate"}});
  ASSERT_OK_AND_ASSIGN(const Resolved qkv, tree.Resolve("layers.*.attn.qkv"));
  for (const HomeKind kind : {kW, kG, kS}) {
    EXPECT_EQ(PrintHome(kind, qkv.homes[kind]), "host") << kHomeKindNames[kind];
  }
  for (const char* op : {"layers.*.mlp.fc1", "head.logits"}) {
    ASSERT_OK_AND_ASSIGN(const Resolved resolved, tree.Resolve(op));
    for (const HomeKind kind : {kW, kG, kS}) {
      EXPECT_EQ(PrintHome(kind, resolved.homes[kind]), "replicate") << op << kHomeKindNames[kind];
    }
  }
  EXPECT_EQ(tree.MostShardedBelow(), 3);
}

TEST(HomesTest, TheRootsHomesArePlans) {
  StrategyTree tree = Tree("zero=1,offload=activations:3");
  (*tree.Node(""))->home = Said({{kW, "shard(dp)+host"}, {kA, "device"}});
  const ShortForm plan = tree.PlanOfRoot();
  EXPECT_EQ(plan.zero, 3);
  EXPECT_EQ(plan.offload, std::vector<std::string>{"param"});
  EXPECT_FALSE(plan.offload_layers.has_value());
  (*tree.Node(""))->home = Said({{kS, "replicate"}});
  EXPECT_EQ(tree.PlanOfRoot().zero, 0);
  (*tree.Node("head"))->home = Said({{kG, "shard(dp)"}});
  EXPECT_EQ(tree.MostShardedBelow(), 2);
}

TEST(HomesTest, TreesPrintWhatWasSaid) {
  const char* json = R"json({
  "plan": "dp=2",
  "nodes": {
    "embedding": {"home": "on(dp=1)"},
    "head": {"home": "shard(dp)+host"},
    "layers[0:2]": {"home": {"weights": "shard(dp)", "activations": "host"}}
  }
}
)json";
  ASSERT_OK_AND_ASSIGN(const StrategyTree tree, StrategyTree::FromJson(json, "tree.json"));
  EXPECT_EQ(tree.ToJson(), json);
  EXPECT_THAT(tree.DebugString(), HasSubstr("head { home: shard(dp)+host }\n"));
  EXPECT_THAT(tree.DebugString(),
              HasSubstr("layers[0:2] { home: weights shard(dp), activations host }\n"));
  EXPECT_THAT(StrategyTree::FromJson(R"({"nodes": {"head": {"home": {"buffers": "host"}}}})", "t")
                  .status()
                  .message(),
              HasSubstr("stay on the device. Leave it out; the keys are `weights`, `gradients`, "
                        "`state`, `activations`"));
  EXPECT_THAT(
      StrategyTree::FromJson(
          R"j({"nodes": {"head": {"home": {"weights": "shard(dp)", "state": "host"}}}})j", "t")
          .status()
          .message(),
      HasSubstr("contradict each other"));
}

}  // namespace
}  // namespace plancast
