// What layers keep and run again under sets of ops, against bytes counted by hand.

#include "compiler/bind/recompute.h"

#include <algorithm>
#include <string>
#include <vector>

#include "compiler/bind/bind.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/plan_under_test.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kSeq = 64, kHidden = 128, kHeads = 8, kKvHeads = 2, kHeadDim = 16, kFfn = 320;
constexpr int64_t kBatch = 2, kTokens = kSeq * kBatch;
// Bytes of a tensor [batch, seq, n] in 16 bits.
constexpr int64_t Wide(int64_t n) { return 2 * kTokens * n; }
constexpr int64_t kX = Wide(kHidden);                      // the stream, q, attention's result
constexpr int64_t kKv = Wide(kKvHeads * kHeadDim);         // k or v
constexpr int64_t kF = Wide(kFfn);                         // gate, up, activation
constexpr int64_t kRstd = 4 * kTokens;                     // of one norm
constexpr int64_t kStatistics = 2 * 4 * kTokens * kHeads;  // attention: maximum and sum

TransformerConfig Llama() {
  TransformerConfig config;
  config.name = "llama";
  config.layers = 4;
  config.hidden = kHidden;
  config.heads = kHeads;
  config.kv_heads = kKvHeads;
  config.head_dim = kHeadDim;
  config.ffn = kFfn;
  config.vocab = 256;
  config.seq = config.max_positions = kSeq;
  config.mlp = Mlp::kSwiglu;
  config.norm = Norm::kRmsNorm;
  config.position = Position::kRope;
  config.qkv_bias = config.out_bias = config.mlp_bias = false;
  return config;
}

PlanUnderTest Plan(const TransformerConfig& config, std::vector<std::string> words) {
  PlanUnderTest plan = PlanUnderTest::Of(config);
  plan.MicroBatches(kBatch, 1).Recomputing(words.empty() ? Recompute::kNone
                                                         : Recompute::kSelective);
  // PyTorch's own words are for its checkpoint, which stops behind what it needs.
  plan.profile().recompute.replays_only_needed = words == std::vector<std::string>{"op"};
  plan.options().recompute_ops = std::move(words);
  return plan;
}

int64_t Saved(PlanUnderTest& plan, const char* block = "layer.F") {
  const absl::StatusOr<ExecutionGraph> graph = plan.Compile();
  EXPECT_OK(graph.status());
  if (!graph.ok()) return 0;
  int64_t bytes = 0;
  for (const MemoryEvent& event : BlockNamed(*graph, block).memory) bytes += event.delta;
  return bytes;
}
int64_t Saved(std::vector<std::string> words) {
  PlanUnderTest plan = Plan(Llama(), std::move(words));
  return Saved(plan);
}

// Labels of the tasks that run again.
std::vector<std::string> Again(PlanUnderTest& plan, const char* name = "layer.B") {
  const absl::StatusOr<ExecutionGraph> graph = plan.Compile();
  EXPECT_OK(graph.status());
  std::vector<std::string> labels;
  if (!graph.ok()) return labels;
  const Block& block = BlockNamed(*graph, name);
  for (int32_t t = 0; t < block.size(); ++t) {
    if (block.purpose[t] == Purpose::kRecompute && block.kind[t] == TaskKind::kKernel) {
      labels.push_back(block.label[t]);
    }
  }
  return labels;
}

double FlopsAgain(PlanUnderTest& plan) {
  const absl::StatusOr<ExecutionGraph> graph = plan.Compile();
  EXPECT_OK(graph.status());
  double flops = 0;
  const Block& block = BlockNamed(*graph, "layer.B");
  for (int32_t t = 0; t < block.size(); ++t) {
    if (block.purpose[t] != Purpose::kRecompute || block.kind[t] != TaskKind::kKernel) continue;
    const KernelSpec& kernel = graph->kernels[block.spec[t]];
    if (kernel.family == KernelFamily::kGemm) flops += kernel.flops;
  }
  return flops;
}

// x, norm, q, k, v, o, residual, norm, gate, up, activation.
constexpr int64_t kAll = 6 * kX + 2 * kKv + 3 * kF + 2 * kRstd + kStatistics;

TEST(RecomputeSetsTest, NothingIsGivenUpWithout) { EXPECT_EQ(Saved({}), kAll); }

TEST(RecomputeSetsTest, FusedAttentionGivesUpItsStatistics) {
  EXPECT_EQ(Saved({"core_attn"}), kAll - kStatistics);
}

// Inputs of the norms are kept as they are, for the residual stream.
TEST(RecomputeSetsTest, NormsGiveUpResultsAndStatistics) {
  EXPECT_EQ(Saved({"layernorm"}), kAll - 2 * kX - 2 * kRstd);
}

