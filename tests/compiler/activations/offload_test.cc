// What lives in host memory: closed forms of what is copied, held and exposed.

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler/activations/offload_blocks.h"
#include "compiler/graph_workspace.h"
#include "executor/executor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/plan_under_test.h"
#include "tests/compiler/small_model.h"
#include "tests/executor/graph_builder.h"
#include "tests/executor/memory/event_replay.h"
#include "tests/testing/seed.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

constexpr int kParameters = static_cast<int>(MemoryKind::kParameters);
constexpr int kGradients = static_cast<int>(MemoryKind::kGradients);
constexpr int kOptimizer = static_cast<int>(MemoryKind::kOptimizer);
constexpr int kActivations = static_cast<int>(MemoryKind::kActivations);

PlanUnderTest Plan(int64_t layers = 6, std::set<Offload> offload = {Offload::kActivations}) {
  PlanUnderTest plan = PlanUnderTest::Of(SmallModel(layers));
  plan.options().offload = std::move(offload);
  plan.profile().tensors.offload_least_bytes = 0;
  return plan;
}

ExecutionGraph Compiled(PlanUnderTest& plan) {
  absl::StatusOr<ExecutionGraph> graph = plan.Compile();
  EXPECT_OK(graph.status());
  EXPECT_OK(graph->Verify());
  return graph.ok() ? *graph : ExecutionGraph();
}

// Bytes that a device copies in an iteration.
std::map<CollectiveKind, int64_t> Copied(const ExecutionGraph& graph, int32_t program = 0) {
  std::map<CollectiveKind, int64_t> bytes;
  for (const Instance& instance : graph.programs[program].instances) {
    const Block& block = graph.blocks[instance.block];
    for (int32_t t = 0; t < block.size(); ++t) {
      if (block.kind[t] != TaskKind::kComm) continue;
      const CommSpec& comm = graph.comms[block.spec[t]];
      if (IsOnHost(comm.kind)) bytes[comm.kind] += comm.bytes * instance.layer_count;
    }
  }
  return bytes;
}

const Block& BlockOf(const ExecutionGraph& graph, const std::string& name) {
  for (const Block& block : graph.blocks) {
    if (block.name == name) return block;
  }
  ADD_FAILURE() << "no block " << name;
  return graph.blocks[0];
}

int64_t KeptBytes(int64_t least_bytes = 0) {
  PlanUnderTest plan = Plan(2, {});
  return TotalBytes(KeptTensors(BlockOf(Compiled(plan), "layer.F"), least_bytes));
}

// A kernel takes as long as what it reads, writes and computes.
class SimpleCost : public KernelCostModel {
 public:
  std::optional<KernelCost> Estimate(const KernelSpec& kernel, const DeviceType&) const override {
    KernelCost cost;
    cost.seconds_alone =
        (kernel.read_bytes + kernel.write_bytes) * 1e-9 + std::max(kernel.flops, 0.0) * 1e-11;
    return cost;
  }
};

Machine LinkedMachine(double pcie_bytes_per_s, int64_t gpus = 1, int64_t below_uplink = 0) {
  Machine::Spec spec = UnitMachine(1, gpus);
  spec.pcie_bytes_per_s = pcie_bytes_per_s;
  spec.gpus_per_host_uplink = below_uplink;
  return *Machine::Create(spec);
}

double Makespan(PlanUnderTest&& plan, const Machine& machine) {
  const ExecutionGraph graph = Compiled(plan);
  const absl::StatusOr<SimResult> result = Execute(graph, machine, SimpleCost(), RuntimeParams());
  EXPECT_OK(result.status());
  return static_cast<double>(result->makespan_ps) * 1e-12;
}

double ComputeSeconds(const ExecutionGraph& graph, const std::string& block_name) {
  const Block& block = BlockOf(graph, block_name);
  double seconds = 0;
  for (int32_t t = 0; t < block.size(); ++t) {
    if (block.kind[t] != TaskKind::kKernel) continue;
    seconds += SimpleCost().Estimate(graph.kernels[block.spec[t]], {})->seconds_alone;
  }
  return seconds;
}

