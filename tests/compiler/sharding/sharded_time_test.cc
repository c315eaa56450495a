// How long plans with sharded parameters take: closed forms for equal layers.

#include <cstdint>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "tests/compiler/plan_under_test.h"
#include "tests/executor/graph_builder.h"
#include "tests/executor/simulation.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

constexpr int64_t kLayers = 6;

// Seconds of one layer: forward and backward compute, gather and reduction.
struct Times {
  double forward = 0, backward = 0, gather = 0, reduce = 0;
};

// Layers of one product each behind a module without parameters.
PlanUnderTest Products(int64_t layers) {
  PlanUnderTest plan({{"seq", 4}, {"hidden", 8}});
  BodyWriter& embed = plan.Segment("embed");
  const int x = embed.Input("x", DType::kCompute, {"batch", "seq", "hidden"});
  embed.OutPort(embed.Op1("act", "relu", {x}, {{"f", "hidden"}}));
  BodyWriter& layer = plan.Segment("layers", layers);
  layer.OutPort(layer.Op1("fc", "linear", {layer.InPort("x", {"batch", "seq", "hidden"})}));
  plan.Dp(2);
  plan.options().zero = 3;
  plan.options().sync_each = true;
  return plan;
}

std::unique_ptr<Simulation> Run(PlanUnderTest& plan, const Times& times) {
  absl::StatusOr<ExecutionGraph> graph = plan.Compile();
  EXPECT_OK(graph.status());
  for (KernelSpec& kernel : graph->kernels) {
    const bool product = kernel.family == KernelFamily::kGemm;
    kernel.flops = !product                            ? 0
                   : kernel.pass == GemmPass::kForward ? times.forward
                                                       : times.backward / 2;
  }
  const absl::StatusOr<Machine> machine =
      Machine::Create(UnitMachine(1, graph->mesh.num_devices()));
  EXPECT_OK(machine.status());
  const auto realise = [&](const GroupPattern&,
                           const CommSpec& comm) -> absl::StatusOr<RealisedCollective> {
    RealisedCollective realised;
    realised.rate_cap_bytes_per_s = 1'000'000;
    realised.work_bytes = static_cast<int64_t>(
        1e6 * (comm.kind == CollectiveKind::kAllGather ? times.gather : times.reduce));
    return realised;
  };
  absl::StatusOr<std::unique_ptr<Simulation>> run = Simulation::Run(*graph, *machine, realise);
  EXPECT_OK(run.status());
  return std::move(*run);
}

double Takes(PlanUnderTest& plan, const Times& times) { return Run(plan, times)->makespan(); }

TEST(ShardedTimeTest, FastGathersShowOnlyAtTheBeginningOfAPass) {
  const Times t{3, 7, 2, 4};
  PlanUnderTest plan = Products(kLayers);
  const double all = t.gather + kLayers * (t.forward + t.backward) + t.reduce;
  // The last layer is gathered anew while it computes.
  EXPECT_NEAR(Takes(plan, t), all, 1e-6);
  plan.options().reshard = false;
  EXPECT_NEAR(Takes(plan, t), all, 1e-6);
}

TEST(ShardedTimeTest, SlowGathersAreAllThatCounts) {
  const Times t{1, 2, 5, 4};
  PlanUnderTest plan = Products(kLayers);
  // Gathers and reductions take turns on one communicator; all compute but the last
  // layer's is hidden.
  EXPECT_NEAR(Takes(plan, t), kLayers * (2 * t.gather + t.reduce), 1e-6);
  plan.options().reshard = false;
  EXPECT_NEAR(Takes(plan, t), kLayers * t.gather + t.forward + t.backward + kLayers * t.reduce,
              1e-6);
}

TEST(ShardedTimeTest, WithoutPrefetchEveryGatherIsWaitedFor) {
  const Times t{3, 7, 2, 4};
  PlanUnderTest plan = Products(kLayers);
  plan.options().prefetch = 0;
  // A gather stands behind the reduction of the layer before.
  EXPECT_NEAR(Takes(plan, t),
              kLayers * (t.gather + t.forward) + kLayers * (t.gather + t.backward + t.reduce),
              1e-6);
}