TEST(RecomputeSetsTest, TheFeedForwardLayerKeepsItsInput) {
  EXPECT_EQ(Saved({"mlp"}), kAll - 3 * kF);
  EXPECT_EQ(Saved({"mlp", "layernorm"}), kAll - 3 * kF - 2 * kX - 2 * kRstd);
  EXPECT_EQ(Saved({"mlp", "layernorm", "core_attn"}),
            kAll - 3 * kF - 2 * kX - 2 * kRstd - kStatistics);
}

// Transformer Engine's LayerNormLinear: the norm goes with the product that alone reads it.
TEST(RecomputeSetsTest, NormsThatArePartOfProductsGoWithThem) {
  const auto saved = [](std::vector<std::string> words) {
    PlanUnderTest plan = Plan(Llama(), std::move(words));
    plan.options().norms_in_products = true;
    return Saved(plan);
  };
  EXPECT_EQ(saved({"layernorm"}), kAll);
  EXPECT_EQ(saved({"mlp"}), kAll - 3 * kF - kX - kRstd);
  EXPECT_EQ(saved({"mlp", "layernorm"}), saved({"mlp"}));
  // Router and experts both read the norm of a mixture.
  TransformerConfig config = Llama();
  config.experts.count = 8;
  config.experts.topk = 2;
  config.experts.ffn = kFfn;
  PlanUnderTest none = Plan(config, {}), norm = Plan(config, {"layernorm"});
  norm.options().norms_in_products = true;
  EXPECT_EQ(Saved(none, "moe_layer.F") - Saved(norm, "moe_layer.F"), kX + kRstd);
}

// torchtitan's list: products 1, 3, 5, 7 of q, k, v, out, gate, up, down; attention's
// result with its statistics; and the input.
TEST(RecomputeSetsTest, EveryOtherProductIsKept) {
  EXPECT_EQ(Saved({"op"}), kX + kX + kKv + kX + kStatistics + kF);
  PlanUnderTest eager = Plan(Llama(), {"op"});
  eager.profile().recompute.keeps_unread = true;  // the seventh product, which no gradient reads
  EXPECT_EQ(Saved(eager), kX + kX + kKv + kX + kStatistics + kF + kX);
}

TEST(RecomputeSetsTest, WhatIsRecomputedIsTheSetsForwardWork) {
  PlanUnderTest mlp = Plan(Llama(), {"mlp"});
  EXPECT_THAT(Again(mlp), ElementsAre("mlp.fc1.again", "mlp.act.again", "mlp.fc2.again"));
  const double product = 2.0 * kTokens * kHidden;
  EXPECT_EQ(FlopsAgain(mlp), product * 3 * kFfn);
  PlanUnderTest norms = Plan(Llama(), {"layernorm"});
  EXPECT_THAT(Again(norms), ElementsAre("mlp.norm.again", "attn.norm.again"));
  // Of the products k, out and up.
  PlanUnderTest op = Plan(Llama(), {"op"});
  EXPECT_EQ(FlopsAgain(op), product * (kKvHeads * kHeadDim + kHidden + kFfn));
}

TEST(RecomputeSetsTest, OnlyWhatGradientsReadRunsAgainWhereTheProfileSaysSo) {
  PlanUnderTest plan = PlanUnderTest::Of(Llama());
  plan.MicroBatches(kBatch, 1).Recomputing(Recompute::kFull);
  std::vector<std::string> again = Again(plan);
  EXPECT_EQ(again.back(), "mlp.residual.again");
  plan.profile().recompute.replays_only_needed = true;
  again = Again(plan);
  EXPECT_EQ(again.back(), "mlp.act.again");
  EXPECT_EQ(Saved(plan), kX);
}

TEST(RecomputeSetsTest, SumsOverTensorParallelRanksAreKeptOnceReduced) {
  PlanUnderTest plan = Plan(Llama(), {"op"});
  plan.Tp(2).Sp();
  // attn.proj's result is kept, as rows of this rank; all else is half as wide.
  EXPECT_EQ(Saved(plan), (kX + kX + kKv + kX + kStatistics + kF + kX) / 2);
  for (const std::string& label : Again(plan)) EXPECT_NE(label, "attn.proj.again");
}

TransformerConfig Experts() {
  TransformerConfig config = Llama();
  config.experts.count = 4;
  config.experts.topk = 2;
  config.experts.ffn = 48;
  config.experts.shared = 1;
  config.experts.normalized = true;
  return config;
}

int64_t SavedOfExperts(std::vector<std::string> words) {
  PlanUnderTest plan = Plan(Experts(), std::move(words));
  return Saved(plan, "moe_layer.F");
}

