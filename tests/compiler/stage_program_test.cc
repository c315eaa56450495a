#include "compiler/stage_program.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/plan_under_test.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TransformerConfig Small() {
  TransformerConfig config;
  config.name = "small";
  config.layers = 8;
  config.hidden = 64;
  config.heads = 8;
  config.ffn = 256;
  config.vocab = 1024;
  config.seq = 16;
  return config;
}

ExecutionGraph Compiled(PlanUnderTest& plan) {
  absl::StatusOr<ExecutionGraph> graph = plan.Compile();
  EXPECT_OK(graph.status());
  return graph.ok() ? *graph : ExecutionGraph();
}

// Layers that a program runs in a phase, over all micro-batches and chunks.
int64_t LayersRun(const ExecutionGraph& graph, const Program& program, Phase phase,
                  const std::string& block) {
  int64_t layers = 0;
  for (const Instance& instance : program.instances) {
    if (instance.phase == phase && graph.blocks[instance.block].name == block) {
      layers += instance.layer_count;
    }
  }
  return layers;
}

std::vector<std::string> BlocksRun(const ExecutionGraph& graph, const Program& program) {
  std::vector<std::string> names;
  for (const Instance& instance : program.instances) {
    names.push_back(graph.blocks[instance.block].name);
  }
  return names;
}

int64_t Count(const std::vector<std::string>& names, const std::string& name) {
  return std::count(names.begin(), names.end(), name);
}

TEST(StageProgramTest, EveryStageRunsItsLayersForEveryMicroBatch) {
  for (int64_t vpp : {1, 2}) {
    PlanUnderTest plan = PlanUnderTest::Of(Small());
    plan.Pp(4, vpp > 1 ? Schedule::kInterleaved : Schedule::k1f1b, vpp).MicroBatches(1, 8);
    const ExecutionGraph graph = Compiled(plan);
    ASSERT_THAT(graph.programs, SizeIs(4));
    for (const Program& program : graph.programs) {
      EXPECT_EQ(LayersRun(graph, program, Phase::kForward, "layer.F"), 2 * 8);
      EXPECT_EQ(LayersRun(graph, program, Phase::kBackward, "layer.B"), 2 * 8);
    }
    EXPECT_EQ(LayersRun(graph, graph.programs[0], Phase::kForward, "embedding.F"), 8);
    EXPECT_EQ(LayersRun(graph, graph.programs[3], Phase::kForward, "head.F"), 8);
    EXPECT_EQ(LayersRun(graph, graph.programs[1], Phase::kForward, "head.F"), 0);
  }
}

TEST(StageProgramTest, TheEndsOfThePipelineTalkToOneNeighbour) {
  PlanUnderTest plan = PlanUnderTest::Of(Small());
  const ExecutionGraph graph = Compiled(plan.Pp(4).MicroBatches(1, 8));
  const auto sends = [&](int stage, const char* what) {
    return Count(BlocksRun(graph, graph.programs[stage]), what);
  };
  EXPECT_EQ(sends(0, "send activation"), 8);
  EXPECT_EQ(sends(0, "receive activation"), 0);
  EXPECT_EQ(sends(0, "receive gradient"), 8);
  EXPECT_EQ(sends(3, "send activation"), 0);
  EXPECT_EQ(sends(3, "send gradient"), 8);
}

TEST(StageProgramTest, StateIsThatOfTheStagesParameters) {
  const TransformerConfig c = Small();
  PlanUnderTest plan = PlanUnderTest::Of(c);
  const ExecutionGraph graph = Compiled(plan.Pp(4).Tp(2));
  const int64_t norms = 2 * 2 * c.hidden;
  const int64_t layer = (4 * c.hidden * c.hidden + 2 * c.hidden * c.ffn) / 2 + norms;
  const auto& middle = graph.programs[1].static_bytes;
  EXPECT_EQ(middle[static_cast<int>(MemoryKind::kParameters)], 2 * 2 * layer);
  EXPECT_EQ(middle[static_cast<int>(MemoryKind::kGradients)], 4 * 2 * layer);
  EXPECT_EQ(middle[static_cast<int>(MemoryKind::kOptimizer)], 12 * 2 * layer);
}

