#include "strategy/tree_check.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

const std::vector<SizedAxis> kMesh = {{"pp", 4}, {"dp", 4}, {"tp", 8}};
const ModelPaths kModel = {
    {"embedding.tokens", "layers.*.attn.qkv", "layers.*.mlp.fc1", "head.logits"}, {{"layers", 8}}};

TEST(TreeCheckTest, NodesThatHoldForSomethingPass) {
  StrategyTree tree = StrategyTree::FromShortForm(*ParseShortForm("zero=1,bucket=25MB"));
  for (const char* path :
       {"", "head", "layers", "layers.*", "layers.*.attn", "*.*.*.qkv", "layers.*.mlp.fc1"}) {
    ASSERT_OK_AND_ASSIGN(Directives * node, tree.Node(path));
    node->SetSplit({"tp", {"heads"}});
    node->SetSplit({"pp", {}});
    node->home[HomeKind::kState] = Home{"dp", false};
    node->bucket_bytes = 25'000'000;
  }
  EXPECT_OK(CheckTree(tree, kMesh, kModel));
}

TEST(TreeCheckTest, ATypoInAPathGetsTheNearest) {
  StrategyTree tree;
  ASSERT_OK(tree.Node("layers.*.atn"));
  EXPECT_THAT(CheckTree(tree, kMesh, kModel),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("nothing in the model is at `layers.*.atn`. Did you mean "
                                 "`layers.*.attn`?")));
  EXPECT_OK(CheckTree(tree, kMesh, {}));
}

TEST(TreeCheckTest, LayersThatTheModelLacksAreNamed) {
  const auto refused = [](const char* path) {
    StrategyTree tree;
    EXPECT_OK(tree.Node(path));
    return std::string(CheckTree(tree, kMesh, kModel).message());
  };
  EXPECT_EQ(refused("layers[2:6].attn"), "");
  EXPECT_EQ(refused("layers[-8]"), "");
  EXPECT_EQ(refused("layers.8"),
            "`layers.8`: `layers` has no layer 8: it has 8, 0 to 7, or -8 to -1 from the end.");
  EXPECT_THAT(refused("layers[4:9].attn"), HasSubstr("`layers` has no layer 9"));
  EXPECT_THAT(refused("layers[4:4].attn"), HasSubstr("no layer of `layers` is in it"));
  EXPECT_THAT(refused("layers.3.atn"), HasSubstr("nothing in the model is at `layers.3.atn`"));
  EXPECT_THAT(refused("head[0]"), HasSubstr("nothing in the model is at"));
}

TEST(TreeCheckTest, APathFarFromAllGetsTheList) {
  StrategyTree tree;
  ASSERT_OK(tree.Node("convolutions"));
  EXPECT_THAT(CheckTree(tree, kMesh, kModel),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("There are `embedding`")));
}

TEST(TreeCheckTest, AnUnknownAxisGetsTheMeshAndTheNearest) {
  StrategyTree tree;
  (*tree.Node("head"))->SetSplit({"tpp", {"vocab"}});
  EXPECT_THAT(CheckTree(tree, kMesh, kModel),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("`head`: no mesh axis `tpp`; the mesh has `pp` (4), `dp` (4), "
                                 "`tp` (8). Did you mean `tp`?")));
}

// The error of a plan whose `layers` say something.
std::string Refused(const std::string& plan, const std::function<void(Directives&)>& say) {
  StrategyTree tree = StrategyTree::FromShortForm(*ParseShortForm(plan));
  say(**tree.Node("layers"));
  return std::string(CheckTree(tree, kMesh, kModel).message());
}

std::function<void(Directives&)> Says(HomeKind kind, const char* home) {
  return [=](Directives& node) { node.home[kind] = *ParseHome(kind, home); };
}

TEST(TreeCheckTest, HomesShardOverAxesOfAStage) {
  for (const HomeKind kind : {HomeKind::kWeights, HomeKind::kGradients, HomeKind::kState}) {
    for (const char* home : {"shard(dp)", "shard(tp)", "shard(dp,tp)", "host"}) {
      EXPECT_EQ(Refused("", Says(kind, home)), "");
    }
    EXPECT_EQ(Refused("zero=3", Says(kind, "replicate")), "");
  }
  EXPECT_THAT(Refused("", Says(HomeKind::kState, "shard(dp,xx)")),
              HasSubstr("`layers`: no mesh axis `xx`; the mesh has `pp` (4), `dp` (4), `tp` (8)."));
  EXPECT_THAT(Refused("", Says(HomeKind::kWeights, "shard(pp)")),
              HasSubstr("`layers`: `weights: shard(pp)`: `pp` deals whole layers to stages"));
}

TEST(TreeCheckTest, TheRootsHomesAreThoseOfZeroAndOffload) {
  const auto of_root = [](HomeKind kind, const char* home) {
    StrategyTree tree;
    Says(kind, home)(**tree.Node(""));
    return std::string(CheckTree(tree, kMesh, kModel).message());
  };
  EXPECT_EQ(of_root(HomeKind::kWeights, "shard(dp)+host"), "");
  EXPECT_EQ(of_root(HomeKind::kState, "host"), "");
  EXPECT_THAT(of_root(HomeKind::kState, "shard(tp)"),
              HasSubstr("the root: `state: shard(tp)` at the root, whose homes are `zero` and "
                        "`offload` of the plan: these shard over `dp`. Say it at `*`"));
  EXPECT_THAT(of_root(HomeKind::kWeights, "host"), HasSubstr("Say it at `*`"));
}

TEST(TreeCheckTest, HomesThatContradictEachOtherAreRefused) {
  const auto both = [](Directives& node) {
    Says(HomeKind::kWeights, "shard(dp)")(node);
    Says(HomeKind::kGradients, "replicate")(node);
  };
  EXPECT_THAT(Refused("", both),
              HasSubstr("`layers`: `weights: shard(dp)` and `gradients: replicate` contradict each "
                        "other: a device updates the shard that it keeps"));
}

TEST(TreeCheckTest, APipelineAxisSplitsNoDim) {
  EXPECT_THAT(
      Refused("",
              [](Directives& node) {
                node.SetSplit({"pp", {"batch"}});
              }),
      HasSubstr("`layers`: `pp` splits no dim (`batch`): it deals whole layers to stages."));
}

}  // namespace
}  // namespace plancast
