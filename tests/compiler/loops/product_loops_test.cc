// Products beside collectives of tensor parallelism, by every transport: closed forms of what is
// sent, of kernels and of what waits for what; results on symbols; folded equals flat.

#include "compiler/loops/product_loops.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/plan_bodies.h"
#include "executor/executor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/body/plan_oracle.h"
#include "tests/compiler/compiled_graph.h"
#include "tests/compiler/folded_against_reference.h"
#include "tests/compiler/plan_under_test.h"
#include "tests/testing/seed.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::SizeIs;
using Way = PartTransport::Way;

constexpr int64_t kSeq = 512, kHidden = 1024, kSamples = 2;
constexpr int64_t kStream = kSamples * kSeq * kHidden * 2;  // bytes

// Which steps of a layer have which transport; others run whole.
TpTransports Only(PartTransport TpTransports::*which, PartTransport how) {
  TpTransports transports;
  transports.gather = transports.scatter = transports.gradient_gather = {};
  transports.*which = how;
  return transports;
}

PlanUnderTest With(const TpTransports& transports, int64_t ranks,
                   const TransformerConfig& config = SmallGpt()) {
  PlanUnderTest plan = PlanUnderTest::Of(config);
  plan.Tp(ranks).Sp().MicroBatches(kSamples, 1);
  plan.options().overlap = {Overlap::kTp};
  plan.profile().kernels.tp_transports = transports;
  return plan;
}

// The communications over tp of a block, by kind.
std::map<CollectiveKind, std::vector<CommSpec>> CommsIn(const ExecutionGraph& graph,
                                                        absl::string_view name) {
  std::map<CollectiveKind, std::vector<CommSpec>> comms;
  const Block& block = BlockNamed(graph, name);
  for (int t = 0; t < block.size(); ++t) {
    if (block.kind[t] != TaskKind::kComm || block.purpose[t] != Purpose::kTp) continue;
    comms[graph.comms[block.spec[t]].kind].push_back(graph.comms[block.spec[t]]);
  }
  return comms;
}

// Bytes that a rank receives over tp in a block.
double Received(const ExecutionGraph& graph, absl::string_view name) {
  double bytes = 0;
  for (const auto& [kind, comms] : CommsIn(graph, name)) {
    for (const CommSpec& comm : comms) {
      const double n = static_cast<double>(graph.mesh.SizeOf(comm.axes));
      bytes +=
          static_cast<double>(comm.bytes) * (kind == CollectiveKind::kPermute ? 1 : (n - 1) / n);
    }
  }
  return bytes;
}

// The tasks of a block with this label, and what a task waits for.
std::vector<int> Labelled(const Block& block, absl::string_view label) {
  std::vector<int> tasks;
  for (int t = 0; t < block.size(); ++t) {
    if (block.label[t] == label) tasks.push_back(t);
  }
  return tasks;
}
std::vector<int> DepsOf(const Block& block, int t) {
  return {block.deps.begin() + block.dep_begin[t], block.deps.begin() + block.dep_begin[t + 1]};
}

TEST(ProductLoopsTest, ARingHandsOnTheParts) {
  for (const int64_t ranks : {2, 4, 8}) {
    const ExecutionGraph graph =
        Compiled(With(Only(&TpTransports::gather, {Way::kRing, 0, true}), ranks));
    auto comms = CommsIn(graph, "layer.F");
    // Before qkv and fc1, of each part but a rank's own.
    ASSERT_THAT(comms[CollectiveKind::kPermute], SizeIs(2 * (ranks - 1)));
    EXPECT_THAT(comms[CollectiveKind::kPermute], Each(Field(&CommSpec::bytes, kStream / ranks)));
    EXPECT_THAT(comms[CollectiveKind::kPermute], Each(Field(&CommSpec::policy, "copy")));
    EXPECT_TRUE(comms[CollectiveKind::kAllGather].empty());
    EXPECT_THAT(comms[CollectiveKind::kReduceScatter], SizeIs(2));
    const auto kernels = KernelsLabelled(graph, "layer.F", "mlp.fc1");
    ASSERT_THAT(kernels, SizeIs(ranks));
    EXPECT_THAT(kernels, Each(Field(&KernelSpec::m, kSamples * kSeq / ranks)));
  }
}

