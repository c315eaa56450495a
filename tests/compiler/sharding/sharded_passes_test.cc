// Sharded data parallelism in compiled plans: closed forms of what is moved, held and
// in flight.

#include "compiler/sharding/sharded_passes.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "compiler/graph_workspace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/plan_under_test.h"
#include "tests/compiler/random_homes.h"
#include "tests/compiler/small_model.h"
#include "tests/executor/memory/event_replay.h"
#include "tests/testing/seed.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

constexpr int kParameters = static_cast<int>(MemoryKind::kParameters);
constexpr int kGradients = static_cast<int>(MemoryKind::kGradients);
constexpr int kOptimizer = static_cast<int>(MemoryKind::kOptimizer);

// Psi, from the plan without parallelism: bf16 parameters.
int64_t Parameters(const TransformerConfig& config) {
  PlanUnderTest plan = PlanUnderTest::Of(config);
  const absl::StatusOr<ExecutionGraph> graph = plan.Compile();
  EXPECT_OK(graph.status());
  return graph->programs[0].static_bytes[kParameters] / 2;
}

PlanUnderTest Zero(int stage, int64_t dp, int64_t micro_batches = 1, int64_t layers = 6) {
  PlanUnderTest plan = PlanUnderTest::Of(SmallModel(layers));
  plan.Dp(dp).MicroBatches(1, micro_batches);
  plan.options().zero = stage;
  plan.options().sync_each = stage >= 2;
  plan.profile().data_parallel.shard_cut = ShardCut::kUnit;
  return plan;
}

ExecutionGraph Compiled(PlanUnderTest& plan) {
  absl::StatusOr<ExecutionGraph> graph = plan.Compile();
  EXPECT_OK(graph.status());
  return graph.ok() ? *graph : ExecutionGraph();
}

// Bytes that a device sends for data parallelism in an iteration, by collective: rings
// of n send (n - 1) / n of the buffer, all-reduces twice.
std::map<CollectiveKind, double> Sent(const ExecutionGraph& graph) {
  std::map<CollectiveKind, double> sent;
  for (const Instance& instance : graph.programs[0].instances) {
    const Block& block = graph.blocks[instance.block];
    for (int32_t t = 0; t < block.size(); ++t) {
      if (block.kind[t] != TaskKind::kComm || block.purpose[t] != Purpose::kDp) continue;
      const CommSpec& comm = graph.comms[block.spec[t]];
      const auto n = static_cast<double>(graph.mesh.SizeOf(comm.axes));
      const double times = comm.kind == CollectiveKind::kAllReduce ? 2 : 1;
      sent[comm.kind] += times * static_cast<double>(comm.bytes) * (n - 1) / n *
                         static_cast<double>(instance.layer_count);
    }
  }
  return sent;
}

constexpr auto kGather = CollectiveKind::kAllGather;
constexpr auto kScatter = CollectiveKind::kReduceScatter;
constexpr auto kReduce = CollectiveKind::kAllReduce;

// --- Bytes on the wire. ZeRO (Rajbhandari et al. 2020, section 7): 2 Psi for stages 0
// to 2, 3 Psi for stage 3; each in its type.

TEST(ShardedWireTest, StagesZeroToTwoMoveTwoPsi) {
  const auto psi = static_cast<double>(Parameters(SmallModel()));
  for (const int64_t n : {2, 4, 8}) {
    const double share = static_cast<double>(n - 1) / static_cast<double>(n);
    PlanUnderTest whole = Zero(0, n), states = Zero(1, n), gradients = Zero(2, n);
    EXPECT_DOUBLE_EQ(Sent(Compiled(whole))[kReduce], 2 * 4 * psi * share);
    for (PlanUnderTest* plan : {&states, &gradients}) {
      std::map<CollectiveKind, double> sent = Sent(Compiled(*plan));
      EXPECT_DOUBLE_EQ(sent[kScatter], 4 * psi * share);
      EXPECT_DOUBLE_EQ(sent[kGather], 2 * psi * share);
      EXPECT_EQ(sent[kReduce], 0);
    }
  }
}

TEST(ShardedWireTest, StageTwoReducesInEveryMicroBatch) {
  const auto psi = static_cast<double>(Parameters(SmallModel()));
  PlanUnderTest plan = Zero(2, 4, 3);
  EXPECT_DOUBLE_EQ(Sent(Compiled(plan))[kScatter], 3 * 4 * psi * 3 / 4);
  plan.options().sync_each = false;
  EXPECT_DOUBLE_EQ(Sent(Compiled(plan))[kScatter], 4 * psi * 3 / 4);
}

