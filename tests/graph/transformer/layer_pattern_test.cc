#include "graph/transformer/layer_pattern.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace plancast {
namespace {

TransformerConfig Layers(int64_t layers) {
  TransformerConfig config;
  config.layers = layers;
  config.seq = 64;
  return config;
}

// "3d 5ew": three dense layers, five with experts and a window.
std::string Text(const TransformerConfig& config) {
  std::string text;
  for (const LayerRun& run : LayerPattern(config)) {
    absl::StrAppend(&text, text.empty() ? "" : " ", run.count, run.kind.routed ? "e" : "d",
                    run.kind.windowed ? "w" : "");
  }
  return text;
}

TEST(LayerPatternTest, LayersAreAlikeUnlessSaid) { EXPECT_EQ(Text(Layers(5)), "5d"); }

TEST(LayerPatternTest, WindowsComeAgainAndAgain) {
  TransformerConfig config = Layers(8);
  config.window = 16;
  EXPECT_EQ(Text(config), "8dw");
  config.window_pattern = "wf";
  EXPECT_EQ(Text(config), "1dw 1d 1dw 1d 1dw 1d 1dw 1d");
  config.window_pattern = "wwwwwf";
  EXPECT_EQ(Text(config), "5dw 1d 2dw");
  config.seq = 16;  // the window holds everything
  EXPECT_EQ(Text(config), "8d");
}

TEST(LayerPatternTest, ExpertsFollowDenseLayers) {
  TransformerConfig config = Layers(6);
  config.experts.count = 4;
  EXPECT_EQ(Text(config), "6e");
  config.experts.dense_layers = 2;
  EXPECT_EQ(Text(config), "2d 4e");
  config.experts.every = 2;
  config.experts.dense_layers = 3;
  EXPECT_EQ(Text(config), "3d 1e 1d 1e");
}

}  // namespace
}  // namespace plancast