TEST(ProductLoopsTest, AStepWaitsForItsPartAndAMessageForTheOneBefore) {
  const ExecutionGraph graph = Compiled(With(Only(&TpTransports::gather, {Way::kRing}), 4));
  const Block& block = BlockNamed(graph, "layer.F");
  const std::vector<int> messages = Labelled(block, "all_gather mlp.norm.y");
  const std::vector<int> products = Labelled(block, "mlp.fc1");
  ASSERT_THAT(messages, SizeIs(3));
  ASSERT_THAT(products, SizeIs(4));
  for (int i = 1; i < 4; ++i) {
    EXPECT_THAT(DepsOf(block, products[i]), Contains(messages[i - 1]));
    if (i > 1) {
      EXPECT_THAT(DepsOf(block, messages[i - 1]), ElementsAre(messages[i - 2]));
    }
  }
  // Its own rows are there.
  for (const int message : messages) {
    EXPECT_THAT(DepsOf(block, products[0]), ::testing::Not(Contains(message)));
  }
}

TEST(ProductLoopsTest, PeersSendOnceTheirOwnPartIsStaged) {
  const ExecutionGraph graph =
      Compiled(With(Only(&TpTransports::gather, {Way::kPeers, 0, true, true}), 4));
  const Block& block = BlockNamed(graph, "layer.F");
  const std::vector<int> messages = Labelled(block, "all_gather mlp.norm.y");
  const std::vector<int> tasks = Labelled(block, "mlp.fc1");  // the copy first
  ASSERT_THAT(messages, SizeIs(3));
  ASSERT_THAT(tasks, SizeIs(5));
  EXPECT_EQ(graph.kernels[block.spec[tasks[0]]].label, "stage_part");
  EXPECT_EQ(graph.kernels[block.spec[tasks[0]]].read_bytes, kStream / 4);
  for (const int message : messages) EXPECT_THAT(DepsOf(block, message), ElementsAre(tasks[0]));
}

TEST(ProductLoopsTest, PeersSumWhatHasCome) {
  for (const int64_t ranks : {2, 4, 8}) {
    const ExecutionGraph graph =
        Compiled(With(Only(&TpTransports::scatter, {Way::kPeers, 0, true}), ranks));
    auto comms = CommsIn(graph, "layer.F");
    EXPECT_THAT(comms[CollectiveKind::kPermute], SizeIs(2 * (ranks - 1)));  // of proj and fc2
    EXPECT_THAT(comms[CollectiveKind::kPermute], Each(Field(&CommSpec::bytes, kStream / ranks)));
    EXPECT_TRUE(comms[CollectiveKind::kReduceScatter].empty());
    const auto kernels = KernelsLabelled(graph, "layer.F", "mlp.fc2");
    ASSERT_FALSE(kernels.empty());
    EXPECT_EQ(kernels.back().label, "part_sum");
    EXPECT_EQ(kernels.back().read_bytes, kStream);
    EXPECT_EQ(kernels.back().write_bytes, kStream / ranks);
  }
}

// A slow kernel takes as long as if it moved more.
TEST(ProductLoopsTest, SumsRunAtARateOfTheirOwn) {
  PartTransport slow = {Way::kPeers, 0, true};
  slow.sum_rate = 0.5;
  const ExecutionGraph graph = Compiled(With(Only(&TpTransports::scatter, slow), 4));
  const auto kernels = KernelsLabelled(graph, "layer.F", "mlp.fc2");
  ASSERT_FALSE(kernels.empty());
  EXPECT_EQ(kernels.back().label, "part_sum");
  EXPECT_EQ(kernels.back().read_bytes, 2 * kStream);
  EXPECT_EQ(kernels.back().write_bytes, 2 * kStream / 4);
}

// Where software gathers along the first dim and parts are of the second, whoever reads a gathered
// gradient beside the product in the loop, that of the weights, takes a copy, behind the loop.
TEST(ProductLoopsTest, WhatLiesPartByPartIsCopiedForOthers) {
  const auto copies = [](int64_t samples, bool first_dim) {
    PlanUnderTest plan = With(Only(&TpTransports::gradient_gather, {Way::kPeers, 0, true}), 4);
    plan.MicroBatches(samples, 1).profile().kernels.first_dim_collectives = first_dim;
    const ExecutionGraph graph = Compiled(std::move(plan));
    const Block& block = BlockNamed(graph, "layer.B");
    std::vector<double> bytes;
    for (const char* product : {"mlp.fc2.bwd", "attn.proj.bwd"}) {
      const std::vector<int> tasks = Labelled(block, product);
      for (const int t : tasks) {
        const KernelSpec& kernel = graph.kernels[block.spec[t]];
        if (kernel.label != "copy_out") continue;
        EXPECT_EQ(t, tasks.back());
        EXPECT_EQ(kernel.read_bytes, kernel.write_bytes);
        bytes.push_back(kernel.read_bytes);
      }
    }
    return bytes;
  };
  EXPECT_THAT(copies(kSamples, true), ElementsAre(kStream, kStream));
  EXPECT_THAT(copies(1, true), ElementsAre());  // parts follow one another
  EXPECT_THAT(copies(kSamples, false), ElementsAre());
}

