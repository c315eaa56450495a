// What software runs beside the collectives of tensor parallelism.

#include "compiler/lower/lower_relayout.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "graph/layout/domain.h"
#include "graph/layout/redistribution.h"
#include "graph/layout/relayout.h"
#include "gtest/gtest.h"
#include "tests/compiler/plan_under_test.h"

namespace plancast {
namespace {

constexpr int64_t kTokens = 512, kHidden = 1024;

PlanUnderTest SequenceParallel(int64_t samples, DType dtype = DType::kBf16) {
  PlanUnderTest plan = PlanUnderTest::Of(SmallGpt());
  plan.profile().kernels.first_dim_collectives = true;
  plan.profile().types.quantized_gathers = true;
  plan.Type(dtype).Tp(4).Sp().MicroBatches(samples, 1);
  return plan;
}

struct Copies {
  int gathers = 0, scatters = 0, casts = 0;
  double copied = 0, cast = 0;  // bytes read
};

Copies CopiesIn(PlanUnderTest& plan, const std::string& name) {
  Copies copies;
  const absl::StatusOr<ExecutionGraph> graph = plan.Compile();
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return copies;
  const Block& block = BlockNamed(*graph, name);
  for (int t = 0; t < block.size(); ++t) {
    if (block.kind[t] != TaskKind::kKernel) continue;
    const KernelSpec& kernel = graph->kernels[block.spec[t]];
    if (kernel.label == "gather_cast") {
      ++copies.casts;
      copies.cast += kernel.read_bytes;
    }
    if (kernel.label != "copy_in" && kernel.label != "copy_out") continue;
    ++(kernel.label == "copy_in" ? copies.scatters : copies.gathers);
    copies.copied += kernel.read_bytes;
    EXPECT_EQ(kernel.read_bytes, kernel.write_bytes);
  }
  return copies;
}

TEST(LowerRelayoutTest, PartsOfSequencesAreCopiedInOrder) {
  // Gathers before two products, scatters behind two, of the whole stream.
  PlanUnderTest plan = SequenceParallel(2);
  const Copies forward = CopiesIn(plan, "layer.F");
  EXPECT_EQ(forward.gathers, 2);
  EXPECT_EQ(forward.scatters, 2);
  EXPECT_EQ(forward.copied, 4 * 2 * kTokens * kHidden * 2);
  const Copies backward = CopiesIn(plan, "layer.B");
  EXPECT_GE(backward.gathers, 2);
  EXPECT_EQ(backward.scatters, 2);
}

TEST(LowerRelayoutTest, PartsOfOneSampleLieInOrder) {
  PlanUnderTest plan = SequenceParallel(1);
  EXPECT_EQ(CopiesIn(plan, "layer.F").copied, 0);
}

TEST(LowerRelayoutTest, CollectivesBesideTheirProductsNeedNoCopies) {
  PlanUnderTest plan = SequenceParallel(2);
  plan.options().overlap.insert(Overlap::kTp);
  EXPECT_EQ(CopiesIn(plan, "layer.F").copied, 0);
  // Gradients of the input are reduced whole, and what only weight gradients read is gathered
  // whole; of the two gradients that come in parts, products of weights copy the whole.
  const Copies backward = CopiesIn(plan, "layer.B");
  EXPECT_EQ(backward.gathers, 2 + 2);
  EXPECT_EQ(backward.scatters, 2);
}

TEST(LowerRelayoutTest, WhatProductsQuantiseFirstIsGatheredWhole) {
  PlanUnderTest plan = SequenceParallel(2, DType::kFp8Row);
  plan.options().overlap.insert(Overlap::kTp);
  const Copies forward = CopiesIn(plan, "layer.F");
  EXPECT_EQ(forward.gathers, 2);
  EXPECT_EQ(forward.scatters, 0);
  PlanUnderTest tensors = SequenceParallel(2, DType::kFp8);
  tensors.options().overlap.insert(Overlap::kTp);
  EXPECT_EQ(CopiesIn(tensors, "layer.F").gathers, 0);
}

// All-reduces of backward blocks, and the sums behind them.
std::pair<int, int> ReductionsBackward(PlanUnderTest& plan) {
  const absl::StatusOr<ExecutionGraph> graph = plan.Compile();
  EXPECT_TRUE(graph.ok()) << graph.status();
  std::pair<int, int> found;
  if (!graph.ok()) return found;
  const Block& block = BlockNamed(*graph, "layer.B");
  for (int t = 0; t < block.size(); ++t) {
    const bool comm = block.kind[t] == TaskKind::kComm;
    if (comm && graph->comms[block.spec[t]].kind == CollectiveKind::kAllReduce) ++found.first;
    if (!comm && absl::StartsWith(block.label[t], "grad_add d attn.norm")) ++found.second;
  }
  return found;
}

TEST(LowerRelayoutTest, SeparateProductsMayReduceTheGradientOfTheirInputEach) {
  PlanUnderTest plan = PlanUnderTest::Of(SmallGpt());
  plan.Tp(4).profile().kernels.separate_products = {"qkv_linear_bias", "qkv_linear"};
  EXPECT_EQ(ReductionsBackward(plan), std::make_pair(2, 0));
  plan.profile().kernels.reduces_each_product = true;
  EXPECT_EQ(ReductionsBackward(plan), std::make_pair(4, 2));
  plan.profile().kernels.separate_products = {};
  EXPECT_EQ(ReductionsBackward(plan), std::make_pair(2, 0));
  // A reduce-scatter comes after all of them.
  plan.profile().kernels.separate_products = {"qkv_linear_bias", "qkv_linear"};
  EXPECT_EQ(ReductionsBackward(plan.Sp()).first, 0);
}

TEST(LowerRelayoutTest, SoftwareThatGathersAnyDimNeedsNoCopies) {
  PlanUnderTest plan = SequenceParallel(2);
  plan.profile().kernels.first_dim_collectives = false;
  EXPECT_EQ(CopiesIn(plan, "layer.F").copied, 0);
}

TEST(LowerRelayoutTest, WithOneScaleATensorIsQuantisedBeforeItIsGathered) {
  // A quarter of the stream is read twice in 16 bits; what is gathered is copied in 8.
  PlanUnderTest plan = SequenceParallel(2, DType::kFp8);
  const Copies forward = CopiesIn(plan, "layer.F");
  EXPECT_EQ(forward.casts, 2);
  EXPECT_EQ(forward.cast, 2 * (2 * 2 * kTokens * kHidden * 2 / 4));
  EXPECT_EQ(forward.copied, 2 * 2 * kTokens * kHidden * (1 + 2));
}

TEST(LowerRelayoutTest, WithScalesOfRowsItIsGatheredIn16Bits) {
  PlanUnderTest plan = SequenceParallel(2, DType::kFp8Row);
  const Copies forward = CopiesIn(plan, "layer.F");
  EXPECT_EQ(forward.casts, 0);
  EXPECT_EQ(forward.copied, 4 * 2 * kTokens * kHidden * 2);
}

TEST(LowerRelayoutTest, ProductsOfWhatComesQuantisedDoNotQuantiseIt) {
  PlanUnderTest plan = SequenceParallel(2, DType::kFp8);
  const absl::StatusOr<ExecutionGraph> graph = plan.Compile();
  ASSERT_TRUE(graph.ok()) << graph.status();
  const auto quantized = [&](const char* block, const char* label) {
    const std::vector<KernelSpec> kernels = KernelsLabelled(*graph, block, label);
    EXPECT_FALSE(kernels.empty()) << label;
    return !kernels.empty() && kernels[0].quantized_operand;
  };
  EXPECT_TRUE(quantized("layer.F", "mlp.fc1"));
  EXPECT_FALSE(quantized("layer.F", "mlp.fc2"));
  EXPECT_FALSE(quantized("layer.B", "mlp.fc1.bwd"));
  EXPECT_TRUE(quantized("layer.B", "mlp.fc2.bwd"));
  EXPECT_TRUE(quantized("layer.B", "mlp.fc2.wgrad"));
}

// Bytes of gathers over tp in a block.
std::vector<int64_t> GathersIn(const ExecutionGraph& graph, const std::string& name) {
  std::vector<int64_t> bytes;
  const Block& block = BlockNamed(graph, name);
  for (int t = 0; t < block.size(); ++t) {
    if (block.kind[t] != TaskKind::kComm) continue;
    const CommSpec& comm = graph.comms[block.spec[t]];
    if (comm.kind == CollectiveKind::kAllGather) bytes.push_back(comm.bytes);
  }
  return bytes;
}

TEST(LowerRelayoutTest, WhatIsQuantisedOnceIsSoWhereItComesFrom) {
  PlanUnderTest plan = SequenceParallel(2, DType::kMxfp8);
  plan.profile().kernels.first_dim_collectives = false;
  plan.profile().types.quantized_gathers = false;
  plan.profile().types.quantized_activations = true;
  plan.profile().tensors.sp_saves_sharded = true;
  plan.profile().calls.quantize[DType::kMxfp8] = {1};
  const absl::StatusOr<ExecutionGraph> graph = plan.Compile();
  ASSERT_TRUE(graph.ok()) << graph.status();
  // Forward the inputs of two products, a shard of 4 each; a side of 8 bits and a scale for 32.
  constexpr int64_t kElements = 2 * kTokens * kHidden;
  const int64_t side = kElements * 33 / 32;
  EXPECT_THAT(GathersIn(*graph, "layer.F"), testing::ElementsAre(side, side));
  int quantized = 0;
  const Block& forward = BlockNamed(*graph, "layer.F");
  for (int t = 0; t < forward.size(); ++t) {
    if (forward.kind[t] != TaskKind::kKernel) continue;
    const KernelSpec& kernel = graph->kernels[forward.spec[t]];
    if (kernel.label != "quantize_operand" || kernel.read_bytes != 2 * kElements / 4) continue;
    EXPECT_EQ(kernel.write_bytes, 2 * side / 4);
    ++quantized;
  }
  EXPECT_GE(quantized, 2);
  // Backward gradients of two results for two products each, and the inputs once more.
  EXPECT_THAT(GathersIn(*graph, "layer.B"),
              testing::UnorderedElementsAre(side, side, 2 * side, 2 * side));
}

// Random exchanges: what comes from those with one place on the axes of copies is an equal part.
TEST(LowerRelayoutTest, CopiesComeInEqualPartsFromThoseWithTheSamePlace) {
  std::mt19937 random(11);
  const auto of = [&](int n) { return static_cast<int>(random() % n); };
  int gathered = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    const DeviceMesh mesh =
        *DeviceMesh::Create({{"a", 2}, {"b", 2 + 2 * of(2)}, {"c", 2}, {"d", 2}});
    const std::vector<int64_t> shape = {64, 64, 64};
    const ShardPattern pattern = of(2) == 0 ? ShardPattern::kBlock : ShardPattern::kMirrored;
    const auto draw = [&] {
      Layout layout;
      for (int axis = 0; axis < mesh.num_axes(); ++axis) {
        const int dim = of(4);
        layout.placements.push_back(
            dim == 3 ? Placement::Replicate()
                     : Placement::Shard(dim, dim == 0 ? pattern : ShardPattern::kBlock));
      }
      return layout;
    };
    const Layout source = draw(), target = draw();
    const absl::StatusOr<Relayout> plan = PlanRelayout(mesh, shape, source, target);
    ASSERT_TRUE(plan.ok()) << plan.status();
    Layout before = source;
    for (const RelayoutStep& step : plan->steps) {
      const std::vector<int> copies = AxesOfCopies(step, before);
      if (!copies.empty()) {
        ++gathered;
        for (int64_t device = 0; device < mesh.num_devices(); ++device) {
          std::map<std::vector<int64_t>, int64_t> from;  // by place on the axes of copies
          const std::vector<IndexSet> wanted = LocalIndices(mesh, shape, step.after, device);
          for (int64_t other = 0; other < mesh.num_devices(); ++other) {
            bool takes_part = true;
            std::vector<int64_t> place;
            for (int axis = 0; axis < mesh.num_axes(); ++axis) {
              const bool runs_over =
                  std::find(step.axes.begin(), step.axes.end(), axis) != step.axes.end();
              const bool same = mesh.Coordinate(other, axis) == mesh.Coordinate(device, axis);
              // Of copies there are before, one sends.
              const bool copied = before.placements[axis].is_replicate();
              takes_part = takes_part && (same || (runs_over && !copied));
            }
            if (!takes_part) continue;
            for (const int axis : copies) place.push_back(mesh.Coordinate(other, axis));
            const std::vector<IndexSet> had = LocalIndices(mesh, shape, before, other);
            int64_t common = 1;
            for (size_t dim = 0; dim < shape.size(); ++dim) {
              common *= CountCommon(wanted[dim], had[dim]);
            }
            from[place] += common;
          }
          int64_t all = 1;
          for (const IndexSet& set : wanted) all *= CountOf(set);
          EXPECT_EQ(from.size(), mesh.SizeOf(copies));
          for (const auto& [place, elements] : from) {
            EXPECT_EQ(elements * mesh.SizeOf(copies), all) << plan->DebugString(mesh);
          }
        }
      }
      before = step.after;
    }
  }
  EXPECT_GT(gathered, 20);
}

}  // namespace
}  // namespace plancast
