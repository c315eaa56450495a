// Plans that train a part of a model: what is not trained has no gradient, no state and no
// product of its own in backward passes, which end where nothing before is trained.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "compiler/activations/offload_blocks.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/forecast/flops.h"
#include "tests/compiler/plan_under_test.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kHidden = 1024, kFfn = 3072, kSeq = 512, kVocab = 4096, kLayers = 8, kRank = 16;
// Of the products of a layer of SmallLlama, and of adapters beside all of them.
constexpr int64_t kProducts = 4 * kHidden * kHidden + 3 * kHidden * kFfn;
constexpr int64_t kAdapters =
    kRank * ((kHidden + 3 * kHidden) + 2 * kHidden + (kHidden + 2 * kFfn) + (kFfn + kHidden));
constexpr int64_t kLayer = kProducts + 2 * kHidden;  // with norms
constexpr int64_t kModel = kLayers * kLayer + 2 * kVocab * kHidden + kHidden;

int64_t Static(const ExecutionGraph& graph, size_t program, MemoryKind kind) {
  return graph.programs[program].static_bytes[static_cast<int>(kind)];
}

// Multiplications of matrix products, times two, of blocks of this name, one entry each.
std::vector<double> ProductFlops(const ExecutionGraph& graph, absl::string_view name) {
  std::vector<double> flops;
  for (const Block& block : graph.blocks) {
    if (block.name != name) continue;
    flops.push_back(0);
    for (int32_t t = 0; t < block.size(); ++t) {
      if (block.kind[t] != TaskKind::kKernel) continue;
      const KernelSpec& kernel = graph.kernels[block.spec[t]];
      if (kernel.family == KernelFamily::kGemm) flops.back() += kernel.flops;
    }
  }
  return flops;
}

std::vector<int64_t> KeptBytes(const ExecutionGraph& graph, absl::string_view name) {
  std::vector<int64_t> kept;
  for (const Block& block : graph.blocks) {
    if (block.name == name) kept.push_back(TotalBytes(KeptTensors(block, 0)));
  }
  return kept;
}

bool Runs(const ExecutionGraph& graph, const Program& program, absl::string_view block) {
  return std::any_of(program.instances.begin(), program.instances.end(),
                     [&](const Instance& i) { return graph.blocks[i.block].name == block; });
}

PlanUnderTest WithAdapters(std::vector<std::string> on = {"qkv", "proj", "fc1", "fc2"}) {
  PlanUnderTest plan = PlanUnderTest::Of(SmallLlama());
  plan.Lora("", kRank, std::move(on)).FineTune();
  return plan;
}

TEST(FrozenPlansTest, OnlyWhatIsTrainedHasGradientsAndState) {
  PlanUnderTest plan = WithAdapters();
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, plan.Compile());
  const int64_t trained = kLayers * kAdapters;
  EXPECT_EQ(Static(graph, 0, MemoryKind::kParameters), 2 * (kModel + trained));
  EXPECT_EQ(Static(graph, 0, MemoryKind::kGradients), 4 * trained);
  EXPECT_EQ(Static(graph, 0, MemoryKind::kOptimizer), 12 * trained);
}

TEST(FrozenPlansTest, OnlyTheyAreReduced) {
  PlanUnderTest plan = WithAdapters();
  plan.Dp(2);
  EXPECT_THAT(plan.Traffic().gradients, ElementsAre(AllReduce("dp", 4 * kLayers * kAdapters)));
}

// Frozen products have no weight gradient; in the first layer the product that reads what no
// gradient goes to has none at all.
TEST(FrozenPlansTest, BackwardIsOneProductForEachForwardAndTwoForEachOfAdapters) {
  PlanUnderTest plan = WithAdapters();
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, plan.Compile());
  const double tokens = 2.0 * kSeq;
  const double forward = tokens * static_cast<double>(kProducts + kAdapters);
  EXPECT_THAT(ProductFlops(graph, "layer.F"), ElementsAre(forward, forward));
  const double backward = tokens * static_cast<double>(kProducts + 2 * kAdapters);
  const double first =
      backward - tokens * static_cast<double>(3 * kHidden * kHidden + kRank * kHidden);
  EXPECT_THAT(ProductFlops(graph, "layer.B"), ElementsAre(backward, first));
}