// --- Activations: bytes.

TEST(OffloadActivationsTest, WhatGoesOutComesBack) {
  const int64_t kept = KeptBytes();
  ASSERT_GT(kept, 0);
  for (const int64_t micro_batches : {1, 3}) {
    for (const int64_t layers : {-1, 1, 4, 6}) {
      PlanUnderTest plan = Plan();
      plan.MicroBatches(1, micro_batches);
      plan.options().offload_layers = layers;
      const std::map<CollectiveKind, int64_t> copied = Copied(Compiled(plan));
      const int64_t expected = micro_batches * (layers < 0 ? 5 : layers) * kept;
      EXPECT_EQ(copied.at(CollectiveKind::kCopyToHost), expected);
      EXPECT_EQ(copied.at(CollectiveKind::kCopyToDevice), expected);
    }
  }
}

TEST(OffloadActivationsTest, SmallTensorsStay) {
  const int64_t kept = KeptBytes(4096);
  ASSERT_LT(kept, KeptBytes());
  PlanUnderTest plan = Plan();
  plan.profile().tensors.offload_least_bytes = 4096;
  EXPECT_EQ(Copied(Compiled(plan)).at(CollectiveKind::kCopyToHost), 5 * kept);
}

// Checkpoints alone: a layer's input.
TEST(OffloadActivationsTest, WithFullRecomputationInputsGoOut) {
  PlanUnderTest plan = Plan();
  plan.Recomputing(Recompute::kFull);
  EXPECT_EQ(Copied(Compiled(plan)).at(CollectiveKind::kCopyToHost), 5 * 2 * 16 * 64);
}

// --- Memory.

int64_t MostActivations(PlanUnderTest&& plan) {
  int64_t most = 0;
  for (const ReplayedEvent& event : ReplayEvents(Compiled(plan), 0)) {
    most = std::max(most, event.live.of[kActivations]);
  }
  return most;
}

// Two layers' tensors are on the device at once, however many there are.
TEST(OffloadActivationsTest, TwoLayersOfTensorsAreOnTheDevice) {
  EXPECT_EQ(MostActivations(Plan(6)), MostActivations(Plan(12)));
  const int64_t kept = KeptBytes();
  for (const int64_t offloaded : {2, 4, 6, 8, 10}) {
    PlanUnderTest plan = Plan(12);
    plan.options().offload_layers = offloaded;
    // Of the others, all; and of those in flight into the first of them, none.
    PlanUnderTest shorter = Plan(12 - offloaded, {});
    const int64_t most = MostActivations(std::move(plan));
    const int64_t others = MostActivations(std::move(shorter));
    EXPECT_GE(most, others);
    EXPECT_LE(most, others + kept);
  }
}

TEST(OffloadActivationsTest, TheHostHoldsWhatIsInFlight) {
  const int64_t kept = KeptBytes();
  const std::vector<ClassMemory> one = ReplayMemory(
      [] {
        PlanUnderTest plan = Plan();
        plan.MicroBatches(1, 3);
        return Compiled(plan);
      }(),
      RuntimeParams());
  EXPECT_EQ(one[0].host, 5 * kept);
  PlanUnderTest pipeline = Plan(8);
  pipeline.Pp(2).MicroBatches(1, 4);
  const std::vector<ClassMemory> stages = ReplayMemory(Compiled(pipeline), RuntimeParams());
  EXPECT_EQ(stages[0].host, 2 * 3 * kept);  // two micro-batches in flight, three layers each
  EXPECT_EQ(stages[1].host, 3 * kept);
}