// More units ahead change nothing where one is enough.
TEST(ShardedTimeTest, DeeperPrefetchesOfEqualLayersGainNothing) {
  for (const Times& t : {Times{3, 7, 2, 4}, Times{1, 2, 5, 4}}) {
    PlanUnderTest one = Products(kLayers), more = Products(kLayers);
    for (const int64_t prefetch : {2, 3, 50}) {
      more.options().prefetch = prefetch;
      EXPECT_LE(Takes(more, t), Takes(one, t) + 1e-6) << prefetch;
    }
  }
}

TEST(ShardedTimeTest, MicroBatchesBeginWithAGatherAndEndWithAReduction) {
  const Times t{3, 7, 2, 4};
  for (const int64_t micro_batches : {2, 3}) {
    PlanUnderTest plan = Products(kLayers);
    plan.MicroBatches(1, micro_batches);
    const double pass = t.gather + kLayers * (t.forward + t.backward);
    EXPECT_NEAR(Takes(plan, t), static_cast<double>(micro_batches) * (pass + t.reduce), 1e-6);
    plan.options().sync_each = false;
    EXPECT_NEAR(Takes(plan, t), static_cast<double>(micro_batches) * pass + t.reduce, 1e-6);
  }
}

// Gradients alone: reductions behind compute.
TEST(ShardedTimeTest, StageTwoReducesLayerByLayer) {
  const Times t{3, 7, 0, 4};
  PlanUnderTest plan = Products(kLayers);
  plan.options().zero = 2;
  EXPECT_NEAR(Takes(plan, t), kLayers * (t.forward + t.backward) + t.reduce, 1e-6);
}

// A layer is gathered while the one before computes: tensor parallelism shares its
// links then.
TEST(ShardedTimeTest, GathersShareLinksWithTensorParallelism) {
  PlanUnderTest plan({{"seq", 4}, {"hidden", 8}, {"ffn", 16}});
  BodyWriter& embed = plan.Segment("embed");
  const int x = embed.Input("x", DType::kCompute, {"batch", "seq", "hidden"});
  embed.OutPort(embed.Op1("act", "relu", {x}, {{"f", "hidden"}}));
  BodyWriter& layer = plan.Segment("layers", 2);
  const int y =
      layer.Op1("fc1", "linear", {layer.InPort("x", {"batch", "seq", "hidden"})}, {{"n", "ffn"}});
  layer.OutPort(layer.Op1("fc2", "linear", {y}, {{"k", "ffn"}}));
  plan.Dp(2).Tp(2);
  plan.options().zero = 3;
  plan.options().sync_each = true;
  absl::StatusOr<ExecutionGraph> graph = plan.Compile();
  ASSERT_OK(graph.status());
  // No compute: what is left is traffic. Gathers of 1 s and tensor-parallel sums of 1 s
  // alone, on links that carry one of them at a time.
  for (KernelSpec& kernel : graph->kernels) kernel.flops = 0;
  ASSERT_OK_AND_ASSIGN(const Machine machine, Machine::Create(UnitMachine(1, 4)));
  const int nvlink = machine.FindLinkClass(LinkKind::kNvlink);
  const auto realise = [&](const GroupPattern&,
                           const CommSpec& comm) -> absl::StatusOr<RealisedCollective> {
    RealisedCollective realised;
    realised.rate_cap_bytes_per_s = 100'000'000'000;
    realised.work_bytes = comm.kind == CollectiveKind::kReduceScatter ? 0 : 100'000'000'000;
    realised.loads.push_back({nvlink, 1 << 20});
    return realised;
  };
  ASSERT_OK_AND_ASSIGN(const auto run, Simulation::Run(*graph, machine, realise));
  // The gather of layer 0 alone. Then two by two: gather of layer 1 and the sum of layer
  // 0; layer 1 gathered again and its sum; gather of layer 0 and the sum of layer 1's
  // gradient. Then the sum of layer 0's gradient alone.
  EXPECT_NEAR(run->makespan(), 1 + 3 * 2 + 1, 1e-6);
}

}  // namespace
}  // namespace plancast