TEST(ShardedWireTest, StagesZeroAndOneReduceInEveryMicroBatchIfAsked) {
  const auto psi = static_cast<double>(Parameters(SmallModel()));
  for (const bool overlap : {false, true}) {
    PlanUnderTest whole = Zero(0, 4, 3), states = Zero(1, 4, 3);
    for (PlanUnderTest* plan : {&whole, &states}) {
      plan->options().sync_each = true;
      if (overlap) plan->options().overlap = {Overlap::kGrad};
    }
    EXPECT_DOUBLE_EQ(Sent(Compiled(whole))[kReduce], 3 * 2 * 4 * psi * 3 / 4);
    EXPECT_DOUBLE_EQ(Sent(Compiled(states))[kScatter], 3 * 4 * psi * 3 / 4);
    EXPECT_DOUBLE_EQ(Sent(Compiled(states))[kGather], 2 * psi * 3 / 4);
  }
}

TEST(ShardedWireTest, StageThreeGathersForwardAndBackward) {
  const auto psi = static_cast<double>(Parameters(SmallModel()));
  for (const int64_t micro_batches : {1, 3}) {
    for (const int64_t prefetch : {0, 1, 2, 9}) {
      PlanUnderTest plan = Zero(3, 8, micro_batches);
      plan.options().prefetch = prefetch;
      const double times = static_cast<double>(micro_batches) * 7 / 8;
      std::map<CollectiveKind, double> sent = Sent(Compiled(plan));
      EXPECT_DOUBLE_EQ(sent[kGather], 2 * 2 * psi * times);
      EXPECT_DOUBLE_EQ(sent[kScatter], 4 * psi * times);
      plan.options().reshard = false;
      sent = Sent(Compiled(plan));
      EXPECT_DOUBLE_EQ(sent[kGather], 2 * psi * times);
      EXPECT_DOUBLE_EQ(sent[kScatter], 4 * psi * times);
      // Gradients kept whole, as FSDP1 does under no_sync.
      plan.options().sync_each = false;
      sent = Sent(Compiled(plan));
      EXPECT_DOUBLE_EQ(sent[kGather], 2 * psi * 7 / 8);
      EXPECT_DOUBLE_EQ(sent[kScatter], 4 * psi * 7 / 8);
    }
  }
}

// fully_shard gives parameters up after each backward pass, unless it is told not to.
TEST(ShardedWireTest, RowsStayThroughMicroBatchesWhereTheProfileSaysSo) {
  const auto psi = static_cast<double>(Parameters(SmallModel()));
  PlanUnderTest plan = Zero(3, 4, 3);
  plan.profile().data_parallel.shard_cut = ShardCut::kRows;
  plan.options().reshard = plan.options().sync_each = false;
  for (const bool stays : {false, true}) {
    plan.profile().data_parallel.stays_through = stays;
    const std::map<CollectiveKind, double> sent = Sent(Compiled(plan));
    EXPECT_DOUBLE_EQ(sent.at(kGather), (stays ? 1 : 3) * 2 * psi * 3 / 4);
    EXPECT_DOUBLE_EQ(sent.at(kScatter), 4 * psi * 3 / 4);
  }
}

TEST(ShardedWireTest, TheRootStaysGathered) {
  const TransformerConfig config = SmallModel(), none = SmallModel(3);
  const auto psi = static_cast<double>(Parameters(config));
  const double layers = 2 * (psi - static_cast<double>(Parameters(none)));
  PlanUnderTest plan = Zero(3, 4);
  plan.profile().data_parallel.root_unit = true;
  EXPECT_DOUBLE_EQ(Sent(Compiled(plan))[kGather], 2 * (psi + layers) * 3 / 4);
}

// Replicas sum up shards.
TEST(ShardedWireTest, ReplicasReduceTheirShards) {
  const auto psi = static_cast<double>(Parameters(SmallModel()));
  for (const int stage : {1, 2, 3}) {
    PlanUnderTest plan = Zero(stage, 8);
    plan.options().hsdp = 4;
    std::map<CollectiveKind, double> sent = Sent(Compiled(plan));
    EXPECT_DOUBLE_EQ(sent[kScatter], 4 * psi * 3 / 4);
    EXPECT_DOUBLE_EQ(sent[kReduce], 2 * 4 * psi / 4 * 1 / 2);
    EXPECT_DOUBLE_EQ(sent[kGather], (stage == 3 ? 2 : 1) * 2 * psi * 3 / 4);
  }
}