// A frozen product keeps nothing for its weight gradient: not the normalised input of the
// first feed-forward product, not the input of the second one.
TEST(FrozenPlansTest, InputsOfFrozenProductsAreNotKept) {
  PlanUnderTest all = PlanUnderTest::Of(SmallLlama());
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph full, all.Compile());
  PlanUnderTest plan = WithAdapters({"qkv"});
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, plan.Compile());
  const int64_t a = 2 * kSeq * kRank;  // what lora_b reads
  const int64_t spared = 2 * kSeq * (kHidden + kFfn);
  const int64_t kept = KeptBytes(full, "layer.F")[0] - spared + a;
  EXPECT_EQ(KeptBytes(graph, "layer.F").back(), kept);
  // The first layer does not keep what its norm reads, and that norm's statistics.
  EXPECT_EQ(KeptBytes(graph, "layer.F").front(), kept - 2 * kSeq * kHidden - 4 * kSeq);
}

TEST(FrozenPlansTest, BackwardEndsWhereNothingBeforeIsTrained) {
  PlanUnderTest plan = PlanUnderTest::Of(SmallLlama());
  plan.Train("embedding", false).Train("layers.*", false).FineTune().Dp(2);
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, plan.Compile());
  EXPECT_FALSE(Runs(graph, graph.programs[0], "layer.B"));
  EXPECT_FALSE(Runs(graph, graph.programs[0], "embedding.B"));
  EXPECT_TRUE(Runs(graph, graph.programs[0], "head.B"));
  EXPECT_THAT(KeptBytes(graph, "layer.F"), ElementsAre(0));
  EXPECT_EQ(Static(graph, 0, MemoryKind::kGradients), 4 * (kVocab * kHidden + kHidden));
}

// Stages before the first that trains run forward alone, and no gradient is sent to them.
TEST(FrozenPlansTest, SoItDoesInPipelines) {
  PlanUnderTest plan = PlanUnderTest::Of(SmallLlama());
  plan.Train("embedding", false).Train("layers[0:4]", false).FineTune();
  plan.Pp(4).MicroBatches(1, 8);
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, plan.Compile());
  for (const size_t stage : {0, 1, 2, 3}) {
    SCOPED_TRACE(stage);
    const Program& program = graph.programs[stage];
    EXPECT_EQ(Runs(graph, program, "layer.B"), stage > 1);
    EXPECT_EQ(Runs(graph, program, "receive gradient"), stage == 2);
    EXPECT_EQ(Runs(graph, program, "send gradient"), stage == 3);
    EXPECT_EQ(Static(graph, stage, MemoryKind::kOptimizer) > 0, stage > 1);
  }
}

// A module that hands on one tensor with a gradient and one without has no task backward.
TEST(FrozenPlansTest, ModulesThatOnlyHandOnMayHaveNothingToDoBackward) {
  for (const int zero : {0, 2}) {
    PlanUnderTest plan({{"seq", 16}, {"hidden", 64}});
    BodyWriter& both = plan.Segment("both");
    const int x = both.Input("x", DType::kCompute, {"batch", "seq", "hidden"});
    const int y = both.Op1("act", "relu", {x}, {{"f", "hidden"}});
    both.OutPort(both.Op1("frozen", "linear", {y}));
    both.OutPort(both.Op1("trained", "linear", {y}));
    BodyWriter& between = plan.Segment("between");
    const int frozen = between.InPort("frozen", {"batch", "seq", "hidden"});
    const int trained = between.InPort("trained", {"batch", "seq", "hidden"});
    between.OutPort(between.Op1("fc", "linear", {frozen}));
    between.OutPort(trained);
    BodyWriter& sum = plan.Segment("sum");
    const int a = sum.InPort("a", {"batch", "seq", "hidden"});
    const int b = sum.InPort("b", {"batch", "seq", "hidden"});
    sum.OutPort(sum.Op1("add", "residual_add", {a, b}));
    plan.Train("both.frozen", false).Train("between", false).FineTune().Dp(4);
    plan.options().zero = zero;
    ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, plan.Compile());
    EXPECT_EQ(BlockNamed(graph, "between.B").size(), 0);
    EXPECT_THAT(ProductFlops(graph, "both.B"), ElementsAre(2.0 * 16 * 64 * 64));
  }
}

