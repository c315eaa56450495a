// Mixtures of experts under ep and etp: what moves, what every rank holds.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/moe_layer.h"
#include "tests/compiler/plan_under_test.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

constexpr int64_t kBf16 = 2, kFp32 = 4;
constexpr MoeSizes kSizes;
constexpr int64_t kExpertWeights = 3 * kSizes.hidden * kSizes.ffn;
constexpr int64_t kAllExperts = kSizes.experts * kExpertWeights;
constexpr int64_t kRouter = kSizes.experts * kSizes.hidden;
// The tokens of one sample, each as often as it has experts.
constexpr int64_t kRouted = kBf16 * kSizes.seq * kSizes.topk * kSizes.hidden;
constexpr int64_t kLayers = 2;

PlanUnderTest Moe() {
  PlanUnderTest plan(kSizes.Dims());
  BodyWriter& body = plan.Segment("layers", kLayers);
  body.OutPort(WriteMoeLayer(body, body.InPort("x", {"batch", "seq", "hidden"})));
  return plan;
}

std::vector<std::string> Twice(const std::string& move) { return {move, move}; }

// Parameters, bytes of gradients and of optimizer state of a rank.
std::vector<int64_t> StateOfRank(PlanUnderTest& plan) {
  const ExecutionGraph graph = *plan.Compile();
  const Program& program = graph.programs[0];
  auto bytes = [&](MemoryKind kind) { return program.static_bytes[static_cast<int>(kind)]; };
  return {bytes(MemoryKind::kParameters) / kBf16, bytes(MemoryKind::kGradients),
          bytes(MemoryKind::kOptimizer)};
}

std::vector<int64_t> State(int64_t parameters, int64_t kept) {
  return {kLayers * parameters, kLayers * parameters * kFp32, kLayers * kept * 12};
}

TEST(ExpertParallelTest, OverAllRanksMovesTokensTwiceEachWay) {
  PlanUnderTest plan = Moe();
  plan.Dp(4).Ep(4);
  const Moves moves = plan.Traffic();
  EXPECT_EQ(moves.forward, Twice(AllToAll("dp", kRouted)));
  EXPECT_EQ(moves.backward, Twice(AllToAll("dp", kRouted)));
  // Every expert is where it is; the router is everywhere.
  EXPECT_THAT(moves.gradients, ElementsAre(AllReduce("dp", kLayers * kFp32 * kRouter)));
  EXPECT_EQ(StateOfRank(plan), State(kRouter + kAllExperts / 4, kRouter + kAllExperts / 4));
}

// The largest event of tensor `name` in any block: bytes.
int64_t Largest(const ExecutionGraph& graph, const std::string& name) {
  int64_t most = 0;
  for (const Block& block : graph.blocks) {
    for (const MemoryEvent& e : block.memory) {
      if (block.tensors[e.tensor] == name) most = std::max(most, e.delta);
    }
  }
  return most;
}

// FSDP2 is told to ignore experts that ep cuts over all ranks: they are used as they are, and their
// gradients stay in their type where those that are reduced later are kept in fp32.
TEST(ExpertParallelTest, RowsLeaveOutWhatIsSharedWithNone) {
  PlanUnderTest plan = Moe();
  plan.Dp(4).Ep(4).MicroBatches(1, 2);
  plan.options().zero = 3;
  plan.options().sync_each = false;
  plan.profile().data_parallel.shard_cut = ShardCut::kRows;
  plan.profile().types.reduce_dtype = DType::kFp32;
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, plan.Compile());
  EXPECT_EQ(Largest(graph, "layers gathered"), kBf16 * kRouter);
  EXPECT_EQ(Largest(graph, "d layers to reduce"), kFp32 * kRouter);
  // Cast before they are used, they are wrapped, too.
  plan.profile().data_parallel.sharded_master = plan.profile().types.master_weights = true;
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph cast, plan.Compile());
  EXPECT_EQ(Largest(cast, "layers gathered"), kBf16 * (kRouter + kAllExperts / 4));
}