// ZeRO++ (Wang et al. 2023), hpZ: the backward gather runs over the secondary group.
TEST(ShardedWireTest, TheSecondaryPartitionIsGatheredInBackward) {
  const auto psi = static_cast<double>(Parameters(SmallModel()));
  PlanUnderTest plan = Zero(3, 8);
  plan.options().reshard_ranks = 2;
  EXPECT_DOUBLE_EQ(Sent(Compiled(plan))[kGather], 2 * psi * 7 / 8 + 2 * psi * 1 / 2);
}

// All of ZeRO++: weights in blocks of int8 (qwZ), the secondary partition inside a node
// (hpZ), gradients in int4 (qgZ). Of the 3 Psi of 16 bits between nodes 0.75 are left,
// and the scales of the blocks.
TEST(ShardedWireTest, ZeroPlusPlusSendsAQuarterBetweenNodes) {
  const auto psi = static_cast<double>(Parameters(SmallModel()));
  PlanUnderTest plan = Zero(3, 8);
  plan.options().reshard_ranks = 4;
  plan.profile().types.gather_dtype = DType::kInt8;
  plan.profile().types.reduce_dtype = DType::kInt4;
  const ExecutionGraph graph = Compiled(plan);
  // What runs over the outer axis as well leaves a node of four.
  double between = 0;
  for (const Instance& instance : graph.programs[0].instances) {
    const Block& block = graph.blocks[instance.block];
    for (int32_t t = 0; t < block.size(); ++t) {
      if (block.kind[t] != TaskKind::kComm || block.purpose[t] != Purpose::kDp) continue;
      const CommSpec& comm = graph.comms[block.spec[t]];
      if (graph.mesh.SizeOf(comm.axes) != 8) continue;
      between += static_cast<double>(comm.bytes) * static_cast<double>(instance.layer_count);
    }
  }
  EXPECT_NEAR(between, psi * (WireBytes(DType::kInt8) + WireBytes(DType::kInt4)), 16);
  EXPECT_NEAR(between / (2 * psi), 0.75, 0.03);
  // Each layer is made of blocks again before it computes.
  EXPECT_THAT(BlockNamed(graph, "layer.F").label, testing::Contains("layer.dequantize").Times(1));
  EXPECT_THAT(BlockNamed(graph, "layer.B").label, testing::Contains("layer.dequantize").Times(1));
}

TEST(ShardedWireTest, PaddingIsMoved) {
  const auto up = [](int64_t size) { return (size + 2) / 3 * 3; };
  for (const ShardCut cut :
       {ShardCut::kParameter, ShardCut::kJoined, ShardCut::kUnit, ShardCut::kRows}) {
    PlanUnderTest plan = Zero(3, 3);
    plan.profile().data_parallel.shard_cut = cut;
    const ExecutionGraph graph = Compiled(plan);
    int64_t padded = 0, psi = 0;
    for (const Segment& segment : plan.graph().segments) {
      int64_t unit = 0;
      for (const TensorInfo& tensor : plan.graph().bodies[segment.body].tensors) {
        if (tensor.kind != TensorInfo::Kind::kParameter) continue;
        int64_t elements = 1;
        for (const int dim : tensor.dims) elements *= plan.graph().dims[dim].size;
        // Heads and their width are the rows of one matrix, or its columns.
        const auto size = [&](int dim) { return plan.graph().dims[dim].size; };
        const bool projects_in =
            tensor.dims.size() > 2 && plan.graph().dims[tensor.dims.back()].name == "hidden";
        const int64_t rows = projects_in ? elements / size(tensor.dims.back())
                             : tensor.dims.size() > 1 &&
                                     plan.graph().dims[tensor.dims[0]].name != "hidden" &&
                                     tensor.dims.size() > 2
                                 ? elements
                                 : size(tensor.dims[0]);
        psi += elements * segment.repeat;
        unit += cut == ShardCut::kRows   ? up(rows) * (elements / rows)
                : cut == ShardCut::kUnit ? elements
                                         : up(elements);
      }
      padded += up(unit) * segment.repeat;
    }
    EXPECT_GT(padded, psi);
    EXPECT_DOUBLE_EQ(Sent(graph)[kGather], 2.0 * 2 * static_cast<double>(padded) * 2 / 3);
    EXPECT_EQ(graph.programs[0].static_bytes[kParameters], 2 * padded / 3);
  }
}