// Those of a pass stay beside their sums, and the largest is cast whole.
TEST(StageProgramTest, GradientsThatAreCastStayInBothTypes) {
  const TransformerConfig c = Small();
  const auto gradients = [&c](bool casts, DType sum) {
    PlanUnderTest plan = PlanUnderTest::Of(c);
    plan.profile().update.casts_gradients = casts;
    plan.profile().types.grad_dtype = sum;
    const ExecutionGraph graph = Compiled(plan.Pp(4).Tp(2));
    return graph.programs[1].static_bytes[static_cast<int>(MemoryKind::kGradients)];
  };
  const int64_t norms = 2 * 2 * c.hidden;
  const int64_t layer = (4 * c.hidden * c.hidden + 2 * c.hidden * c.ffn) / 2 + norms;
  const int64_t largest = std::max(3 * c.hidden * c.hidden, c.hidden * c.ffn) / 2;
  EXPECT_EQ(gradients(true, DType::kFp32), (4 + 2) * 2 * layer + 4 * largest);
  EXPECT_EQ(gradients(false, DType::kFp32), 4 * 2 * layer);
  EXPECT_EQ(gradients(true, DType::kBf16), 2 * 2 * layer);
}

TEST(StageProgramTest, GradientsAreReducedOnceAnIteration) {
  PlanUnderTest plan = PlanUnderTest::Of(Small());
  const ExecutionGraph graph = Compiled(plan.Dp(2).MicroBatches(1, 8));
  const std::vector<std::string> blocks = BlocksRun(graph, graph.programs[0]);
  EXPECT_EQ(Count(blocks, "grad all_reduce"), 1);
  // Behind the last backward pass, before the update.
  EXPECT_EQ(blocks[blocks.size() - 2], "grad all_reduce");
  EXPECT_EQ(blocks.back(), "optimizer");
}

// Software that reduces gradients whole gathers what its ranks update none the less.
TEST(StageProgramTest, ZeroOneReducesSharesUnlessTheSoftwareReducesAll) {
  for (const bool whole : {false, true}) {
    PlanUnderTest plan = PlanUnderTest::Of(Small());
    plan.Dp(2).Zero1().MicroBatches(1, 8);
    if (whole) plan.profile().update.shared.whole_reductions = {OptimizerType::kAdam};
    const ExecutionGraph graph = Compiled(plan);
    const std::vector<std::string> blocks = BlocksRun(graph, graph.programs[0]);
    EXPECT_EQ(Count(blocks, "grad all_reduce"), whole);
    EXPECT_EQ(Count(blocks, "grad reduce_scatter"), !whole);
    EXPECT_EQ(Count(blocks, "param all_gather"), 1);
    plan.profile().update.type = OptimizerType::kSgd;  // is not among them
    const ExecutionGraph other = Compiled(plan);
    EXPECT_EQ(Count(BlocksRun(other, other.programs[0]), "grad all_reduce"), 0);
  }
}

TEST(StageProgramTest, OverlappedGradientsLeaveInBucketsDuringTheLastBackwardPass) {
  PlanUnderTest plan = PlanUnderTest::Of(Small());
  plan.Dp(2).MicroBatches(1, 8);
  plan.options().overlap = {Overlap::kGrad};
  plan.options().bucket_bytes = 1;  // every layer fills one
  const ExecutionGraph graph = Compiled(plan);
  const std::vector<std::string> blocks = BlocksRun(graph, graph.programs[0]);
  EXPECT_EQ(Count(blocks, "grad all_reduce"), 8 + 2);  // layers, head, embedding
  const auto first = std::find(blocks.begin(), blocks.end(), "grad all_reduce");
  EXPECT_THAT(std::vector<std::string>(first, blocks.end()), Contains("layer.B").Times(8));
}

// The head fills a first bucket of any size, layers fill the second one after the other; without a
// head on the stage it is its last layer.
TEST(StageProgramTest, TheFirstBucketOfAPassMayBeSmaller) {
  const auto order = [](int64_t pp, int64_t first) {
    PlanUnderTest plan = PlanUnderTest::Of(Small());
    plan.Dp(2).Pp(pp).MicroBatches(1, 8);
    plan.options().overlap = {Overlap::kGrad};
    plan.options().bucket_bytes = int64_t{1} << 40;
    plan.options().first_bucket_bytes = first;
    const ExecutionGraph graph = Compiled(plan);
    std::string text;
    for (const std::string& block : BlocksRun(graph, graph.programs[0])) {
      if (block == "grad all_reduce") text += "r";
      if (absl::EndsWith(block, ".B")) text += "B";
    }
    return text.substr(text.size() - std::min<size_t>(text.size(), 6));
  };
  EXPECT_EQ(order(1, 0).find('r'), order(1, 0).size() - 1);
  EXPECT_EQ(order(1, 1), "BBrBBr");  // head, layers, embedding
  EXPECT_EQ(order(2, 0).find('r'), order(2, 0).size() - 1);
  EXPECT_EQ(order(2, 1), "BBrBBr");  // a layer, three layers, embedding
}