TEST(ExpertParallelTest, SoftwareThatSendsATokenOnceSaysHowManyCopiesItWouldBe) {
  for (const bool once : {false, true}) {
    PlanUnderTest plan = Moe();
    plan.Dp(4).Ep(4);
    plan.profile().experts.dispatch_sends_once = once;
    plan.profile().experts.deals_tokens = true;
    plan.profile().experts.dispatch_sms = 20;
    const ExecutionGraph graph = *plan.Compile();
    int exchanges = 0;
    for (const CommSpec& comm : graph.comms) {
      if (comm.kind != CollectiveKind::kAllToAll) continue;
      EXPECT_EQ(comm.copies.each, once ? kSizes.topk : 1);
      EXPECT_EQ(comm.copies.groups, 1);
      EXPECT_EQ(comm.copies.dealt, once ? kSizes.experts : 0);
      EXPECT_EQ(comm.sms, once ? 20 : 0);
      ++exchanges;
    }
    EXPECT_GT(exchanges, 0);
  }
}

TEST(ExpertParallelTest, MovesAsManyTokensWithMoreSamples) {
  PlanUnderTest plan = Moe();
  plan.Dp(4).Ep(4).MicroBatches(3, 2);
  EXPECT_EQ(plan.Traffic().forward, Twice(AllToAll("dp", 3 * kRouted)));
}

TEST(ExpertParallelTest, OverAPartOfTheRanksReducesTheExpertsOverTheRest) {
  PlanUnderTest plan = Moe();
  plan.Dp(8).Ep(2);
  const Moves moves = plan.Traffic();
  EXPECT_EQ(moves.forward, Twice(AllToAll("dp.1", kRouted)));
  EXPECT_EQ(moves.backward, Twice(AllToAll("dp.1", kRouted)));
  EXPECT_THAT(moves.gradients, ElementsAre(AllReduce("dp.0*dp.1", kLayers * kFp32 * kRouter),
                                           AllReduce("dp.0", kLayers * kFp32 * kAllExperts / 2)));
}

TEST(ExpertParallelTest, ZeroOneShardsTheStateOfExpertsOverTheirCopies) {
  PlanUnderTest plan = Moe();
  plan.Dp(8).Ep(2).Zero1();
  EXPECT_EQ(StateOfRank(plan), State(kRouter + kAllExperts / 2, kRouter / 8 + kAllExperts / 2 / 4));
  const Moves moves = plan.Traffic();
  EXPECT_THAT(moves.gradients,
              UnorderedElementsAre(ReduceScatter("dp.0*dp.1", kLayers * kFp32 * kRouter),
                                   ReduceScatter("dp.0", kLayers * kFp32 * kAllExperts / 2),
                                   AllGather("dp.0*dp.1", kLayers * kBf16 * kRouter),
                                   AllGather("dp.0", kLayers * kBf16 * kAllExperts / 2)));
  PlanUnderTest whole = Moe();
  whole.Dp(8).Ep(8).Zero1();
  EXPECT_EQ(StateOfRank(whole), State(kRouter + kAllExperts / 8, kRouter / 8 + kAllExperts / 8));
}

// etp = tp: every expert is cut like any feed-forward layer. Its tokens, cut over
// tp by the sequence, are gathered there and its results scattered.
TEST(ExpertParallelTest, WithinTensorParallelismGathersOverIt) {
  PlanUnderTest plan = Moe();
  plan.Dp(4).Tp(2).Sp().Ep(4);
  const Moves moves = plan.Traffic();
  const std::vector<std::string> there = {AllToAll("dp", kRouted / 2), AllGather("tp", kRouted)};
  const std::vector<std::string> back = {ReduceScatter("tp", kRouted), AllToAll("dp", kRouted / 2)};
  EXPECT_THAT(moves.forward, ElementsAre(there[0], there[1], back[0], back[1]));
  EXPECT_THAT(moves.backward, ElementsAre(there[0], there[1], back[0], back[1]));
  EXPECT_EQ(StateOfRank(plan), State(kRouter + kAllExperts / 8, kRouter + kAllExperts / 8));
}

