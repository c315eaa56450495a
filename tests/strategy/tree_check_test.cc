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
    node->home = "shard(dp)";
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

TEST(TreeCheckTest, HomesAreReplicateOrAShard) {
  EXPECT_THAT(HomeAxis("replicate"), IsOkAndHolds(""));
  EXPECT_THAT(HomeAxis("shard(dp)"), IsOkAndHolds("dp"));
  for (const char* home : {"shard", "shard()", "sharded(dp)", "shard(dp"}) {
    EXPECT_THAT(HomeAxis(home),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is not a home layout")))
        << home;
  }
  StrategyTree tree;
  (*tree.Node(""))->home = "shard(xx)";
  EXPECT_THAT(CheckTree(tree, kMesh, kModel),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("the root: no mesh axis")));
}

// The error of a plan whose `layers` say something.
std::string Refused(const std::string& plan, const std::function<void(Directives&)>& say) {
  StrategyTree tree = StrategyTree::FromShortForm(*ParseShortForm(plan));
  say(**tree.Node("layers"));
  return std::string(CheckTree(tree, kMesh, kModel).message());
}

TEST(TreeCheckTest, AHomeIsThePlansOrIsRefused) {
  const auto home = [](const char* layout) {
    return [layout](Directives& node) { node.home = layout; };
  };
  EXPECT_EQ(Refused("", home("replicate")), "");
  for (const char* plan : {"zero=1", "zero=2", "zero=3"}) {
    EXPECT_EQ(Refused(plan, home("shard(dp)")), "");
    EXPECT_THAT(Refused(plan, home("replicate")),
                HasSubstr("`layers`: not supported yet: `home: replicate` where the plan has "
                          "`shard(dp)`, by its `zero`: all parameters have one home."));
  }
  EXPECT_THAT(Refused("", home("shard(dp)")), HasSubstr("write `zero=1` in the plan."));
  EXPECT_THAT(Refused("zero=1", home("shard(tp)")),
              HasSubstr("`layers`: not supported yet: `home: shard(tp)`; parameters' state is "
                        "sharded over `dp` alone."));
}

TEST(TreeCheckTest, ABucketIsThePlansOrIsRefused) {
  const auto bucket = [](Directives& node) { node.bucket_bytes = 32 << 20; };
  EXPECT_EQ(Refused("bucket=32MiB", bucket), "");
  for (const char* plan : {"", "bucket=25MB"}) {
    EXPECT_THAT(Refused(plan, bucket),
                HasSubstr("`layers`: not supported yet: `bucket: 32MiB` of a node; all gradients "
                          "have buckets of one size. Write `bucket=32MiB` in the plan instead."));
  }
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