TEST(StageProgramTest, OverlappedParametersAreWaitedForLayerByLayer) {
  PlanUnderTest plan = PlanUnderTest::Of(Small());
  plan.Dp(2).Zero1().MicroBatches(1, 2);
  plan.options().overlap = {Overlap::kParam};
  plan.options().bucket_bytes = 1;
  const ExecutionGraph graph = Compiled(plan);
  const std::vector<std::string> blocks = BlocksRun(graph, graph.programs[0]);
  EXPECT_EQ(Count(blocks, "param all_gather"), 8 + 2);
  EXPECT_EQ(blocks.front(), "param all_gather");
  // The second micro-batch finds them there.
  EXPECT_EQ(Count(blocks, "layer.F"), 8 + 1);
}

TEST(StageProgramTest, TiedEmbeddingsMeetAtTheEnd) {
  TransformerConfig config = Small();
  config.tied_embeddings = true;
  PlanUnderTest plan = PlanUnderTest::Of(config);
  const ExecutionGraph graph = Compiled(plan.Pp(4).Tp(2));
  const CommSpec* tied = nullptr;
  for (int stage : {0, 1, 2, 3}) {
    const std::vector<std::string> blocks = BlocksRun(graph, graph.programs[stage]);
    EXPECT_EQ(Count(blocks, "tied gradient"), stage == 0 || stage == 3);
  }
  for (const Block& block : graph.blocks) {
    if (block.name == "tied gradient") tied = &graph.comms[block.spec[0]];
  }
  ASSERT_NE(tied, nullptr);
  EXPECT_EQ(tied->bytes, 4 * config.vocab * config.hidden / 2);
}

TEST(StageProgramTest, TiedEmbeddingsOnOneStageAreOneParameter) {
  TransformerConfig config = Small();
  PlanUnderTest apart = PlanUnderTest::Of(config);
  config.tied_embeddings = true;
  PlanUnderTest tied = PlanUnderTest::Of(config);
  const int kind = static_cast<int>(MemoryKind::kParameters);
  EXPECT_EQ(Compiled(apart).programs[0].static_bytes[kind] -
                Compiled(tied).programs[0].static_bytes[kind],
            2 * config.vocab * config.hidden);
}

// On one stage or on two: whoever borrows a weight has it as its last user does.
TEST(StageProgramTest, TiedEmbeddingsAreCutAlike) {
  TransformerConfig config = Small();
  config.tied_embeddings = true;
  for (const int64_t pp : {1, 4}) {
    PlanUnderTest plan = PlanUnderTest::Of(config);
    plan.Tp(2).Split("head", "tp", {"seq"});
    plan.Pp(pp, pp > 1 ? Schedule::k1f1b : Schedule::kNone);
    EXPECT_THAT(plan.Compile(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("`embedding.tokens.w` and `head.logits.w` are one parameter, "
                                   "and `tp` cuts `vocab` of the one and nothing of the other.")));
  }
}

TEST(StageProgramTest, TheNormOfGradientsIsMetByAllStages) {
  PlanUnderTest plan = PlanUnderTest::Of(Small());
  plan.profile().update.grad_clip = true;
  const ExecutionGraph graph = Compiled(plan.Pp(4).MicroBatches(1, 4));
  EXPECT_EQ(std::count_if(graph.rendezvous.begin(), graph.rendezvous.end(),
                          [](const Rendezvous& r) { return r.parties.size() == 4; }),
            1);
}

TEST(StageProgramTest, BlocksDoNotGrowWithMicroBatchesOrLayers) {
  std::vector<size_t> blocks;
  for (int64_t layers : {8, 16}) {
    for (int64_t m : {4, 16}) {
      TransformerConfig config = Small();
      config.layers = layers;
      PlanUnderTest plan = PlanUnderTest::Of(config);
      blocks.push_back(Compiled(plan.Pp(4).Tp(2).MicroBatches(1, m)).blocks.size());
    }
  }
  EXPECT_EQ(blocks[0], blocks[1]);
  EXPECT_EQ(blocks[2], blocks[3]);
  EXPECT_THAT(blocks, Each(blocks[0]));
}

}  // namespace
}  // namespace plancast