TEST(ProductLoopsTest, WhatNobodyElseReadsIsNotCopied) {
  PlanUnderTest plan = With(Only(&TpTransports::gather, {Way::kPeers, 0, true}), 4);
  plan.profile().kernels.first_dim_collectives = true;
  const ExecutionGraph graph = Compiled(std::move(plan));
  // The norm's shard is what is kept for the backward pass.
  EXPECT_THAT(KernelsLabelled(graph, "layer.F", "mlp.fc1"),
              Each(Field(&KernelSpec::label, ::testing::Ne("copy_out"))));
}

TEST(ProductLoopsTest, CollectivesAreCutInAsManyAsAreSaid) {
  const ExecutionGraph graph =
      Compiled(With(Only(&TpTransports::scatter, {Way::kCollective, 4}), 8));
  auto comms = CommsIn(graph, "layer.F");
  ASSERT_THAT(comms[CollectiveKind::kReduceScatter], SizeIs(2 * 4));
  EXPECT_THAT(comms[CollectiveKind::kReduceScatter], Each(Field(&CommSpec::bytes, kStream / 4)));
  EXPECT_THAT(KernelsLabelled(graph, "layer.F", "mlp.fc2"), SizeIs(testing::Ge(4)));
}

// What comes is read by products of weight gradients as well, once all of it is there.
TEST(ProductLoopsTest, WeightGradientsStayWhole) {
  const TpTransports ring = Only(&TpTransports::gradient_gather, {Way::kRing});
  const ExecutionGraph whole = Compiled(With(Only(&TpTransports::gather, {}), 4));
  const ExecutionGraph parts = Compiled(With(ring, 4));
  const auto weights = [](const ExecutionGraph& graph) {
    std::vector<int64_t> rows;
    const Block& block = BlockNamed(graph, "layer.B");
    for (int t = 0; t < block.size(); ++t) {
      if (block.kind[t] != TaskKind::kKernel) continue;
      const KernelSpec& kernel = graph.kernels[block.spec[t]];
      if (kernel.family == KernelFamily::kGemm && kernel.pass == GemmPass::kWgrad) {
        rows.push_back(kernel.k);
      }
    }
    return rows;
  };
  EXPECT_EQ(weights(whole), weights(parts));
  auto comms = CommsIn(parts, "layer.B");
  EXPECT_THAT(comms[CollectiveKind::kPermute], SizeIs(2 * 3));  // before proj and fc2
}

TEST(ProductLoopsTest, GradientsLeaveInPartsBehindASingleProduct) {
  const ExecutionGraph graph =
      Compiled(With(Only(&TpTransports::gradient_scatter, {Way::kPeers}), 4));
  auto comms = CommsIn(graph, "layer.B");
  // Of fc1; three gradients of qkv's input are summed before.
  EXPECT_THAT(comms[CollectiveKind::kPermute], SizeIs(3));
}

TEST(ProductLoopsTest, WithoutAutogradGathersRunWhole) {
  TpTransports transports = Only(&TpTransports::gather, {Way::kRing});
  const auto permutes = [&] {
    PlanUnderTest plan = With(transports, 4);
    plan.Recomputing(Recompute::kFull);
    const ExecutionGraph graph = Compiled(std::move(plan));
    return std::make_pair(CommsIn(graph, "layer.F")[CollectiveKind::kPermute].size(),
                          CommsIn(graph, "layer.B")[CollectiveKind::kPermute].size());
  };
  EXPECT_EQ(permutes(), std::make_pair(size_t{6}, size_t{6}));
  transports.gather.only_with_grad = true;
  EXPECT_EQ(permutes(), std::make_pair(size_t{0}, size_t{6}));
}

TpTransports Drawn(Dice& dice) {
  const auto way = [&] {
    PartTransport drawn;
    drawn.way = dice.Of<Way>({Way::kWhole, Way::kCollective, Way::kRing, Way::kPeers});
    if (drawn.way == Way::kCollective) drawn.pieces = dice.Of<int64_t>({0, 2, 4});
    drawn.copy_engines = drawn.sends() && dice.Maybe(2);
    drawn.staged = dice.Maybe(2);
    if (drawn.way == Way::kPeers) drawn.sum_rate = dice.Of<double>({1, 0.5});
    drawn.only_with_grad = dice.Maybe(3);
    return drawn;
  };
  TpTransports transports;
  transports.gather = way();
  transports.scatter = way();
  transports.gradient_gather = way();
  transports.gradient_scatter = way();
  return transports;
}