// Slots for all tokens times topk; gate, up and activation of their experts.
TEST(RecomputeSetsTest, ExpertsGiveUpTheirActivation) {
  const int64_t act = 2 * (kTokens * 2) * 48;
  EXPECT_EQ(SavedOfExperts({}) - SavedOfExperts({"moe_act"}), act);
  const int64_t shared = Wide(48);
  EXPECT_EQ(SavedOfExperts({}) - SavedOfExperts({"shared_experts"}), 3 * shared);
  // What is left of the feed-forward layer: its norm with its input.
  EXPECT_EQ(SavedOfExperts({"moe"}), kAll - 3 * kF);
}

// Latents' norms with their statistics, queries, keys and values, and what is rotated of
// them; instead, the key's part before its rotation.
TEST(RecomputeSetsTest, LatentAttentionGivesUpWhatItProjectsUp) {
  TransformerConfig config = Llama();
  config.kv_heads = kHeads;
  config.latent = {/*q_rank=*/48, /*kv_rank=*/32, /*own_dim=*/12, /*rotated_dim=*/4,
                   /*value_dim=*/10};
  PlanUnderTest none = Plan(config, {}), some = Plan(config, {"mla_up_proj"});
  const int64_t given_up =
      Wide(48) + Wide(32) + Wide(kHeads * (12 + 4)) + Wide(kHeads * (12 + 10)) + 2 * kRstd;
  EXPECT_EQ(Saved(none) - Saved(some), given_up);
}

// It also names rotations, which attention without latents has as well.
TEST(RecomputeSetsTest, NothingIsProjectedUpWithoutLatents) {
  EXPECT_EQ(Saved({"mla_up_proj"}), kAll);
  PlanUnderTest plan = Plan(Llama(), {"mla_up_proj"});
  EXPECT_THAT(Again(plan), IsEmpty());
}

TEST(RecomputeSetsTest, NodesOfTheTreeHaveSetsOfTheirOwn) {
  PlanUnderTest plan = Plan(Llama(), {});
  ASSERT_OK_AND_ASSIGN(Directives * node, plan.tree().Node("layers.*.mlp"));
  ASSERT_OK(node->SetRecompute("selective:layernorm"));
  EXPECT_EQ(Saved(plan), kAll - kX - kRstd);
  EXPECT_THAT(node->SetRecompute("selective:layernorms"),
              StatusIs(absl::StatusCode::kInvalidArgument, testing::HasSubstr("`layernorm`")));
}

// Layers 1, 3, ... of a stage run again, counted over its chunks.
TEST(RecomputeEveryTest, EveryNthLayerOfAStage) {
  TransformerConfig config = Llama();
  config.layers = 8;
  PlanUnderTest plan = PlanUnderTest::Of(config);
  plan.Pp(2).Recomputing(Recompute::kFull).options().recompute_every = 3;
  ASSERT_OK_AND_ASSIGN(const BoundModel bound, Bind(plan.graph(), plan.tree(), plan.options()));
  std::vector<int64_t> counts;
  std::vector<bool> again;
  for (const StageRun& run : bound.stages[1]) {
    if (!bound.graph.segments[run.segment].in_list()) continue;
    counts.push_back(run.count);
    again.push_back(static_cast<bool>(bound.bodies[run.bound_body].replays[0]));
  }
  EXPECT_THAT(counts, ElementsAre(2, 1, 1));
  EXPECT_THAT(again, ElementsAre(false, true, false));
}

TEST(RecomputeEveryTest, TheProgramRunsBothKindsOfLayers) {
  PlanUnderTest plan = PlanUnderTest::Of(Llama());
  plan.Recomputing(Recompute::kFull).options().recompute_every = 2;
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, plan.Compile());
  int64_t again = 0, layers = 0;
  for (const Instance& instance : graph.programs[0].instances) {
    const Block& block = graph.blocks[instance.block];
    if (block.name != "layer.B") continue;
    layers += instance.layer_count;
    const auto& purpose = block.purpose;
    const bool replays =
        std::find(purpose.begin(), purpose.end(), Purpose::kRecompute) != purpose.end();
    again += replays ? instance.layer_count : 0;
  }
  EXPECT_EQ(layers, 4);
  EXPECT_EQ(again, 2);
}

TEST(RecomputeEveryTest, EveryLayerIsFull) {
  PlanUnderTest every = PlanUnderTest::Of(Llama()), full = PlanUnderTest::Of(Llama());
  every.Recomputing(Recompute::kFull).options().recompute_every = 1;
  full.Recomputing(Recompute::kFull);
  EXPECT_EQ(every.Compile()->DebugString(), full.Compile()->DebugString());
}

}  // namespace
}  // namespace plancast
