#include "planner/forecast/balanced_layers.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/model/builder.h"
#include "graph/transformer/transformer.h"
#include "gtest/gtest.h"
#include "tests/testing/seed.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// The 4B model of the paper's first table, on eight devices.
ModelGraph PaperModel(int64_t vocab, int64_t seq) {
  TransformerConfig config;
  config.name = "4b";
  config.layers = 32;
  config.hidden = 3072;
  config.heads = config.kv_heads = 24;
  config.head_dim = 128;
  config.ffn = 4 * 3072;
  config.vocab = vocab;
  config.seq = seq;
  const absl::StatusOr<ModelGraph> graph = BuildTransformer(config);
  EXPECT_OK(graph.status());
  return *graph;
}

// Deals of the authors' runs (artifact/exp_one_host.csv of sail-sg/VocabularyParallelism, FLOPs of
// each stage). A head is as much work as V / (12 h + 2 s) layers.
TEST(BalancedLayersTest, AreThoseOfTheAuthorsRuns) {
  EXPECT_THAT(BalancedLayers(PaperModel(32'000, 2048), 8),  // 0.78 layers
              ElementsAre(4, 4, 4, 4, 4, 4, 4, 4));
  EXPECT_THAT(BalancedLayers(PaperModel(64'000, 2048), 8),  // 1.56
              ElementsAre(4, 4, 4, 4, 4, 4, 5, 3));
  EXPECT_THAT(BalancedLayers(PaperModel(256'000, 2048), 8),  // 6.25: alone it is the slowest
              ElementsAre(4, 4, 4, 5, 5, 5, 5, 0));
  EXPECT_THAT(BalancedLayers(PaperModel(256'000, 4096), 8),  // 5.68
              ElementsAre(4, 4, 4, 5, 5, 5, 5, 0));
  // 3.125 and 2.84. Theirs has two layers before the head, 5.125 on the slowest stage; with one
  // it has 5.
  EXPECT_THAT(BalancedLayers(PaperModel(128'000, 2048), 8), ElementsAre(4, 4, 4, 4, 5, 5, 5, 1));
  EXPECT_THAT(BalancedLayers(PaperModel(128'000, 4096), 8), ElementsAre(4, 4, 4, 4, 4, 5, 5, 2));
}

TEST(BalancedLayersTest, MoreStagesThanLayersHaveTheEndsAlone) {
  const ModelGraph graph = PaperModel(32'000, 2048);
  EXPECT_THAT(BalancedLayers(graph, 34).size(), 34);
  EXPECT_EQ(BalancedLayers(graph, 34).front(), 0);
  EXPECT_EQ(BalancedLayers(graph, 34).back(), 0);
  EXPECT_THAT(BalancedLayers(graph, 35), IsEmpty());
  EXPECT_THAT(BalancedLayers(graph, 1), ElementsAre(32));
}

// Layers of several lists, and modules before and after.
ModelGraph Lists(const std::vector<int64_t>& widths, const std::vector<int64_t>& repeats) {
  ModelBuilder model("net");
  EXPECT_OK(model.AddDim("batch", 0));
  EXPECT_OK(model.AddDim("seq", 2));
  EXPECT_OK(model.AddDim("hidden", 4));
  for (size_t w = 0; w < widths.size(); ++w) {
    const std::string wide = absl::StrCat("w", w);
    EXPECT_OK(model.AddDim(wide, widths[w]));
    ModuleBuilder net = model.Module(absl::StrCat("module", w));
    EXPECT_OK(w == 0 ? net.Input("x", DType::kCompute, {"batch", "seq", "hidden"})
                     : net.InPort("x", {"batch", "seq", "hidden"}));
    EXPECT_OK(net.Parameter("up.w", {wide, "hidden"}));
    EXPECT_OK(net.Parameter("down.w", {"hidden", wide}));
    EXPECT_OK(net.Call("up", "linear", {"x", "up.w"}, {"up.y"}));
    EXPECT_OK(net.Call("down", "linear", {"up.y", "down.w"}, {"down.y"}));
    EXPECT_OK(net.OutPort("down.y"));
    EXPECT_OK(model.Append(absl::StrCat("module", w), net, repeats[w]));
  }
  return *model.Build();
}

TEST(BalancedLayersTest, AreTheBestOfAllDealsOfRandomLists) {
  std::mt19937 random(static_cast<uint32_t>(TestSeed(5)));
  for (int round = 0; round < 60; ++round) {
    std::vector<int64_t> widths, repeats = {1, 2, 3, 1};
    for (int w = 0; w < 4; ++w) widths.push_back(1 + static_cast<int64_t>(random() % 20));
    std::vector<int64_t> work = {widths[0]};  // the first module's, the layers', the last's
    for (int w = 1; w < 3; ++w) work.insert(work.end(), repeats[w], widths[w]);
    work.push_back(widths[3]);
    const auto stages = 2 + static_cast<int64_t>(random() % 4);
    const std::vector<int64_t> found = BalancedLayers(Lists(widths, repeats), stages);
    ASSERT_EQ(static_cast<int64_t>(found.size()), stages);
    const auto largest = [&](const std::vector<int64_t>& deal) {
      int64_t most = 0;
      size_t layer = 1;
      for (size_t s = 0; s < deal.size(); ++s) {
        int64_t own = s == 0 ? work.front() : 0;
        if (s + 1 == deal.size()) own += work.back();
        for (int64_t i = 0; i < deal[s]; ++i) own += work[layer++];
        most = std::max(most, own);
      }
      return most;
    };
    int64_t least = std::numeric_limits<int64_t>::max();
    std::vector<int64_t> deal;
    const std::function<void(int64_t)> try_all = [&](int64_t left) {
      const bool first = deal.empty();
      if (static_cast<int64_t>(deal.size()) + 1 == stages) {
        deal.push_back(left);
        least = std::min(least, largest(deal));
        deal.pop_back();
        return;
      }
      for (int64_t own = first ? 0 : 1; own <= left; ++own) {
        deal.push_back(own);
        try_all(left - own);
        deal.pop_back();
      }
    };
    try_all(5);
    EXPECT_EQ(std::accumulate(found.begin(), found.end(), int64_t{0}), 5);
    EXPECT_EQ(largest(found), least);
  }
}

}  // namespace
}  // namespace plancast
