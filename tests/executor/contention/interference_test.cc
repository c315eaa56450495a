#include "executor/contention/interference.h"

#include <algorithm>
#include <optional>

#include "executor/executor.h"
#include "gtest/gtest.h"
#include "tests/executor/graph_builder.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

constexpr auto kAllReduce = CollectiveKind::kAllReduce;

// Two hosts of two devices of 100 SMs, an interface each.
Machine TwoHosts() { return *Machine::Create(UnitMachine(2, 2)); }

CollectiveFootprint MeanOf(const ExecutionGraph& graph, const Machine& machine = TwoHosts()) {
  const CommUses uses = *FindCommUses(graph);
  CommPricer comms(graph, machine, RuntimeParams());
  return *MeanFootprint(graph, uses, machine, comms);
}

// A kernel, a gradient all-reduce of it, and a kernel alongside that.
ExecutionGraph GradientsBesideAKernel() {
  GraphBuilder b({{"dp", 2}, {"tp", 2}});
  b.Block("B").Kernel(1.0);
  b.Comm(kAllReduce, 20'000'000'000, {0}, {0}, Purpose::kDp, StreamKind::kGradComm);
  b.Kernel(1.0);
  b.Program("all").Run("B");
  return b.Build();
}

TEST(MeanFootprint, IsThatOfTheCollectivesBesideKernels) {
  // One member a host: two channels of its interface's, of 100 SMs.
  EXPECT_DOUBLE_EQ(MeanOf(GradientsBesideAKernel()).sm_fraction, 0.02);
  EXPECT_DOUBLE_EQ(MeanOf(GradientsBesideAKernel()).memory_bytes_per_s,
                   FootprintAcross(TwoHosts(), 1, 1).memory_bytes_per_s);
}

TEST(MeanFootprint, LeavesOutCollectivesThatTheNextKernelWaitsFor) {
  GraphBuilder b({{"dp", 2}, {"tp", 2}});
  b.Block("F").Kernel(1.0).Comm(kAllReduce, 1'000'000, {1}, {0}).Kernel(1.0, {1});
  b.Program("all").Run("F", {}, 5);
  EXPECT_EQ(MeanOf(b.Build()).sm_fraction, 0);
  // The second kernel of this one does not wait.
  b.Block("B").Kernel(1.0).Comm(kAllReduce, 1'000'000, {1}, {0}).Kernel(1.0, {0});
  b.Run("B");
  EXPECT_DOUBLE_EQ(MeanOf(b.Build()).memory_bytes_per_s,
                   FootprintInside(TwoHosts()).memory_bytes_per_s);
}

TEST(MeanFootprint, LeavesOutWhatCopyEnginesSend) {
  GraphBuilder b({{"dp", 2}, {"tp", 2}});
  b.Block("B").Kernel(1.0);
  b.Comm(CollectiveKind::kPermute, 1'000'000, {1}, {0}, Purpose::kTp, StreamKind::kGradComm);
  b.Kernel(1.0, {0});
  b.Program("all").Run("B");
  ExecutionGraph graph = b.Build();
  EXPECT_GT(MeanOf(graph).sm_fraction, 0);
  for (CommSpec& comm : graph.comms) comm.policy = "copy";
  EXPECT_EQ(MeanOf(graph).sm_fraction, 0);
}

TEST(MeanFootprint, SparedCollectivesCostProductsNoMoreThanTheyHold) {
  Machine::Spec spec = UnitMachine(2, 2);
  spec.device.like = "H100-SXM-80GB";
  const Machine machine = *Machine::Create(spec);
  ExecutionGraph graph = GradientsBesideAKernel();
  EXPECT_GT(MeanOf(graph, machine).product_sm_fraction, 2 * MeanOf(graph, machine).sm_fraction);
  for (CommSpec& comm : graph.comms) comm.spared = true;
  EXPECT_EQ(MeanOf(graph, machine).product_sm_fraction, MeanOf(graph, machine).sm_fraction);
}

TEST(MeanFootprint, WeighsCollectivesByTime) {
  GraphBuilder b({{"dp", 2}, {"tp", 2}});
  b.Block("B").Kernel(1.0).Comm(kAllReduce, 1'000'000'000, {1}, {0}).Kernel(1.0, {0});
  b.Comm(kAllReduce, 1'000'000'000, {0}, {0}, Purpose::kDp, StreamKind::kGradComm);
  b.Program("all").Run("B");
  const double inside = FootprintInside(TwoHosts()).memory_bytes_per_s;
  const double across = FootprintAcross(TwoHosts(), 1, 1).memory_bytes_per_s;
  const double mean = MeanOf(b.Build()).memory_bytes_per_s;
  // The network is a tenth as fast, less what members copy of their own inside: its
  // footprint weighs six to ten times more.
  EXPECT_GT(mean, across);
  EXPECT_LT(mean, across + (inside - across) / 6);
}

TEST(MeanFootprint, IsNoMoreThanACollectiveMoves) {
  // All four members; links inside hosts are the limit once interfaces are fast.
  GraphBuilder b({{"dp", 4}});
  b.Block("B").Kernel(1.0);
  b.Comm(kAllReduce, 20'000'000'000, {0}, {0}, Purpose::kDp, StreamKind::kGradComm);
  b.Kernel(1.0);
  b.Program("all").Run("B");
  const auto traffic = [&, graph = b.Build()](double nic_bytes_per_s) {
    Machine::Spec spec = UnitMachine(2, 2);
    spec.nic_bytes_per_s = nic_bytes_per_s;
    return MeanOf(graph, *Machine::Create(spec)).memory_bytes_per_s;
  };
  EXPECT_NEAR(traffic(2e10) / traffic(1e10), 2, 0.01);
  EXPECT_GT(traffic(1e12), traffic(2e10));
  EXPECT_NEAR(traffic(1e13) / traffic(1e12), 1, 1e-3);
}

// Kernels of 1 s and 3 s; the first is bound by memory, the second uses none.
KernelPrices MemoryAndCompute() {
  KernelPrices prices;
  prices.costs.resize(2);
  prices.num_kernels = 2;
  prices.costs[0].seconds_alone = 1;
  prices.costs[0].hbm_bytes = 1e15;
  prices.costs[1].seconds_alone = 3;
  return prices;
}

TEST(MeanCommSlowdown, WeighsKernelsByTheirTimeOverAllPrograms) {
  const DeviceType device = TwoHosts().device();
  const KernelPrices prices = MemoryAndCompute();
  const CollectiveFootprint footprint{0.1, 5e11};
  // A kernel that fills memory leaves the collective its traffic short; the other
  // leaves it all.
  const double beside_memory = CollectiveSlowdown(device, prices.costs[0], footprint);
  ASSERT_GT(beside_memory, 1.4);
  ASSERT_EQ(CollectiveSlowdown(device, prices.costs[1], footprint), 1);
  GraphBuilder b({{"pp", 2}, {"tp", 2}});
  b.Block("memory").Kernel(1.0);
  b.Block("both").Kernel(1.0).Kernel(3.0);
  b.Program("first", {{0, 0}}).Run("memory", {}, 4).Run("both");
  b.Program("second", {{0, 1}}).Run("both", {}, 2);
  // 7 s of the one, 9 s of the other.
  const ExecutionGraph graph = b.Build();
  EXPECT_DOUBLE_EQ(KernelSeconds(graph, prices), 16);
  EXPECT_DOUBLE_EQ(MeanCommSlowdown(graph, device, footprint, prices),
                   (7 * beside_memory + 9) / 16);
}

TEST(MeanCommSlowdown, IsNoneWithoutKernelsOrTraffic) {
  const DeviceType device = TwoHosts().device();
  EXPECT_EQ(MeanCommSlowdown(ExecutionGraph(), device, {0.1, 5e11}, KernelPrices()), 1);
  GraphBuilder b({{"tp", 2}});
  b.Block("both").Kernel(1.0).Kernel(3.0);
  b.Program("all").Run("both");
  EXPECT_EQ(MeanCommSlowdown(b.Build(), device, {0.1, 0}, MemoryAndCompute()), 1);
}

TEST(PriceBothWays, TakesWhatIsSetAndFindsTheRest) {
  const Machine machine = TwoHosts();
  const ExecutionGraph graph = GradientsBesideAKernel();
  const CommUses uses = *FindCommUses(graph);
  for (const bool kernels_by_data : {false, true}) {
    for (const bool comms_by_data : {false, true}) {
      RuntimeParams runtime;
      runtime.interference = runtime.comm_interference = 0.25;
      if (kernels_by_data) runtime.interference = std::nullopt;
      if (comms_by_data) runtime.comm_interference = std::nullopt;
      KernelPrices prices = MemoryAndCompute();
      prices.costs.resize(graph.kernels.size());
      prices.num_kernels = prices.costs.size();
      CommPricer comms(graph, machine, runtime);
      ASSERT_OK_AND_ASSIGN(const std::vector<double> slowdowns,
                           PriceBothWays(graph, uses, machine, runtime, comms, prices));
      ASSERT_EQ(slowdowns.size(), 1);
      const double slowdown = slowdowns[0];
      EXPECT_EQ(prices.slowdown_q20.empty(), !kernels_by_data);
      if (!comms_by_data) {
        EXPECT_EQ(slowdown, 1.25);
      } else {
        EXPECT_EQ(slowdown, MeanCommSlowdown(graph, machine.device(),
                                             FootprintAcross(machine, 1, 1), prices));
        EXPECT_GT(slowdown, 1);
      }
    }
  }
}

TEST(Interference, SlowsKernelsByTheirOwnMeasureAndOnlyWhileACollectiveRuns) {
  const Machine machine = TwoHosts();
  RuntimeParams runtime;
  runtime.interference = std::nullopt;
  SimulateOptions options;
  options.timeline = true;
  ASSERT_OK_AND_ASSIGN(const SimResult result,
                       Execute(GradientsBesideAKernel(), machine, UnitCost(), runtime, options));
  ASSERT_EQ(result.slices.size(), 3);
  EXPECT_EQ(result.slices[0].end_ps - result.slices[0].start_ps, 1'000'000'000'000);
  // 20 GB over an interface of 10 GB/s outlast the kernel, which loses 2 of 100 SMs:
  // 1 / 0.98 in steps of 2^-20.
  const Slice& kernel =
      result.slices[1].stream == StreamKind::kCompute ? result.slices[1] : result.slices[2];
  const int64_t slowdown_q20 = 1'069'975;  // 2^20 / 0.98 = 1069975.51, down
  EXPECT_NEAR(static_cast<double>(kernel.end_ps - kernel.start_ps),
              1e12 * static_cast<double>(slowdown_q20) / (1 << 20), 1e6);
}

TEST(Interference, AProfilesFigureOverridesTheGpus) {
  const Machine machine = TwoHosts();
  RuntimeParams runtime;
  SimulateOptions options;
  options.timeline = true;
  for (const double own : {0.0, 0.25}) {
    runtime.interference = own;
    ASSERT_OK_AND_ASSIGN(const SimResult result,
                         Execute(GradientsBesideAKernel(), machine, UnitCost(), runtime, options));
    int64_t longest = 0;
    for (const Slice& slice : result.slices) {
      if (slice.stream != StreamKind::kCompute) continue;
      longest = std::max(longest, slice.end_ps - slice.start_ps);
    }
    EXPECT_EQ(longest, static_cast<int64_t>((1 + own) * 1e12));
  }
}

}  // namespace
}  // namespace plancast