// Over cp and dp no standard form leads from slots that cp and tp cut to experts whose tokens all
// of tp reads. A part of each copy comes from afar, and tp gathers them; software whose kernels
// send each copy by itself (DeepEP) sends all.
TEST(ExpertParallelTest, NoCopyComesFromAfarTwice) {
  PlanUnderTest plan = Moe();
  plan.Dp(2).Cp(2).Tp(2).Sp().Ep(4);
  const std::vector<std::string> there = {AllToAll("dp*cp", kRouted / 4),
                                          AllGather("tp", kRouted / 2)};
  Moves moves = plan.Traffic();
  for (const std::vector<std::string>& pass : {moves.forward, moves.backward}) {
    ASSERT_GE(pass.size(), 2u);
    EXPECT_THAT(std::vector(pass.begin(), pass.begin() + 2), ElementsAre(there[0], there[1]));
  }
  plan.profile().experts.dispatch_sends_once = true;
  EXPECT_THAT(plan.Traffic().forward[0], StartsWith("all_to_all(dp*cp*tp)"));
}

// etp = 1: whole experts on every rank of tp and dp. The tokens of both move in
// one exchange, and nothing is gathered.
TEST(ExpertParallelTest, WithWholeExpertsExchangesOverTensorAndDataRanks) {
  PlanUnderTest plan = Moe();
  plan.Dp(4).Tp(2).Sp().Ep(8).Etp(1);
  const Moves moves = plan.Traffic();
  EXPECT_EQ(moves.forward, Twice(AllToAll("dp*tp", kRouted / 2)));
  EXPECT_EQ(moves.backward, Twice(AllToAll("dp*tp", kRouted / 2)));
  EXPECT_THAT(moves.gradients, UnorderedElementsAre(AllReduce("dp", kLayers * kFp32 * kRouter),
                                                    AllReduce("tp", kLayers * kFp32 * kRouter)));
  EXPECT_EQ(StateOfRank(plan), State(kRouter + kAllExperts / 8, kRouter + kAllExperts / 8));
}

// ep runs over tp first and then over the inner part of dp.
TEST(ExpertParallelTest, WithWholeExpertsLeavesTheOuterDataRanks) {
  PlanUnderTest plan = Moe();
  plan.Dp(4).Tp(2).Sp().Ep(4).Etp(1);
  EXPECT_EQ(plan.Traffic().forward, Twice(AllToAll("dp.1*tp", kRouted / 2)));
  EXPECT_THAT(plan.Traffic().gradients,
              UnorderedElementsAre(AllReduce("dp.0*dp.1", kLayers * kFp32 * kRouter),
                                   AllReduce("dp.0", kLayers * kFp32 * kAllExperts / 4),
                                   AllReduce("tp", kLayers * kFp32 * kRouter)));
  PlanUnderTest inside = Moe();
  inside.Dp(4).Tp(4).Sp().Ep(2).Etp(1);
  EXPECT_EQ(inside.Traffic().forward, Twice(AllToAll("tp.1", kRouted / 4)));
}

// Without experts to exchange every rank of tp works on its slots with all weights.
TEST(ExpertParallelTest, WithoutEpWholeExpertsAreCopied) {
  PlanUnderTest plan = Moe();
  plan.Dp(2).Tp(2).Sp().Etp(1);
  EXPECT_THAT(plan.Traffic().forward, IsEmpty());
  EXPECT_EQ(StateOfRank(plan), State(kRouter + kAllExperts, kRouter + kAllExperts));
}

// Without sequence parallelism every rank of tp has all tokens: their copies go the
// same way. The sum over tp goes back in halves, which takes least.
TEST(ExpertParallelTest, WithoutSequenceParallelismTokensMoveInCopies) {
  PlanUnderTest plan = Moe();
  plan.Dp(4).Tp(2).Ep(4);
  EXPECT_THAT(plan.Traffic().forward,
              ElementsAre(AllToAll("dp", kRouted), ReduceScatter("tp", kRouted),
                          AllToAll("dp", kRouted / 2), AllGather("tp", kRouted)));
}

// Experts cut over ranks that all have the tokens: no exchange, and the sum of what
// the experts give is an all-reduce.
TEST(ExpertParallelTest, ByHandOverTensorRanksOwesTheSum) {
  PlanUnderTest plan = Moe();
  plan.Tp(4).ByHand();
  for (const char* op : {"dispatch", "experts", "combine"}) {
    plan.Split(std::string("layers.*.mlp.") + op, "tp", {"experts"});
  }
  const int64_t stream = kBf16 * kSizes.seq * kSizes.hidden;
  EXPECT_THAT(plan.Traffic().forward, ElementsAre(AllReduce("tp", stream)));
}