// Bytes, products and memory are those of whole collectives, by whatever transport.
TEST(ProductLoopsTest, TransportsMoveWhatCollectivesMove) {
  const uint64_t seed = TestSeed(3);
  Dice dice(static_cast<uint32_t>(seed));
  const auto flops = [](const ExecutionGraph& graph, absl::string_view name) {
    double sum = 0;
    const Block& block = BlockNamed(graph, name);
    for (int t = 0; t < block.size(); ++t) {
      if (block.kind[t] != TaskKind::kKernel) continue;
      const KernelSpec& kernel = graph.kernels[block.spec[t]];
      if (kernel.family == KernelFamily::kGemm) sum += kernel.flops;
    }
    return sum;
  };
  for (int i = 0; i < 30 && !HasFailure(); ++i) {
    const int64_t ranks = dice.Of<int64_t>({2, 4, 8});
    SCOPED_TRACE(absl::StrCat("seed ", seed, ", plan ", i));
    PlanUnderTest plan = With(Drawn(dice), ranks), plain = With({}, ranks);
    plain.options().overlap.clear();
    const ExecutionGraph parts = Compiled(std::move(plan)), whole = Compiled(std::move(plain));
    for (const char* name : {"layer.F", "layer.B", "head.F", "head.B"}) {
      EXPECT_DOUBLE_EQ(Received(parts, name), Received(whole, name)) << name;
      EXPECT_NEAR(flops(parts, name), flops(whole, name), 1e-9 * flops(whole, name)) << name;
    }
    RuntimeParams params;
    EXPECT_EQ(ReplayMemory(parts, params)[0].allocated, ReplayMemory(whole, params)[0].allocated);
  }
}

TransformerConfig Tiny(Dice& dice, int64_t layers) {
  TransformerConfig config = dice.Maybe(2) ? SmallGpt() : SmallLlama();
  config.layers = layers;
  config.hidden = 8;
  config.heads = config.kv_heads = 4;
  config.head_dim = 2;
  config.ffn = 8;
  config.vocab = 8;
  config.seq = config.max_positions = 8;
  return config;
}

TEST(ProductLoopsTest, BodiesEqualOneDevice) {
  const uint64_t seed = TestSeed(5);
  Dice dice(static_cast<uint32_t>(seed));
  size_t loops = 0;
  for (int i = 0; i < 20 && !HasFailure(); ++i) {
    PlanUnderTest plan = With(Drawn(dice), dice.Of<int64_t>({2, 4}), Tiny(dice, 1));
    plan.Dp(dice.Of<int64_t>({1, 2})).MicroBatches(1, 1);
    if (dice.Maybe(3)) plan.Recomputing(Recompute::kFull);
    SCOPED_TRACE(absl::StrCat("seed ", seed, ", plan ", i));
    Session session;
    const auto compiled = CompileBodies(plan.Request(), session, nullptr);
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    const BoundModel& bound = (*compiled)->bound;
    for (size_t b = 0; b < bound.bodies.size() && !HasFailure(); ++b) {
      const BodyPlan& body = (*compiled)->bodies[b]->plan;
      EXPECT_EQ(PlanOracle(bound.graph, bound.mesh, bound.bodies[b], body, seed + i).Check(), "");
      loops += body.loops.size();
    }
  }
  EXPECT_GT(loops, 0);
}

TEST(ProductLoopsTest, FoldedEqualsFlat) {
  const uint64_t seed = TestSeed(11);
  Dice dice(static_cast<uint32_t>(seed));
  for (int i = 0; i < 8 && !HasFailure(); ++i) {
    SCOPED_TRACE(absl::StrCat("seed ", seed, ", plan ", i));
    PlanUnderTest plan = With(Drawn(dice), dice.Of<int64_t>({2, 4}), Tiny(dice, 4));
    plan.Dp(dice.Of<int64_t>({1, 2})).Pp(dice.Of<int64_t>({1, 2})).MicroBatches(1, 3);
    const absl::StatusOr<ExecutionGraph> graph = CompileWithTimes(plan);
    ASSERT_TRUE(graph.ok()) << graph.status();
    ExpectFoldedEqualsFlat(dice, *graph);
  }
}

}  // namespace
}  // namespace plancast
