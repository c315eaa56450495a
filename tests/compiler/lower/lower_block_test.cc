// Memory of blocks: what a layer keeps between its passes, against the
// formulas of Korthikanti et al., "Reducing Activation Recomputation in Large
// Transformer Models" (2022), table 2; and that everything is given back.

#include "compiler/lower/lower_block.h"

#include <map>
#include <string>
#include <vector>

#include "executor/executor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/plan_under_test.h"

namespace plancast {
namespace {

constexpr double kTolerance = 0.005;  // statistics of norms and softmax, biases

constexpr double kS = 512, kB = 2, kH = 1024, kA = 16;
constexpr double kSbh = kS * kB * kH;
constexpr double kScores = 5 * kA * kS / kH;  // 5as/h

int64_t NetBytes(const Block& block) {
  int64_t bytes = 0;
  for (const MemoryEvent& event : block.memory) bytes += event.delta;
  return bytes;
}

// GPT as Megatron-LM trained it in 2022: unfused attention, dropout, fused
// pointwise ops.
PlanUnderTest Megatron() {
  TransformerConfig config = SmallGpt();
  PlanUnderTest plan = PlanUnderTest::Of(config, /*flash=*/false, /*dropout=*/true);
  plan.profile().kernels.fusions = {"bias_gelu", "bias_dropout_add"};
  plan.MicroBatches(static_cast<int64_t>(kB), 1);
  return plan;
}

// Bytes that a layer's forward pass leaves for its backward pass.
double SavedPerLayer(PlanUnderTest& plan) {
  const absl::StatusOr<ExecutionGraph> graph = plan.Compile();
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return 0;
  const double saved = static_cast<double>(NetBytes(BlockNamed(*graph, "layer.F")));
  EXPECT_EQ(NetBytes(BlockNamed(*graph, "layer.B")), -saved);
  return saved;
}

void ExpectSaved(PlanUnderTest& plan, double bytes) {
  EXPECT_NEAR(SavedPerLayer(plan) / bytes, 1, kTolerance);
}

TEST(ActivationMemoryTest, OneDeviceKeeps34SbhAndTheScores) {
  ExpectSaved(Megatron().Tp(1), kSbh * (34 + kScores));
}

TEST(ActivationMemoryTest, TensorParallelismLeavesNormsAndDropoutsWhole) {
  for (int64_t t : {2, 4, 8}) ExpectSaved(Megatron().Tp(t), kSbh * (10 + (24 + kScores) / t));
}

TEST(ActivationMemoryTest, SequenceParallelismDividesAll) {
  for (int64_t t : {2, 4, 8}) ExpectSaved(Megatron().Tp(t).Sp(), kSbh * (34 + kScores) / t);
}

TEST(ActivationMemoryTest, SelectiveRecomputeDropsTheScores) {
  ExpectSaved(Megatron().Tp(4).Recomputing(Recompute::kSelective), kSbh * (10 + 24.0 / 4));
  ExpectSaved(Megatron().Tp(4).Sp().Recomputing(Recompute::kSelective), kSbh * 34 / 4);
}

TEST(ActivationMemoryTest, FullRecomputeKeepsTheInputOnly) {
  ExpectSaved(Megatron().Tp(4).Recomputing(Recompute::kFull), 2 * kSbh);
  ExpectSaved(Megatron().Tp(4).Sp().Recomputing(Recompute::kFull), 2 * kSbh / 4);
}

// The table's terms to the byte; it leaves out mean and deviation of two norms and the
// sum of each row of scores, all fp32.
TEST(ActivationMemoryTest, TheTableIsExactButForStatistics) {
  const double statistics = 2 * (4 + 4) * kS * kB, sums = 4 * kA * kS * kB;
  for (const int64_t tp : {2, 4, 8}) {
    const auto t = static_cast<double>(tp);
    EXPECT_EQ(SavedPerLayer(Megatron().Tp(tp)),
              kSbh * (10 + (24 + kScores) / t) + statistics + sums / t);
    EXPECT_EQ(SavedPerLayer(Megatron().Tp(tp).Sp()),
              (kSbh * (34 + kScores) + statistics + sums) / t);
    EXPECT_EQ(SavedPerLayer(Megatron().Tp(tp).Recomputing(Recompute::kSelective)),
              kSbh * (10 + 24 / t) + statistics);
    EXPECT_EQ(SavedPerLayer(Megatron().Tp(tp).Sp().Recomputing(Recompute::kSelective)),
              (kSbh * 34 + statistics) / t);
    EXPECT_EQ(SavedPerLayer(Megatron().Tp(tp).Recomputing(Recompute::kFull)), kSbh * 2);
  }
}

// What each technique leaves of the activations under tensor parallelism alone, for the
// models of the paper's table 3: section 5 says that sequence parallelism and selective
// recomputation each halve them, and together leave a fifth.
TEST(ActivationMemoryTest, SharesOfTheTensorParallelBaseline) {
  struct Model {
    int64_t heads, hidden;
  };
  for (const Model& model : {Model{64, 6144}, {96, 12288}, {128, 20480}, {160, 25600}}) {
    constexpr int64_t seq = 2048, tp = 8;
    TransformerConfig config = SmallGpt();
    config.layers = 1;
    config.heads = config.kv_heads = model.heads;
    config.hidden = model.hidden;
    config.head_dim = model.hidden / model.heads;
    config.ffn = 4 * model.hidden;
    config.seq = config.max_positions = seq;
    const auto saved = [&](bool sp, Recompute recompute) {
      PlanUnderTest plan = PlanUnderTest::Of(config, /*flash=*/false, /*dropout=*/true);
      plan.profile().kernels.fusions = {"bias_gelu", "bias_dropout_add"};
      plan.Tp(tp).Recomputing(recompute);
      if (sp) plan.Sp();
      return SavedPerLayer(plan);
    };
    const double scores =
        5.0 * static_cast<double>(model.heads) * seq / static_cast<double>(model.hidden);
    const double table = 10 + (24 + scores) / tp;
    const double baseline = saved(false, Recompute::kNone);
    const double both = saved(true, Recompute::kSelective) / baseline;
    EXPECT_NEAR(saved(true, Recompute::kNone) / baseline, (34 + scores) / tp / table, 2e-4);
    EXPECT_NEAR(saved(false, Recompute::kSelective) / baseline, 13 / table, 2e-4);
    EXPECT_NEAR(both, 34.0 / tp / table, 2e-4);
    EXPECT_NEAR(saved(false, Recompute::kFull) / baseline, 2 / table, 2e-4);
    EXPECT_LT(both, 0.21);
  }
}

TEST(ActivationMemoryTest, FusedAttentionKeepsTwoNumbersPerRowInsteadOfTheScores) {
  PlanUnderTest plan = PlanUnderTest::Of(SmallGpt(), /*flash=*/true, /*dropout=*/true);
  plan.profile().kernels.fusions = {"bias_gelu", "bias_dropout_add"};
  plan.MicroBatches(static_cast<int64_t>(kB), 1);
  ExpectSaved(plan, kSbh * 34 + 2 * 4 * kB * kA * kS);
}

TEST(ActivationMemoryTest, DataParallelRanksKeepTheirOwn) {
  const double alone = SavedPerLayer(Megatron().Dp(1));
  EXPECT_EQ(SavedPerLayer(Megatron().Dp(8)), alone);
}

// ---- balance ----

// Live bytes after every instance of a program; the smallest on the way.
void ExpectBalanced(const ExecutionGraph& graph) {
  for (const Program& program : graph.programs) {
    int64_t live = 0;
    for (const Instance& instance : program.instances) {
      for (int32_t layer = 0; layer < instance.layer_count; ++layer) {
        for (const MemoryEvent& event : graph.blocks[instance.block].memory) {
          live += event.delta;
          EXPECT_GE(live, 0) << program.name << " frees what it does not hold";
        }
      }
    }
    EXPECT_EQ(live, 0) << program.name;
  }
}

TEST(MemoryBalanceTest, AnIterationGivesEverythingBack) {
  for (bool flash : {false, true}) {
    for (Recompute recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
      for (bool sp : {false, true}) {
        for (bool scatter : {false, true}) {
          PlanUnderTest plan = PlanUnderTest::Of(SmallGpt(), flash, /*dropout=*/true);
          plan.profile().pipeline.p2p_scatter_gather = scatter;
          plan.profile().kernels.fusions = {"bias_gelu", "bias_dropout_add"};
          plan.Dp(2).Tp(2).Pp(2, Schedule::kInterleaved, 2).MicroBatches(1, 4);
          plan.Recomputing(recompute);
          if (sp) plan.Sp();
          const absl::StatusOr<ExecutionGraph> graph = plan.Compile();
          ASSERT_TRUE(graph.ok()) << graph.status();
          ExpectBalanced(*graph);
        }
      }
    }
  }
}

TEST(MemoryBalanceTest, SoDoLlamaAndParallelBranches) {
  TransformerConfig llama = SmallGpt();
  llama.mlp = Mlp::kSwiglu;
  llama.norm = Norm::kRmsNorm;
  llama.position = Position::kRope;
  llama.kv_heads = 4;
  llama.qkv_bias = llama.out_bias = llama.mlp_bias = false;
  TransformerConfig neox = SmallGpt();
  neox.parallel_residual = true;
  for (const TransformerConfig& config : {llama, neox}) {
    for (int64_t tp : {1, 4, 8}) {
      PlanUnderTest plan = PlanUnderTest::Of(config);
      const absl::StatusOr<ExecutionGraph> graph =
          plan.Tp(tp).Pp(4, Schedule::kGpipe).MicroBatches(1, 4).Compile();
      ASSERT_TRUE(graph.ok()) << graph.status();
      ExpectBalanced(*graph);
    }
  }
}

// ---- in flight ----

// Equal stages: layers without embedding and head.
PlanUnderTest EqualStages() {
  PlanUnderTest plan({{"seq", 16}, {"hidden", 64}, {"ffn", 256}});
  BodyWriter& body = plan.Segment("layers", 12);
  const int x = body.InPort("x", {"batch", "seq", "hidden"});
  int y = body.Op1("fc1", "linear", {body.Op1("norm", "rms_norm", {x})}, {{"n", "ffn"}});
  y = body.Op1("fc2", "linear", {body.Op1("act", "gelu", {y})}, {{"k", "ffn"}});
  body.OutPort(body.Op1("residual", "residual_add", {y, x}));
  return plan;
}

std::vector<int64_t> PeakActivations(const ExecutionGraph& graph) {
  std::vector<int64_t> peaks;
  for (const ClassMemory& memory : ReplayMemory(graph, RuntimeParams())) {
    peaks.push_back(memory.bytes[static_cast<int>(MemoryKind::kActivations)]);
  }
  return peaks;
}

TEST(InFlightTest, OneForwardOneBackwardKeepsOneMicroBatchLessOnEachStage) {
  PlanUnderTest plan = EqualStages();
  const absl::StatusOr<ExecutionGraph> graph = plan.Pp(6).MicroBatches(1, 16).Compile();
  ASSERT_TRUE(graph.ok()) << graph.status();
  const int64_t stage = 2 * NetBytes(BlockNamed(*graph, "layers.F"));  // two layers a stage
  const std::vector<int64_t> peaks = PeakActivations(*graph);
  for (size_t s = 1; s + 2 < peaks.size(); ++s) EXPECT_EQ(peaks[s] - peaks[s + 1], stage) << s;
}

TEST(InFlightTest, GpipeKeepsEveryMicroBatchOnEveryStage) {
  for (int64_t m : {4, 8}) {
    PlanUnderTest plan = EqualStages();
    const absl::StatusOr<ExecutionGraph> graph =
        plan.Pp(6, Schedule::kGpipe).MicroBatches(1, m).Compile();
    ASSERT_TRUE(graph.ok()) << graph.status();
    const int64_t stage = 2 * NetBytes(BlockNamed(*graph, "layers.F"));
    const std::vector<int64_t> peaks = PeakActivations(*graph);
    for (size_t s = 1; s + 2 < peaks.size(); ++s) EXPECT_EQ(peaks[s], peaks[s + 1]);
    EXPECT_GE(peaks[1], m * stage);
    EXPECT_LT(peaks[1], (m + 1) * stage);
  }
}

TEST(InFlightTest, InterleavedKeepsTheChunksOfItsWarmUp) {
  PlanUnderTest plan = EqualStages();
  const int64_t p = 6, v = 2;
  const absl::StatusOr<ExecutionGraph> graph =
      plan.Pp(p, Schedule::kInterleaved, v).MicroBatches(1, 3 * p).Compile();
  ASSERT_TRUE(graph.ok()) << graph.status();
  const int64_t chunk = NetBytes(BlockNamed(*graph, "layers.F"));
  const std::vector<int64_t> peaks = PeakActivations(*graph);
  // One stage further: two passes fewer to warm up.
  for (size_t s = 1; s + 2 < peaks.size(); ++s) EXPECT_EQ(peaks[s] - peaks[s + 1], 2 * chunk) << s;
}

}  // namespace
}  // namespace plancast