TEST(FrozenPlansTest, ZeroShardsStateOfWhatIsTrainedAndStageThreeAllParameters) {
  for (const int zero : {1, 2, 3}) {
    SCOPED_TRACE(zero);
    PlanUnderTest plan = WithAdapters();
    plan.Dp(4).options().zero = zero;
    plan.profile().data_parallel.sharded_master = false;
    ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, plan.Compile());
    const int64_t trained = kLayers * kAdapters;
    EXPECT_EQ(Static(graph, 0, MemoryKind::kOptimizer), 12 * trained / 4);
    EXPECT_EQ(Static(graph, 0, MemoryKind::kParameters),
              2 * (kModel + trained) / (zero == 3 ? 4 : 1));
    for (const CommSpec& comm : graph.comms) {
      if (comm.kind != CollectiveKind::kReduceScatter) continue;
      EXPECT_LE(comm.bytes, 4 * (zero == 1 ? trained : kAdapters));
    }
  }
}

// An iteration gives up all that it allocates, on every stage.
TEST(FrozenPlansTest, NothingIsLeftBehind) {
  for (const int zero : {0, 1, 2, 3}) {
    for (const int64_t pp : {1, 4}) {
      for (const int64_t reshard : {0, 2}) {
        SCOPED_TRACE(testing::Message() << zero << " " << pp << " " << reshard);
        PlanUnderTest plan = PlanUnderTest::Of(SmallLlama());
        plan.Train("embedding", false).Train("layers[0:5]", false).FineTune();
        plan.Dp(4).Pp(pp, pp > 1 ? Schedule::k1f1b : Schedule::kNone).MicroBatches(1, 4);
        plan.options().zero = zero;
        plan.options().reshard_ranks = zero == 3 ? reshard : 0;
        ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, plan.Compile());
        for (const Program& program : graph.programs) {
          int64_t left = 0;
          for (const Instance& instance : program.instances) {
            for (const MemoryEvent& event : graph.blocks[instance.block].memory) {
              left += event.delta * instance.layer_count;
            }
          }
          EXPECT_EQ(left, 0) << program.name;
        }
      }
    }
  }
}

// Column-parallel products: A whole on each rank, B cut; row-parallel ones: A cut along its
// sum, which is exchanged in `rank` values for each token, B whole.
TEST(FrozenPlansTest, AdaptersAreCutAsTheProductsBesideThem) {
  PlanUnderTest plan = WithAdapters();
  plan.Tp(4);
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, plan.Compile());
  const int64_t whole = kRank * (kHidden + kHidden + kHidden + kHidden);
  const int64_t cut = kAdapters - whole;
  EXPECT_EQ(Static(graph, 0, MemoryKind::kGradients), 4 * kLayers * (whole + cut / 4));
  const std::vector<std::string> forward = plan.Traffic().forward;
  const std::string narrow = AllReduce("tp", 2 * kSeq * kRank);
  EXPECT_GE(std::count(forward.begin(), forward.end(), narrow), 2);  // proj and fc2
}

TEST(FrozenPlansTest, WholeLayersThatRunAgainKeepTheirInputAlone) {
  PlanUnderTest plan = WithAdapters();
  plan.Recomputing(Recompute::kFull);
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, plan.Compile());
  EXPECT_THAT(KeptBytes(graph, "layer.F"), ElementsAre(2 * kSeq * kHidden, 2 * kSeq * kHidden));
}