TEST(ExpertParallelTest, ByHandIsWhatTheShortFormSays) {
  PlanUnderTest said = Moe();
  said.Dp(4).Ep(2);
  PlanUnderTest by_hand = Moe();
  by_hand.Dp(4).Ep(2);
  by_hand.Split("", "ep", {}).Split("layers.*.mlp.experts", "ep", {"experts"});
  EXPECT_EQ(said.Traffic().forward, by_hand.Traffic().forward);
  EXPECT_EQ(said.Traffic().gradients, by_hand.Traffic().gradients);
}

// The results of the exchange are kept, not exchanged again in the backward pass;
// both inputs of the activation and the products' inputs are kept in their shards.
TEST(ExpertParallelTest, KeepsWhatTheExpertsRead) {
  PlanUnderTest plan = Moe();
  plan.Dp(4).Tp(2).Sp().Ep(4);
  const ExecutionGraph graph = *plan.Compile();
  int64_t kept = 0;
  for (const MemoryEvent& event : BlockNamed(graph, "layers.F").memory) {
    if (event.kind == MemoryKind::kActivations) kept += event.delta;
  }
  const int64_t tokens = kSizes.seq, half = tokens / 2;
  const int64_t experts = kRouted                                              // d, gathered
                          + 3 * kBf16 * tokens * kSizes.topk * kSizes.ffn / 2  // gate, up, act
                          + kRouted / 2;                                       // o
  // p and g; the row sums of the softmax; y of the layer, which the next one reads.
  const int64_t router = 2 * kFp32 * half * kSizes.experts + kFp32 * half;
  EXPECT_EQ(kept, experts + router + kBf16 * half * kSizes.hidden);
}

TEST(ExpertParallelTest, ExchangesCountAsExpertParallelism) {
  const ExecutionGraph graph = *Moe().Dp(4).Tp(2).Sp().Ep(8).Etp(1).Compile();
  const Block& block = BlockNamed(graph, "layers.F");
  int exchanges = 0;
  for (int32_t t = 0; t < block.size(); ++t) exchanges += block.purpose[t] == Purpose::kEp;
  EXPECT_EQ(exchanges, 2);
}

// One grouped product a matrix: local experts, rows of all samples in an expert.
TEST(ExpertParallelTest, ProductsAreBatchesOfLocalExperts) {
  const ExecutionGraph graph = *Moe().Dp(4).Ep(4).MicroBatches(3, 1).Compile();
  std::vector<std::vector<int64_t>> products;
  for (const KernelSpec& kernel : graph.kernels) {
    if (kernel.family != KernelFamily::kGemm || kernel.batch == 1) continue;
    if (kernel.pass == GemmPass::kForward) {
      products.push_back({kernel.batch, kernel.m, kernel.n, kernel.k});
    }
  }
  const int64_t rows = 4 * 3 * kSizes.slots();
  EXPECT_THAT(products, ElementsAre(ElementsAre(2, rows, 2 * kSizes.ffn, kSizes.hidden),
                                    ElementsAre(2, rows, kSizes.hidden, kSizes.ffn)));
}

// Transformer Engine launches the product of each expert alone; torch's grouped product is one.
TEST(ExpertProductsTest, AreLaunchedOneByOneUnlessTheProfileGroupsThem) {
  for (const bool grouped : {false, true}) {
    PlanUnderTest plan = Moe();
    if (grouped) plan.profile().kernels.fusions.insert("grouped_products");
    const ExecutionGraph graph = *plan.Compile();
    int products = 0;
    for (const KernelSpec& kernel : graph.kernels) {
      if (kernel.family != KernelFamily::kGemm || kernel.batch != kSizes.experts) continue;
      EXPECT_EQ(kernel.launches, grouped ? 1 : kSizes.experts) << kernel.DebugString();
      ++products;
    }
    EXPECT_EQ(products, 6);  // forward, dgrad and wgrad of both layers
  }
}

}  // namespace
}  // namespace plancast