// What DeepSpeed gathers is the ranks' parts side by side; a pass over them makes the parameters,
// forward and backward, and the parts are given up behind it.
TEST(ShardedWireTest, PartsAreJoinedBehindTheirGather) {
  PlanUnderTest plan = Zero(3, 4);
  plan.profile().data_parallel.shard_cut = ShardCut::kParameter;
  const ExecutionGraph flat = Compiled(plan);
  plan.profile().data_parallel.shard_cut = ShardCut::kJoined;
  const ExecutionGraph joined = Compiled(plan);
  EXPECT_EQ(Sent(joined), Sent(flat));
  for (const int kind : {kParameters, kGradients, kOptimizer}) {
    EXPECT_EQ(joined.programs[0].static_bytes[kind], flat.programs[0].static_bytes[kind]);
  }
  const int64_t layer = Parameters(SmallModel(3)) - Parameters(SmallModel(2));
  for (const char* const block : {"layer.F", "layer.B"}) {
    EXPECT_THAT(KernelsLabelled(flat, block, "layer.copy_out"), testing::IsEmpty());
    const std::vector<KernelSpec> copies = KernelsLabelled(joined, block, "layer.copy_out");
    ASSERT_EQ(copies.size(), 1) << block;
    EXPECT_EQ(copies[0].read_bytes, 2 * layer) << block;
    EXPECT_EQ(copies[0].write_bytes, 2 * layer) << block;
  }
  const KindBytes end = ReplayEvents(joined, 0).back().live;
  EXPECT_EQ(end.of[kParameters], joined.programs[0].static_bytes[kParameters]);
}

// --- State. ZeRO, figure 1: 2 Psi + 2 Psi + 12 Psi with gradients in 16 bits.

TEST(ShardedStateTest, EachStageSharesOneMore) {
  const int64_t psi = Parameters(SmallModel());
  for (const int64_t n : {2, 4, 8}) {
    for (const int stage : {0, 1, 2, 3}) {
      PlanUnderTest plan = Zero(stage, n);
      plan.profile().types.grad_dtype = DType::kBf16;
      plan.profile().update.zero_grad = true;
      const ExecutionGraph graph = Compiled(plan);
      const int64_t* bytes = graph.programs[0].static_bytes;
      EXPECT_EQ(bytes[kParameters], 2 * psi / (stage >= 3 ? n : 1));
      EXPECT_EQ(bytes[kGradients], 2 * psi / (stage >= 2 ? n : 1));
      EXPECT_EQ(bytes[kOptimizer], 12 * psi / (stage >= 1 ? n : 1));
    }
  }
}

TEST(ShardedStateTest, ShardsOfReplicasAreThoseOfTheirGroup) {
  const int64_t psi = Parameters(SmallModel());
  for (const int stage : {1, 2, 3}) {
    PlanUnderTest plan = Zero(stage, 8);
    plan.options().hsdp = 2;
    EXPECT_EQ(Compiled(plan).programs[0].static_bytes[kOptimizer], 12 * psi / 2);
  }
}

// FSDP with mixed precision: the fp32 shard is the parameter.
TEST(ShardedStateTest, TheMasterIsTheParameterAtRest) {
  const int64_t psi = Parameters(SmallModel());
  PlanUnderTest plan = Zero(3, 4);
  plan.profile().data_parallel.sharded_master = true;
  const ExecutionGraph graph = Compiled(plan);
  EXPECT_EQ(graph.programs[0].static_bytes[kParameters], 4 * psi / 4);
  EXPECT_EQ(graph.programs[0].static_bytes[kOptimizer], 8 * psi / 4);
  EXPECT_EQ(graph.programs[0].static_bytes[kGradients], 0);  // made in backward, then freed
}

// --- What lives for a while.

