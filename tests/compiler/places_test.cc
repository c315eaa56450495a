// Nodes on some ranks of an axis: what runs and lies where, what crosses, and that folding knows
// of it all.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "executor/executor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/folded_against_reference.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr int64_t kBatch = 4, kSeq = 16, kHidden = 64, kFfn = 256, kBf16 = 2;
constexpr int64_t kStream = kBf16 * kBatch * kSeq * kHidden;

std::string Moved(absl::string_view kind, absl::string_view axes, int64_t bytes) {
  return absl::StrCat(kind, "(", axes, ") ", bytes);
}

// x = stem(x); y = wide(x) + deep(x); loss-like last op.
PlanUnderTest TwoBranches() {
  PlanUnderTest plan({{"seq", kSeq}, {"hidden", kHidden}, {"ffn", kFfn}});
  plan.MicroBatches(kBatch, 1).ByHand();
  BodyWriter& stem = plan.Segment("stem");
  const int x = stem.InPort("x", {"batch", "seq", "hidden"});
  stem.OutPort(stem.Op1("act", "gelu", {x}));
  BodyWriter& body = plan.Segment("body");
  const int in = body.InPort("x", {"batch", "seq", "hidden"});
  const int wide = body.Op1("wide", "linear", {in}, {{"n", "ffn"}});
  const int deep = body.Op1("deep", "linear", {in}, {{"n", "ffn"}});
  body.Op("sum", "add", {wide, deep});
  return plan;
}

int64_t Parameters(const Program& program) {
  return program.static_bytes[static_cast<int>(MemoryKind::kParameters)];
}

std::vector<std::string> Labels(const ExecutionGraph& graph, const Program& program) {
  std::vector<std::string> labels;
  for (const Instance& instance : program.instances) {
    const Block& block = graph.blocks[instance.block];
    for (int32_t t = 0; t < block.size(); ++t) {
      if (block.kind[t] == TaskKind::kKernel) labels.push_back(block.label[t]);
    }
  }
  return labels;
}

TEST(PlacesTest, BranchesSideBySideRunOnTheirRanksAlone) {
  PlanUnderTest plan = TwoBranches();
  plan.Dp(2).Split("", "dp", {"batch"}).On("body.wide", "dp", "0").On("body.deep", "dp", "1");
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, plan.Compile());
  ASSERT_EQ(graph.programs.size(), 2u);
  EXPECT_EQ(graph.programs[0].name, "stage 0 dp=0");
  const std::vector<std::string> first = Labels(graph, graph.programs[0]);
  const std::vector<std::string> second = Labels(graph, graph.programs[1]);
  EXPECT_THAT(first, Contains("wide"));
  EXPECT_THAT(first, Contains("wide.wgrad"));
  EXPECT_THAT(first, ::testing::Not(Contains("deep")));
  EXPECT_THAT(second, Contains("deep"));
  EXPECT_THAT(second, ::testing::Not(Contains("wide.bwd")));
  // Each weight is on one device alone, so nobody reduces its gradient.
  EXPECT_EQ(Parameters(graph.programs[0]), Parameters(graph.programs[1]));
  EXPECT_EQ(Parameters(graph.programs[0]), kBf16 * kFfn * kHidden);
  const Moves moves = MovesOf(graph);
  EXPECT_THAT(moves.gradients, IsEmpty());
  // Samples of all ranks are gathered at each; results go back to whose samples they are in one
  // exchange of two roots, and gradients the other way.
  const int64_t whole = 2 * kStream, wide = whole / kHidden * kFfn;
  EXPECT_THAT(
      MovesOf(graph).forward,
      UnorderedElementsAre(Moved("all_to_all", "dp", whole), Moved("all_to_all", "dp", whole),
                           Moved("all_to_all", "dp", wide), Moved("all_to_all", "dp", wide)));
}

TEST(PlacesTest, AModuleOnOneTensorRankBroadcasts) {
  const int64_t tokens = 2 * 512 * 1024 * kBf16;
  PlanUnderTest plan = PlanUnderTest::Of(SmallGpt());
  plan.Tp(2).MicroBatches(2, 1).On("layers.*.mlp", "tp", "0");
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, plan.Compile());
  ASSERT_EQ(graph.programs.size(), 2u);
  // The residual stream is on all ranks: what the module makes, and its gradient, is sent to them.
  EXPECT_THAT(MovesOf(graph).forward, Contains(Moved("broadcast", "tp", tokens)));
  const int64_t feed_forward = 8 * (2 * 1024 * 4096 + 4096 + 1024 + 2 * 1024) * kBf16;
  EXPECT_EQ(Parameters(graph.programs[0]) - Parameters(graph.programs[1]), feed_forward);
}

TEST(PlacesTest, ParametersAreOnTheirRanksOnce) {
  PlanUnderTest everywhere = PlanUnderTest::Of(SmallGpt());
  everywhere.Tp(2).Dp(2).MicroBatches(2, 1);
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph all, everywhere.Compile());
  PlanUnderTest plan = PlanUnderTest::Of(SmallGpt());
  plan.Tp(2).Dp(2).MicroBatches(2, 1);
  for (const auto& [layer, rank] : {std::pair{0, "0"}, std::pair{1, "1"}}) {
    plan.On(absl::StrCat("layers[", layer, "::2].mlp"), "dp", rank);
  }
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, plan.Compile());
  ASSERT_EQ(graph.programs.size(), 2u);
  int64_t placed = 0;
  for (const Program& program : graph.programs) {
    placed += Parameters(program) * graph.DevicesOf(program);
  }
  // Two replicas, of which one alone has each feed-forward layer; both tensor ranks have its norm
  // and the bias of its second product.
  const int64_t feed_forward = 8 * (2 * 1024 * 4096 + 4096 + 2 * (1024 + 2 * 1024)) * kBf16;
  EXPECT_EQ(placed, Parameters(all.programs[0]) * 4 - feed_forward);
}