// Everything that is allocated is given up, and nothing before it was there.
TEST(OffloadTest, NothingIsLeftOver) {
  std::mt19937_64 random(TestSeed(20261125));
  const auto one_of = [&](std::vector<int64_t> choices) {
    return choices[random() % choices.size()];
  };
  for (int i = 0; i < 200; ++i) {
    PlanUnderTest plan = Plan(one_of({4, 8}));
    PlanOptions& o = plan.options();
    const int64_t pp = one_of({1, 1, 2, 4}), vpp = pp == 2 ? one_of({1, 2}) : 1;
    plan.Pp(pp,
            pp == 1      ? Schedule::kNone
            : vpp > 1    ? Schedule::kInterleaved
            : i % 2 == 0 ? Schedule::k1f1b
                         : Schedule::kGpipe,
            vpp);
    plan.MicroBatches(1, one_of({1, 2, 4})).Dp(one_of({1, 2}));
    plan.Recomputing(one_of({0, 1}) != 0 ? Recompute::kFull : Recompute::kNone,
                     one_of({-1, -1, 1}));
    o.zero = static_cast<int>(one_of({0, 1, 2, 3}));
    o.offload.clear();
    if (one_of({0, 1, 1}) != 0) o.offload.insert(Offload::kActivations);
    if (one_of({0, 1}) != 0) o.offload.insert(Offload::kOptimizer);
    if (o.zero == 3 && one_of({0, 1}) != 0) o.offload.insert(Offload::kParameters);
    o.offload_layers = one_of({-1, -1, 1, 3, 99});
    if (one_of({0, 1}) != 0) o.overlap.insert(Overlap::kGrad);
    if (one_of({0, 1}) != 0) o.overlap.insert(Overlap::kParam);
    o.bucket_bytes = one_of({1, 200'000});
    plan.profile().update.zero_grad = one_of({0, 1}) != 0;
    plan.profile().data_parallel.sharded_master = one_of({0, 1}) != 0;
    SCOPED_TRACE(testing::Message() << i << " zero " << o.zero << " pp " << pp << " vpp " << vpp
                                    << " offloads " << o.offload.size() << ":" << o.offload_layers);
    const ExecutionGraph graph = Compiled(plan);
    for (size_t p = 0; p < graph.programs.size(); ++p) {
      const std::vector<ReplayedEvent> events = ReplayEvents(graph, static_cast<int32_t>(p));
      for (int kind = 0; kind < kNumMemoryKinds; ++kind) {
        const int64_t at_rest = graph.programs[p].static_bytes[kind];
        for (const ReplayedEvent& event : events) ASSERT_GE(event.live.of[kind], at_rest) << kind;
        if (!events.empty()) {
          ASSERT_EQ(events.back().live.of[kind], at_rest) << kind;
        }
      }
      int64_t host = 0;
      for (const Instance& instance : graph.programs[p].instances) {
        host += graph.blocks[instance.block].host_bytes * instance.layer_count;
        ASSERT_GE(host, 0);
      }
      EXPECT_EQ(host, 0);
    }
    GraphWorkspace workspace;
    Session session;
    ASSERT_OK(workspace.Compile(plan.Request(), session));
    ASSERT_EQ(workspace.graph().DebugString(), graph.DebugString());
  }
}

// --- Time.

// Of the kernels behind the task that hands the gradient of its input on.
double SecondsBehindOutPort(const ExecutionGraph& graph, const std::string& block_name) {
  const Block& block = BlockOf(graph, block_name);
  double seconds = 0;
  for (int32_t t = block.out_ports[0] + 1; t < block.size(); ++t) {
    seconds += SimpleCost().Estimate(graph.kernels[block.spec[t]], {})->seconds_alone;
  }
  return seconds;
}

// Copies of k layers alongside the layer after each: hidden if they take no longer, else
// the difference is exposed, k times in each direction. Copies in begin when the
// gradient is there, alongside the last weight gradient of the layer before.
TEST(OffloadActivationsTest, WhatIsLongerThanALayerIsExposed) {
  PlanUnderTest plain = Plan(6, {});
  const ExecutionGraph graph = Compiled(plain);
  const double forward = ComputeSeconds(graph, "layer.F");
  const double backward = ComputeSeconds(graph, "layer.B");
  const double head_start = SecondsBehindOutPort(graph, "layer.B");
  const std::vector<KeptTensor> kept = KeptTensors(BlockOf(graph, "layer.F"), 0);
  const double bytes = static_cast<double>(TotalBytes(kept));
  const double alone = Makespan(Plan(6, {}), LinkedMachine(1e9));
  for (const double share : {0.2, 0.9, 1.5, 3.0, 10.0}) {
    for (const int64_t layers : {2, 5}) {
      const double rate = bytes / (share * forward);
      PlanUnderTest plan = Plan(6);
      plan.options().offload_layers = layers;
      const double copy = bytes / rate + static_cast<double>(kept.size()) * 1e-6;
      double exposed = static_cast<double>(layers) * std::max(0.0, copy - forward);
      if (copy - head_start > backward) {
        exposed += static_cast<double>(layers) * (copy - backward) - head_start;
      }
      EXPECT_NEAR(Makespan(std::move(plan), LinkedMachine(rate)), alone + exposed,
                  1e-9)  // copies round up to picoseconds
          << share << " " << layers;
    }
  }
}

// Two GPUs below an uplink have half of it each.
TEST(OffloadActivationsTest, GpusBelowOneSwitchShareItsUplink) {
  const auto makespan = [](const Machine& machine) {
    PlanUnderTest plan = Plan(6);
    plan.Tp(2).Split("", "tp", {"heads", "ffn", "vocab"});
    return Makespan(std::move(plan), machine);
  };
  const double rate = 2e6;  // far too slow
  const double own = makespan(LinkedMachine(rate, 2)), half = makespan(LinkedMachine(rate / 2, 2)),
               shared = makespan(LinkedMachine(rate, 2, 2));
  EXPECT_GT(shared, 1.8 * own);
  EXPECT_NEAR(shared, half, 1e-6 * half);
}

TEST(OffloadActivationsTest, NeitherLayersNorRanksAddBlocksOrInstances) {
  const auto counts = [](int64_t layers, int64_t dp) {
    PlanUnderTest plan = Plan(layers);
    plan.Dp(dp);
    const ExecutionGraph graph = Compiled(plan);
    return std::make_pair(graph.blocks.size(), graph.programs[0].instances.size());
  };
  EXPECT_EQ(counts(12, 2), counts(24, 2));
  EXPECT_EQ(counts(12, 2), counts(12, 16));
}

// --- Optimizer and parameters.

// ZeRO-Offload: 2 bytes of parameters stay of 16, gradients pass through.
TEST(OffloadOptimizerTest, StateLeavesTheDevice) {
  for (const int zero : {0, 1, 2, 3}) {
    PlanUnderTest plain = Plan(6, {}), plan = Plan(6, {Offload::kOptimizer});
    for (PlanUnderTest* one : {&plain, &plan}) {
      one->Dp(4);
      one->options().zero = zero;
      one->profile().data_parallel.shard_cut = ShardCut::kUnit;
      one->profile().update.zero_grad = true;
    }
    const Program before = Compiled(plain).programs[0], after = Compiled(plan).programs[0];
    EXPECT_EQ(after.static_bytes[kOptimizer], 0);
    EXPECT_EQ(after.static_bytes[kParameters], before.static_bytes[kParameters]);
    EXPECT_EQ(after.static_bytes[kGradients], zero >= 2 ? 0 : before.static_bytes[kGradients]);
    // fp32 weight and two moments, and the gradient.
    EXPECT_EQ(after.host_bytes, before.static_bytes[kOptimizer] * 16 / 12);
  }
}

TEST(OffloadOptimizerTest, GradientsGoOutAndParametersComeBack) {
  for (const int zero : {0, 1, 2}) {
    for (const int64_t dp : {1, 4}) {
      for (const bool overlap : {false, true}) {
        PlanUnderTest plan = Plan(6, {Offload::kOptimizer});
        plan.Dp(dp);
        plan.options().zero = zero;
        plan.options().bucket_bytes = 100'000;
        plan.profile().data_parallel.shard_cut = ShardCut::kUnit;
        if (overlap) plan.options().overlap = {Overlap::kGrad};
        const ExecutionGraph graph = Compiled(plan);
        const int64_t kept = graph.programs[0].host_bytes / 16;  // parameters of the optimizer
        const std::map<CollectiveKind, int64_t> copied = Copied(graph);
        const auto slack = static_cast<double>(graph.programs[0].instances.size()) * 16;
        EXPECT_NEAR(copied.at(CollectiveKind::kCopyToHost), 4 * kept, slack);
        EXPECT_EQ(copied.at(CollectiveKind::kCopyToDevice), 2 * kept);
        // 12 bytes read and written, the gradient read, 16-bit weights written.
        EXPECT_EQ(copied.at(CollectiveKind::kHostUpdate), (12 + 12 + 4 + 2) * kept);
      }
    }
  }
}

// Shards of parameters come in before each gather; nothing of them stays.
TEST(OffloadParametersTest, ShardsComeInBeforeTheyAreGathered) {
  for (const int64_t micro_batches : {1, 3}) {
    PlanUnderTest plain = Plan(6, {});
    PlanUnderTest plan = Plan(6, {Offload::kOptimizer, Offload::kParameters});
    for (PlanUnderTest* one : {&plain, &plan}) {
      one->Dp(4).MicroBatches(1, micro_batches);
      one->options().zero = 3;
      one->options().sync_each = true;
      one->profile().data_parallel.shard_cut = ShardCut::kUnit;
    }
    const ExecutionGraph before = Compiled(plain), after = Compiled(plan);
    const int64_t shard = before.programs[0].static_bytes[kParameters];
    EXPECT_EQ(after.programs[0].static_bytes[kParameters], 0);
    EXPECT_EQ(after.programs[0].host_bytes, shard / 2 * (16 + 2));
    const std::map<CollectiveKind, int64_t> copied = Copied(after);
    EXPECT_EQ(copied.at(CollectiveKind::kCopyToDevice), micro_batches * 2 * shard);
    EXPECT_EQ(copied.at(CollectiveKind::kCopyToHost), micro_batches * 2 * shard);
  }
}

// Bytes over bandwidth, which the GPUs of a host share.
TEST(OffloadOptimizerTest, TheUpdateTakesItsBytesOverTheMemoryOfTheHost) {
  const auto makespan = [](double bandwidth, int64_t dp) {
    PlanUnderTest plan = Plan(6, {Offload::kOptimizer});
    plan.Dp(dp);
    plan.options().zero = 1;
    Machine::Spec spec = UnitMachine(1, 4);
    spec.pcie_bytes_per_s = 1e9;
    spec.host_memory_bytes_per_s = bandwidth;
    spec.host_update_share = 0.5;
    return Makespan(std::move(plan), *Machine::Create(spec));
  };
  PlanUnderTest plan = Plan(6, {Offload::kOptimizer});
  const double bytes = static_cast<double>(Copied(Compiled(plan)).at(CollectiveKind::kHostUpdate));
  // Each of four updates a quarter with a quarter of the bandwidth.
  for (const int64_t dp : {1, 4}) {
    const double difference = makespan(1e7, dp) - makespan(1e12, dp);
    EXPECT_NEAR(difference / (bytes / (0.5 * 1e7)), 1, dp == 1 ? 0.5 : 0.5);
    EXPECT_GT(difference, bytes / (0.5 * 1e7) * 0.999);
  }
}

}  // namespace
}  // namespace plancast