// Everything that is allocated is given up, and nothing before it was there.
TEST(ShardedMemoryTest, NothingIsLeftOver) {
  std::mt19937_64 random(TestSeed(20261123));
  const auto one_of = [&](std::vector<int64_t> choices) {
    return choices[random() % choices.size()];
  };
  for (int i = 0; i < 300; ++i) {
    PlanUnderTest plan =
        Zero(static_cast<int>(one_of({2, 3, 3})), one_of({2, 4, 6}), one_of({1, 2, 3, 5}), 8);
    PlanOptions& o = plan.options();
    const int64_t pp = one_of({1, 1, 2, 4}), vpp = pp > 1 ? one_of({1, 2}) : 1;
    plan.Pp(pp,
            pp == 1      ? Schedule::kNone
            : vpp > 1    ? Schedule::kInterleaved
            : i % 2 == 0 ? Schedule::k1f1b
                         : Schedule::kGpipe,
            vpp);
    plan.Recomputing(i % 3 == 0 ? Recompute::kFull : Recompute::kNone);
    o.reshard = one_of({0, 1, 1}) != 0;
    o.reshard_ranks = one_of({0, 0, 1, 2});
    o.hsdp = one_of({0, 0, 1, 2});
    if (o.hsdp > 0) o.reshard_ranks = 0;
    o.prefetch = one_of({0, 1, 1, 2, 3, 20});
    o.sync_each = one_of({0, 1}) != 0;
    plan.profile().data_parallel.shard_cut = static_cast<ShardCut>(one_of({0, 1, 2}));
    plan.profile().data_parallel.root_unit = one_of({0, 1}) != 0;
    if (i % 3 == 0) plan.profile().data_parallel.stays_through = i % 2 == 0;
    plan.profile().data_parallel.keeps_last_unit = one_of({0, 1}) != 0;
    plan.profile().update.zero_grad = one_of({0, 1}) != 0;
    plan.profile().kernels.fuse_wgrad_accumulation = one_of({0, 1}) != 0;
    if (i % 2 == 0) o.unit_layers = one_of({1, 1, 2, 3});
    if (i % 2 == 1) {
      plan.profile().update.fresh_gradients = one_of({0, 1}) != 0;
      plan.Tp(one_of({1, 2, 2}));
      if (one_of({0, 1}) != 0) plan.Sp();
      DrawHomes([&](uint64_t n) { return static_cast<int64_t>(random() % n); }, plan);
    }
    SCOPED_TRACE(testing::Message()
                 << i << " zero " << o.zero << " pp " << pp << " vpp " << vpp << " reshard "
                 << o.reshard << o.reshard_ranks << " prefetch " << o.prefetch << " unit "
                 << o.unit_layers << " sync " << o.sync_each << " cut "
                 << static_cast<int>(plan.profile().data_parallel.shard_cut) << " tree "
                 << plan.tree().ToJson());
    const ExecutionGraph graph = Compiled(plan);
    for (size_t p = 0; p < graph.programs.size(); ++p) {
      const std::vector<ReplayedEvent> events = ReplayEvents(graph, static_cast<int32_t>(p));
      for (int kind = 0; kind < kNumMemoryKinds; ++kind) {
        const int64_t at_rest = graph.programs[p].static_bytes[kind];
        for (const ReplayedEvent& event : events) ASSERT_GE(event.live.of[kind], at_rest) << kind;
        ASSERT_EQ(events.back().live.of[kind], at_rest) << kind;
      }
    }
    GraphWorkspace workspace;
    Session session;
    ASSERT_OK(workspace.Compile(plan.Request(), session));
    ASSERT_EQ(workspace.graph().DebugString(), graph.DebugString());
  }
}

// Besides the unit that computes, those ahead of it are gathered.
TEST(ShardedMemoryTest, AtMostOneMoreUnitThanThePrefetchIsGathered) {
  const TransformerConfig config = SmallModel(12), fewer = SmallModel(6);
  const int64_t layer = (Parameters(config) - Parameters(fewer)) / 6;
  for (const int64_t prefetch : {0, 1, 2, 4}) {
    PlanUnderTest plan = Zero(3, 4, 2, 12);
    plan.options().prefetch = prefetch;
    plan.profile().data_parallel.root_unit = true;
    const ExecutionGraph graph = Compiled(plan);
    const int64_t root = Parameters(config) - 12 * layer;
    int64_t most = 0;
    for (const ReplayedEvent& event : ReplayEvents(graph, 0)) {
      most = std::max(most, event.live.of[kParameters]);
    }
    EXPECT_EQ(most,
              graph.programs[0].static_bytes[kParameters] + 2 * (root + (prefetch + 1) * layer));
  }
}

