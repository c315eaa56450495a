#include "executor/interference.h"

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

CollectiveFootprint MeanOf(const ExecutionGraph& graph) {
  const Machine machine = TwoHosts();
  const CommUses uses = *FindCommUses(graph);
  CommPricer comms(graph, machine, RuntimeParams());
  return *MeanFootprint(graph, uses, machine, comms);
}

// A kernel, a gradient all-reduce of it, and a kernel beside that.
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

TEST(MeanFootprint, WeighsCollectivesByTime) {
  GraphBuilder b({{"dp", 2}, {"tp", 2}});
  b.Block("B").Kernel(1.0).Comm(kAllReduce, 1'000'000'000, {1}, {0}).Kernel(1.0, {0});
  b.Comm(kAllReduce, 1'000'000'000, {0}, {0}, Purpose::kDp, StreamKind::kGradComm);
  b.Program("all").Run("B");
  const double inside = FootprintInside(TwoHosts()).memory_bytes_per_s;
  const double across = FootprintAcross(TwoHosts(), 1, 1).memory_bytes_per_s;
  const double mean = MeanOf(b.Build()).memory_bytes_per_s;
  // The network is a tenth as fast, so its footprint weighs about ten times more.
  EXPECT_GT(mean, across);
  EXPECT_LT(mean, across + (inside - across) / 8);
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