// Half of the ranks cut the samples of all among themselves, and sum gradients over these alone.
TEST(PlacesTest, PartsOfTheRanksShareTheWork) {
  PlanUnderTest plan = TwoBranches();
  plan.Dp(4).Split("", "dp", {"batch"}).On("body.wide", "dp", "0/2").On("body.deep", "dp", "1/2");
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, plan.Compile());
  ASSERT_EQ(graph.programs.size(), 2u);
  EXPECT_EQ(graph.DevicesOf(graph.programs[0]), 2);
  const std::vector<KernelSpec> products = KernelsLabelled(graph, "body.F", "wide");
  ASSERT_EQ(products.size(), 1u);
  EXPECT_EQ(products[0].flops, 2.0 * 2 * kBatch * kSeq * kHidden * kFfn);
  EXPECT_THAT(MovesOf(graph).gradients, ElementsAre(AllReduce("dp.1", 4 * kFfn * kHidden),
                                                    AllReduce("dp.1", 4 * kFfn * kHidden)));
}

TEST(PlacesTest, AllRanksOfAnAxisOfOneAreAll) {
  PlanUnderTest everywhere = PlanUnderTest::Of(SmallGpt()), plan = PlanUnderTest::Of(SmallGpt());
  everywhere.Tp(2).MicroBatches(2, 2);
  plan.Tp(2).MicroBatches(2, 2).On("layers.*.mlp", "dp", "0").On("layers.*.attn", "tp", "0/1");
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph a, everywhere.Compile());
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph b, plan.Compile());
  EXPECT_EQ(a.DebugString(), b.DebugString());
}

TEST(PlacesTest, RanksThatAreNotThereAreRefused) {
  PlanUnderTest plan = PlanUnderTest::Of(SmallGpt());
  plan.Tp(2).MicroBatches(2, 1).On("layers.*.mlp", "tp", "2");
  EXPECT_THAT(plan.Compile().status().message(),
              HasSubstr("`on: {tp: 2}`: `tp` has 2 ranks here, 0 to 1"));
  PlanUnderTest parts = PlanUnderTest::Of(SmallGpt());
  parts.Dp(4).MicroBatches(2, 1).On("layers.*.mlp", "dp", "0/3");
  EXPECT_THAT(parts.Compile().status().message(), HasSubstr("do not divide into 3 equal parts"));
}

// Nothing below the head is trained, so its ranks hand no gradient on, and others have nothing to
// do.
TEST(PlacesTest, RanksBesideTheLastModuleEndTheirBackwardPass) {
  PlanUnderTest plan = PlanUnderTest::Of(SmallGpt());
  plan.Dp(2).MicroBatches(1, 2).On("head", "dp", "0");
  plan.Train("embedding", false).Train("layers.*", false).FineTune();
  const absl::StatusOr<ExecutionGraph> graph = plan.Compile();
  ASSERT_OK(graph.status());
  EXPECT_OK(graph->Verify());
  EXPECT_EQ(graph->programs.size(), 2);
}

// The mean width of a stage's parameters stands for all of them, and ranks have unlike ones.
TEST(PlacesTest, FrozenWeightsInFourBitsAreNotGatheredBesideNodesOnSomeRanks) {
  for (const int zero : {2, 3}) {
    PlanUnderTest plan = PlanUnderTest::Of(SmallGpt());
    plan.Dp(2).MicroBatches(1, 2).On("layers.*.attn", "dp", "0");
    plan.options().zero = zero;
    plan.options().sync_each = true;
    plan.Lora("", 4, {"fc1"}, "nf4").FineTune();
    const std::string words(plan.Compile().status().message());
    EXPECT_THAT(words, zero == 3 ? HasSubstr("frozen parameters that are gathered in another type")
                                 : HasSubstr(""));
    EXPECT_EQ(words.empty(), zero < 3) << words;
  }
}

TEST(PlacesTest, RanksWithoutATaskAreRefused) {
  PlanUnderTest plan({{"seq", kSeq}, {"hidden", kHidden}});
  BodyWriter& net = plan.Segment("net");
  const int x = net.Input("x", DType::kCompute, {"batch", "seq", "hidden"});
  net.Op("fc", "linear", {x}, {{"n", "hidden"}});
  plan.Dp(2).Tp(2).MicroBatches(1, 1).On("net", "tp", "0");
  EXPECT_THAT(plan.Compile(), StatusIs(absl::StatusCode::kInvalidArgument,
                                       HasSubstr("those with tp=1 have no op of stage 0")));
}

// Of a unit of several modules, of which the one that runs last backward is on other ranks.
TEST(PlacesTest, UnitsAreReducedAndGivenUpWhereTheirLastModuleHasNoTask) {
  PlanUnderTest plan = PlanUnderTest::Of(SmallGpt());
  plan.Tp(2).Dp(2).MicroBatches(1, 2).On("embedding", "tp", "0");
  plan.options().zero = 3;
  plan.options().sync_each = true;
  plan.profile().data_parallel.shard_cut = ShardCut::kUnit;
  plan.profile().data_parallel.root_unit = true;
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, plan.Compile());
  ASSERT_EQ(graph.programs.size(), 2u);
  for (const Program& program : graph.programs) {
    EXPECT_EQ(Left(graph, program, MemoryKind::kParameters), 0) << program.name;
    EXPECT_EQ(Left(graph, program, MemoryKind::kGradients), 0) << program.name;
  }
}

}  // namespace
}  // namespace plancast
