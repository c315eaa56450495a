#include "strategy/node_path.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

NodePath At(const std::string& text) {
  const auto path = NodePath::Parse(text);
  EXPECT_OK(path.status()) << text;
  return path.ok() ? *path : NodePath();
}

// The layers of `count` that a node holds for.
std::vector<int64_t> Layers(const std::string& node, int64_t count) {
  const NodePath path = At(node);
  std::vector<int64_t> layers;
  for (int64_t i = 0; i < count; ++i) {
    ModulePath module = ModulePath::Of("layers.*.attn.qkv");
    module.index = i;
    module.count = count;
    if (path.Covers(module)) layers.push_back(i);
  }
  return layers;
}

TEST(NodePathTest, LayersAreCountedAndSlicedAsInPython) {
  using Are = std::vector<int64_t>;
  EXPECT_EQ(Layers("layers.3", 8), Are({3}));
  EXPECT_EQ(Layers("layers[3].attn", 8), Are({3}));
  EXPECT_EQ(Layers("layers[-1]", 8), Are({7}));
  EXPECT_EQ(Layers("layers[-8]", 8), Are({0}));
  EXPECT_EQ(Layers("layers[2:5]", 8), Are({2, 3, 4}));
  EXPECT_EQ(Layers("layers[6:]", 8), Are({6, 7}));
  EXPECT_EQ(Layers("layers[:-6]", 8), Are({0, 1}));
  EXPECT_EQ(Layers("layers[-2:]", 8), Are({6, 7}));
  EXPECT_EQ(Layers("layers[::3]", 8), Are({0, 3, 6}));
  EXPECT_EQ(Layers("layers[1:6:2]", 8), Are({1, 3, 5}));
  EXPECT_EQ(Layers("layers[0, 2, 5:7]", 8), Are({0, 2, 5, 6}));
  EXPECT_EQ(Layers("layers[4:4]", 8), Are({}));
  EXPECT_EQ(Layers("layers", 2), Are({0, 1}));
  EXPECT_EQ(Layers("layers.*.mlp", 2), Are({}));
  EXPECT_EQ(Layers("*[1]", 2), Are({1}));
}

TEST(NodePathTest, PathsThatSayTheSameHaveOneText) {
  for (const auto& [text, canonical] :
       std::vector<std::pair<std::string, std::string>>{{"layers[3].attn", "layers.3.attn"},
                                                        {"layers.03", "layers.3"},
                                                        {"layers[:].mlp", "layers.*.mlp"},
                                                        {"layers[0:]", "layers.*"},
                                                        {"layers[0:8:1]", "layers[0:8]"},
                                                        {"layers[:8]", "layers[0:8]"},
                                                        {"layers[ 0 , 2:4 ]", "layers[0,2:4]"},
                                                        {"layers[-1].attn", "layers[-1].attn"},
                                                        {"layers[::2]", "layers[::2]"},
                                                        {"layers[8:]", "layers[8:]"},
                                                        {"", ""},
                                                        {"head.logits", "head.logits"}}) {
    EXPECT_EQ(At(text).DebugString(), canonical) << text;
    EXPECT_EQ(At(canonical).DebugString(), canonical);
  }
}

TEST(NodePathTest, MalformedPathsSayWhatIsWrong) {
  for (const auto& [text, what] : std::vector<std::pair<std::string, std::string>>{
           {"layers..attn", "empty component"},
           {"layers[0:8", "not closed"},
           {"layers[]", "names no layers"},
           {"layers[1:2:3:4]", "names no layers"},
           {"layers[0,]", "names no layers"},
           {"layers[::-1]", "step of -1"},
           {"layers[::0]", "step of 0"},
           {"layers[a]", "`a` where the number"},
           {"layers[99999999999999999999]", "where the number"},
           {"[3]", "`[` in a component"},
           {"layers-3", "`-` in a component"}}) {
    EXPECT_THAT(NodePath::Parse(text),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what)))
        << text;
  }
}

TEST(NodePathTest, ModulesMayBeCalledByNumbers) {
  const ModulePath module = ModulePath::Of("features.0.conv");
  EXPECT_TRUE(At("features.0").Covers(module));
  EXPECT_TRUE(At("features[0:3].conv").Covers(module));
  EXPECT_FALSE(At("features.1").Covers(module));
  EXPECT_TRUE(At("stages.0.blocks.1").Covers([] {
    ModulePath path = ModulePath::Of("stages.0.blocks.*.conv");
    path.index = 1;
    path.count = 4;
    return path;
  }()));
}

TEST(NodePathTest, LayersThatAListLacksAreFound) {
  EXPECT_EQ(At("layers.8").MissingLayer(1, 8), 8);
  EXPECT_EQ(At("layers[-9]").MissingLayer(1, 8), -9);
  EXPECT_EQ(At("layers[4:9]").MissingLayer(1, 8), 9);
  EXPECT_EQ(At("layers[4:8]").MissingLayer(1, 8), std::nullopt);
  EXPECT_EQ(At("layers[-8:]").MissingLayer(1, 8), std::nullopt);
}

TEST(NodePathTest, APathForAllLayersIsCoveredByStarsOnly) {
  const ModulePath all = ModulePath::Of("layers.*.attn.qkv");
  EXPECT_TRUE(At("layers.*.attn").Covers(all));
  EXPECT_FALSE(At("layers.3.attn").Covers(all));
  EXPECT_TRUE(At("layers.3.attn").CoversSomeLayers(all));
  EXPECT_FALSE(At("layers.3.mlp").CoversSomeLayers(all));
}

}  // namespace
}  // namespace plancast
