#include "strategy/tree_check.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

const std::vector<SizedAxis> kMesh = {{"pp", 4}, {"dp", 4}, {"tp", 8}};
const std::vector<std::string> kOps = {"embedding.tokens", "layers.*.attn.qkv", "layers.*.mlp.fc1",
                                       "head.logits"};

TEST(TreeCheckTest, NodesThatHoldForSomethingPass) {
  StrategyTree tree;
  for (const char* path :
       {"", "head", "layers", "layers.*", "layers.*.attn", "*.*.*.qkv", "layers.*.mlp.fc1"}) {
    ASSERT_OK_AND_ASSIGN(Directives * node, tree.Node(path));
    node->SetSplit({"tp", {"heads"}});
    node->home = "shard(dp)";
  }
  EXPECT_OK(CheckTree(tree, kMesh, kOps));
}

TEST(TreeCheckTest, ATypoInAPathGetsTheNearest) {
  StrategyTree tree;
  ASSERT_OK(tree.Node("layers.*.atn"));
  EXPECT_THAT(CheckTree(tree, kMesh, kOps),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("nothing in the model is at `layers.*.atn`. Did you mean "
                                 "`layers.*.attn`?")));
  EXPECT_OK(CheckTree(tree, kMesh, {}));
}

TEST(TreeCheckTest, APathFarFromAllGetsTheList) {
  StrategyTree tree;
  ASSERT_OK(tree.Node("convolutions"));
  EXPECT_THAT(CheckTree(tree, kMesh, kOps),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("There are `embedding`")));
}

TEST(TreeCheckTest, AnUnknownAxisGetsTheMeshAndTheNearest) {
  StrategyTree tree;
  (*tree.Node("head"))->SetSplit({"tpp", {"vocab"}});
  EXPECT_THAT(CheckTree(tree, kMesh, kOps),
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
  EXPECT_THAT(CheckTree(tree, kMesh, kOps),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("the root: no mesh axis")));
}

}  // namespace
}  // namespace plancast