// The data's own module has no backward tasks: what the one before it reduced from is given up
// there, and whoever waits for that reduction waits behind it.
TEST(ShardedMemoryTest, NothingIsLeftOverWhereTheFirstModuleHasNoGradients) {
  for (const ShardCut cut :
       {ShardCut::kParameter, ShardCut::kJoined, ShardCut::kUnit, ShardCut::kRows}) {
    for (const int zero : {2, 3}) {
      SCOPED_TRACE(testing::Message() << static_cast<int>(cut) << " zero " << zero);
      PlanUnderTest plan({{"seq", 16}, {"hidden", 64}});
      BodyWriter& data = plan.Segment("data");
      const int x = data.Input("x", DType::kCompute, {"batch", "seq", "hidden"});
      data.OutPort(data.Op1("load", "relu", {x}, {{"f", "hidden"}}));
      BodyWriter& body = plan.Segment("body");
      body.OutPort(body.Op1("fc", "linear", {body.InPort("x", {"batch", "seq", "hidden"})}));
      plan.Dp(4).MicroBatches(1, 2);
      plan.options().zero = zero;
      plan.options().sync_each = true;
      plan.profile().data_parallel.shard_cut = cut;
      const ExecutionGraph graph = Compiled(plan);
      EXPECT_EQ(BlockNamed(graph, "data.B").size(), 0);
      const KindBytes end = ReplayEvents(graph, 0).back().live;
      for (const int kind : {kParameters, kGradients}) {
        EXPECT_EQ(end.of[kind], graph.programs[0].static_bytes[kind]) << kind;
      }
    }
  }
}

// A layer of one product, by hand: h^2 parameters, and A bytes of activations that each
// layer keeps for its weight gradient.
TEST(ShardedMemoryTest, ThePeakOfProductsIsTheSumByHand) {
  PlanUnderTest plan({{"seq", 16}, {"hidden", 64}});
  BodyWriter& embed = plan.Segment("embed");
  const int x = embed.Input("x", DType::kCompute, {"batch", "seq", "hidden"});
  embed.OutPort(embed.Op1("act", "relu", {x}, {{"f", "hidden"}}));
  BodyWriter& layer = plan.Segment("layers", 5);
  layer.OutPort(layer.Op1("fc", "linear", {layer.InPort("x", {"batch", "seq", "hidden"})}));
  plan.Dp(4);
  plan.options().zero = 3;
  plan.options().sync_each = true;
  const int64_t p = 64 * 64, a = 16 * 64 * 2;
  const ExecutionGraph graph = Compiled(plan);
  int64_t most[kNumMemoryKinds] = {};
  for (const ReplayedEvent& event : ReplayEvents(graph, 0)) {
    for (int kind = 0; kind < kNumMemoryKinds; ++kind) {
      most[kind] = std::max(most[kind], event.live.of[kind]);
    }
  }
  // Two layers gathered; five shards at rest.
  EXPECT_EQ(most[kParameters], 2 * 2 * p + 5 * 2 * p / 4);
  // The last layer to run backward: its gradient and what is reduced from it (fp32),
  // after the shards of all others; what was reduced before is given up by then.
  EXPECT_EQ(most[kGradients], std::max(4 * p + 2 * p + 4 * 4 * p / 4, 4 * p + 5 * 4 * p / 4));
  // The inputs of five layers, and of the last the gradients of its result and its input.
  EXPECT_EQ(most[static_cast<int>(MemoryKind::kActivations)], 7 * a);
}

// --- Structure.

TEST(ShardedStructureTest, NeitherLayersNorRanksAddBlocksOrInstances) {
  for (const int64_t prefetch : {0, 1, 3}) {
    const auto counts = [&](int64_t layers, int64_t dp) {
      PlanUnderTest plan = Zero(3, dp, 3, layers);
      plan.options().prefetch = prefetch;
      const ExecutionGraph graph = Compiled(plan);
      return std::make_pair(graph.blocks.size(), graph.programs[0].instances.size());
    };
    EXPECT_EQ(counts(12, 2), counts(24, 2));
    EXPECT_EQ(counts(12, 2), counts(12, 16));
  }
}

TEST(ShardedStructureTest, GathersAndReductionsAreInTheBlocksOfLayers) {
  PlanUnderTest plan = Zero(3, 4);
  const ExecutionGraph graph = Compiled(plan);
  const Block& forward = BlockNamed(graph, "layer.F");
  const Block& backward = BlockNamed(graph, "layer.B");
  EXPECT_THAT(forward.label, testing::Contains("all_gather layer").Times(1));
  EXPECT_THAT(backward.label, testing::Contains("all_gather layer").Times(1));
  EXPECT_EQ(backward.label.back(), "reduce_scatter d layer");
}

}  // namespace
}  // namespace plancast