// Modules of 16 bits beside products of 8: Megatron's.
TEST(FrozenPlansTest, AdaptersStayIn16Bits) {
  PlanUnderTest plan = WithAdapters();
  plan.Type(DType::kFp8);
  plan.profile().types.unquantized = {"lora_a", "lora_b"};
  plan.profile().calls.quantize[DType::kFp8] = {1};
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, plan.Compile());
  for (const std::string label : {"mlp.fc1.lora_a", "mlp.fc1.lora_b"}) {
    const std::vector<KernelSpec> alone = KernelsLabelled(graph, "layer.F", label);
    ASSERT_EQ(alone.size(), 1) << label;  // no quantisation before
    EXPECT_EQ(alone[0].dtype, DType::kBf16) << label;
  }
  const std::vector<KernelSpec> frozen = KernelsLabelled(graph, "layer.F", "mlp.fc1");
  ASSERT_EQ(frozen.size(), 2);
  EXPECT_EQ(frozen[1].dtype, DType::kFp8);
}

// Where the frozen product's gradients are put together first, those of the adapter are the same.
TEST(FrozenPlansTest, GradientsComeTogetherOnce) {
  PlanUnderTest plan = WithAdapters();
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, plan.Compile());
  EXPECT_EQ(KernelsLabelled(graph, "layer.B", "mlp.fc1.bwd").size(), 2);  // a copy, a product
  EXPECT_EQ(KernelsLabelled(graph, "layer.B", "mlp.fc1.lora_b.bwd").size(), 1);
}

// Scaled behind both products, the adapter's gradient is scaled, too: one pass over the results.
// Scaled between them, it goes on as it is.
TEST(FrozenPlansTest, TheScaleHasItsPlace) {
  PlanUnderTest plan = WithAdapters();
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph behind, plan.Compile());
  const std::vector<KernelSpec> scaled =
      KernelsLabelled(behind, "layer.B", "attn.proj.lora_add.bwd");
  ASSERT_EQ(scaled.size(), 1);
  EXPECT_EQ(scaled[0].read_bytes + scaled[0].write_bytes, 2 * 2 * kSeq * kHidden);
  plan.profile().kernels.fusions.insert("lora_scale");
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph between, plan.Compile());
  EXPECT_THAT(KernelsLabelled(between, "layer.B", "attn.proj.lora_add.bwd"), IsEmpty());
  EXPECT_THAT(KernelsLabelled(between, "layer.F", "attn.proj.lora_add"),
              SizeIs(KernelsLabelled(behind, "layer.F", "attn.proj.lora_add").size()));
}

// Model FLOPs count what training needs: three products for a trained weight, two for a frozen
// one, one where no gradient comes.
TEST(FrozenPlansTest, ModelFlopsCountWhatIsNeeded) {
  const double all = ModelFlopsPerSample(PlanUnderTest::Of(SmallLlama()).graph());
  PlanUnderTest head = PlanUnderTest::Of(SmallLlama());
  head.Train("embedding", false).Train("layers.*", false).FineTune();
  const double logits = 2.0 * kSeq * kHidden * kVocab;
  EXPECT_DOUBLE_EQ(ModelFlopsPerSample(head.graph()), (all - 3 * logits) / 3 + 3 * logits);
  PlanUnderTest plan = WithAdapters({"qkv"});
  const double attention = all / 3 - logits - 2.0 * kSeq * kLayers * kProducts;
  const double adapters = 2.0 * kSeq * kLayers * kRank * 4 * kHidden;
  // The first layer's frozen product needs no input gradient.
  const double spared = 2.0 * kSeq * 3 * kHidden * kHidden;
  EXPECT_DOUBLE_EQ(ModelFlopsPerSample(plan.graph()),
                   2 * (all / 3 - attention) + 3 * attention + 3 * adapters - spared);
}

}  // namespace
}  // namespace plancast
