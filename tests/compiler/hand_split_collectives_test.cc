// Any split of any op by hand gives the collectives that theory owes: 2-D and
// 3-D matrix products, norms and softmax over the reduced factor, attention
// over positions, chains whose layouts agree or not, key heads fewer than
// ranks.

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/plan_under_test.h"

namespace plancast {
namespace {

using ::testing::IsEmpty;
using ::testing::UnorderedElementsAreArray;

constexpr int64_t kBatch = 2, kSeq = 16, kHidden = 64, kFfn = 256, kHeadDim = 8;
constexpr int64_t kBf16 = 2, kFp32 = 4;
constexpr int64_t kTokens = kBatch * kSeq;
constexpr int64_t kStream = kBf16 * kTokens * kHidden;
constexpr int64_t kStatistic = kFp32 * kTokens;  // a number per token

using Collectives = std::vector<std::string>;

void ExpectMoves(PlanUnderTest& plan, const Collectives& forward, const Collectives& backward,
                 const Collectives& gradients = {}) {
  const Moves moves = plan.Traffic();
  EXPECT_THAT(moves.forward, UnorderedElementsAreArray(forward)) << "forward";
  EXPECT_THAT(moves.backward, UnorderedElementsAreArray(backward)) << "backward";
  EXPECT_THAT(moves.gradients, UnorderedElementsAreArray(gradients)) << "gradients";
}

// A model of which nothing is split unless a test says so. The last op of a
// body is given its gradient in the layout in which it wants it.
PlanUnderTest ByHand(int64_t kv_heads = 8, int64_t heads_per_kv = 1) {
  PlanUnderTest plan({{"seq", kSeq},
                      {"kv_seq", kSeq},
                      {"hidden", kHidden},
                      {"kv_heads", kv_heads},
                      {"heads_per_kv", heads_per_kv},
                      {"head_dim", kHeadDim},
                      {"ffn", kFfn}});
  plan.MicroBatches(kBatch, 1).ByHand();
  return plan;
}

int Stream(BodyWriter& body) { return body.InPort("x", {"batch", "seq", "hidden"}); }

// ---- matrix products: y[m, n] = x[m, k] w[n, k], m = (batch, seq) ----

// y is read whole over the axes of `k`, as the op behind a product reads it.
PlanUnderTest Product(const std::vector<std::pair<std::string, std::string>>& splits) {
  PlanUnderTest plan = ByHand();
  BodyWriter& body = plan.Segment("m");
  const int x = Stream(body);
  body.Op("next", "gelu", {body.Op1("mm", "linear", {x}, {{"n", "ffn"}})});
  for (const auto& [axis, factor] : splits) {
    plan.Split("m.mm", axis, {"." + factor});
    const std::string read = factor == "n" ? ".f" : factor == "s" ? ".s" : "";
    if (!read.empty()) plan.Split("m.next", axis, {read});
  }
  return plan;
}

constexpr int64_t kWeights = kFfn * kHidden;
constexpr int64_t kWide = kBf16 * kTokens * kFfn;

TEST(ProductTest, OverRowsOwesTheWeightGradient) {
  ExpectMoves(Product({{"dp", "s"}}).Split("", "dp", {}).Dp(4), {}, {},
              {AllReduce("dp", kFp32 * kWeights)});
}

TEST(ProductTest, OverColumnsOwesTheInputGradient) {
  ExpectMoves(Product({{"tp", "n"}}).Tp(4), {}, {AllReduce("tp", kStream)});
}

TEST(ProductTest, OverTheReducedFactorOwesTheOutput) {
  ExpectMoves(Product({{"tp", "k"}}).Tp(4), {AllReduce("tp", kWide)}, {});
}

TEST(TwoDimensionalProductTest, RowsAndColumns) {
  ExpectMoves(Product({{"dp", "s"}, {"tp", "n"}}).Dp(2).Tp(4), {},
              {AllReduce("tp", 2 * kStream / 2)}, {AllReduce("dp", kFp32 * kWeights / 4)});
}

TEST(TwoDimensionalProductTest, RowsAndTheReducedFactor) {
  ExpectMoves(Product({{"dp", "s"}, {"tp", "k"}}).Dp(2).Tp(4), {AllReduce("tp", 2 * kWide / 2)}, {},
              {AllReduce("dp", kFp32 * kWeights / 4)});
}

TEST(TwoDimensionalProductTest, ColumnsAndTheReducedFactor) {
  ExpectMoves(Product({{"dp", "n"}, {"tp", "k"}}).Dp(2).Tp(4), {AllReduce("tp", 2 * kWide / 2)},
              {AllReduce("dp", 2 * kStream / 4)});
}

TEST(TwoDimensionalProductTest, RowsTwiceOweTheWeightGradientOverBothAxes) {
  ExpectMoves(Product({{"dp", "s"}, {"tp", "s"}}).Dp(2).Tp(4), {}, {},
              {AllReduce("dp", kFp32 * kWeights), AllReduce("tp", kFp32 * kWeights)});
}

TEST(TwoDimensionalProductTest, ColumnsTwiceOweOneInputGradientOverBothAxes) {
  ExpectMoves(Product({{"dp", "n"}, {"tp", "n"}}).Dp(2).Tp(4), {},
              {AllReduce("dp*tp", 2 * kStream)});
}

TEST(TwoDimensionalProductTest, TheReducedFactorTwiceOwesOneOutputOverBothAxes) {
  ExpectMoves(Product({{"dp", "k"}, {"tp", "k"}}).Dp(2).Tp(4), {AllReduce("dp*tp", 2 * kWide)}, {});
}

TEST(ThreeDimensionalProductTest, EachAxisOwesTheTensorItDoesNotCut) {
  ExpectMoves(Product({{"dp", "s"}, {"cp", "n"}, {"tp", "k"}}).Dp(2).Cp(2).Tp(4),
              {AllReduce("tp", 2 * kWide / (2 * 2))}, {AllReduce("cp", 2 * kStream / (2 * 4))},
              {AllReduce("dp", kFp32 * kWeights / (2 * 4))});
}

TEST(ThreeDimensionalProductTest, WhicheverAxisCutsWhichFactor) {
  ExpectMoves(Product({{"dp", "k"}, {"cp", "s"}, {"tp", "n"}}).Dp(2).Cp(2).Tp(4),
              {AllReduce("dp", 2 * kWide / (2 * 4))}, {AllReduce("tp", 2 * kStream / (2 * 2))},
              {AllReduce("cp", kFp32 * kWeights / (2 * 4))});
}

// ---- reduced factors inside an op ----

PlanUnderTest NormOverHidden(const char* rule) {
  PlanUnderTest plan = ByHand();
  BodyWriter& body = plan.Segment("m");
  body.Op("norm", rule, {Stream(body)});
  plan.Split("m.norm", "tp", {"hidden"});
  return plan;
}

TEST(NormOverHiddenTest, AnRmsNormOwesOneSumEachWay) {
  ExpectMoves(NormOverHidden("rms_norm").Tp(4), {AllReduce("tp", kStatistic)},
              {AllReduce("tp", kStatistic)});
}

TEST(NormOverHiddenTest, ALayerNormOwesMeanAndVariance) {
  ExpectMoves(NormOverHidden("layer_norm").Tp(4),
              {AllReduce("tp", kStatistic), AllReduce("tp", kStatistic)},
              {AllReduce("tp", kStatistic), AllReduce("tp", kStatistic)});
}

TEST(NormOverHiddenTest, OverTokensItOwesNothingButItsGradient) {
  ExpectMoves(NormOverHidden("layer_norm").Split("m.norm", "tp", {"seq"}).Tp(4), {}, {},
              {AllReduce("tp", kFp32 * 2 * kHidden)});
}

TEST(SoftmaxTest, OverTheKeysOwesMaximumAndSumAndOneSumBack) {
  PlanUnderTest plan = ByHand();
  BodyWriter& body = plan.Segment("m");
  body.Op("softmax", "softmax",
          {body.InPort("x", {"batch", "kv_heads", "heads_per_kv", "seq", "kv_seq"})});
  const int64_t rows = kFp32 * kBatch * 8 * kSeq;
  ExpectMoves(plan.Tp(4).Split("m.softmax", "tp", {"kv_seq"}),
              {AllReduce("tp", rows), AllReduce("tp", rows)}, {AllReduce("tp", rows)});
}

TEST(SoftmaxTest, OverQueriesOrHeadsOwesNothing) {
  for (const char* dim : {"seq", "kv_heads"}) {
    PlanUnderTest plan = ByHand();
    BodyWriter& body = plan.Segment("m");
    body.Op("softmax", "softmax_causal",
            {body.InPort("x", {"batch", "kv_heads", "heads_per_kv", "seq", "kv_seq"})});
    ExpectMoves(plan.Tp(4).Split("m.softmax", "tp", {dim}), {}, {});
  }
}

// ---- attention over positions ----

constexpr int64_t kHeads = 8;
constexpr int64_t kQuery = kBf16 * kTokens * kHeads * kHeadDim;  // also of keys, values, outputs

PlanUnderTest Core(const char* dim) {
  PlanUnderTest plan = ByHand();
  BodyWriter& body = plan.Segment("m");
  const int q = body.InPort("q", {"batch", "seq", "kv_heads", "heads_per_kv", "head_dim"});
  const int k = body.InPort("k", {"batch", "kv_seq", "kv_heads", "head_dim"});
  const int v = body.InPort("v", {"batch", "kv_seq", "kv_heads", "head_dim"});
  body.Op("core", "attention", {q, k, v});
  plan.Tp(4).Split("m.core", "tp", {dim});
  return plan;
}

TEST(AttentionTest, OverHeadsOwesNothing) {
  PlanUnderTest plan = Core("kv_heads");
  ExpectMoves(plan, {}, {});
}

TEST(AttentionTest, OverKeysOwesOneCombinedExchange) {
  // Maximum and sum per query and head, and the unnormalised output, in fp32.
  const int64_t triple = kFp32 * kTokens * kHeads * (1 + 1 + kHeadDim);
  PlanUnderTest plan = Core("kv_seq");
  ExpectMoves(plan, {AllReduce("tp", triple)}, {AllReduce("tp", kQuery)});
}

TEST(AttentionTest, OverQueriesOwesTheGradientsOfKeysAndValues) {
  PlanUnderTest plan = Core("seq");
  ExpectMoves(plan, {}, {AllReduce("tp", kQuery), AllReduce("tp", kQuery)});
}

// ---- pointwise ----

TEST(PointwiseTest, OwesNothingHoweverItIsSplit) {
  for (const char* dim : {"batch", "seq", "ffn"}) {
    PlanUnderTest plan = ByHand();
    BodyWriter& body = plan.Segment("m");
    const int gate = body.InPort("gate", {"batch", "seq", "ffn"});
    body.Op("act", "swiglu", {gate, body.InPort("up", {"batch", "seq", "ffn"})});
    ExpectMoves(plan.Tp(2).Split("m.act", "tp", {dim}), {}, {});
  }
}

TEST(PointwiseTest, ADropoutOwesNothing) {
  PlanUnderTest plan = ByHand();
  BodyWriter& body = plan.Segment("m");
  body.Op("dropout", "dropout", {Stream(body)});
  ExpectMoves(plan.Tp(4).Split("m.dropout", "tp", {"hidden"}), {}, {});
}

TEST(ResidualTest, OperandsInTheSameLayoutMoveNothing) {
  PlanUnderTest plan = ByHand();
  BodyWriter& body = plan.Segment("m");
  const int x = Stream(body);
  body.Op("add", "residual_add", {body.Op1("a", "dropout", {x}), x});
  ExpectMoves(plan.Tp(4).Split("m", "tp", {"seq"}), {}, {});
}

TEST(ResidualTest, AnOperandInAnotherLayoutIsExchanged) {
  PlanUnderTest plan = ByHand();
  BodyWriter& body = plan.Segment("m");
  const int x = Stream(body), r = body.InPort("r", {"batch", "seq", "hidden"});
  body.Op("add", "residual_add", {body.Op1("a", "dropout", {x}), body.Op1("b", "dropout", {r})});
  plan.Tp(4).Split("m", "tp", {"seq"}).Split("m.b", "tp", {"hidden"});
  ExpectMoves(plan, {AllToAll("tp", kStream / 4)}, {AllToAll("tp", kStream / 4)});
}

// ---- chains ----

TEST(ChainTest, LayoutsThatAgreeMoveNothing) {
  PlanUnderTest plan = ByHand();
  BodyWriter& body = plan.Segment("m");
  const int x = body.InPort("x", {"batch", "seq", "ffn"});
  body.Op("b", "relu", {body.Op1("a", "gelu", {x})});
  ExpectMoves(plan.Tp(4).Split("m", "tp", {"ffn"}), {}, {});
}

TEST(ChainTest, FromColumnsToTokensIsAnAllToAllEachWay) {
  PlanUnderTest plan = ByHand();
  BodyWriter& body = plan.Segment("m");
  const int x = body.InPort("x", {"batch", "seq", "ffn"});
  body.Op("b", "relu", {body.Op1("a", "gelu", {x})});
  plan.Tp(4).Split("m.a", "tp", {"ffn"}).Split("m.b", "tp", {"seq"});
  ExpectMoves(plan, {AllToAll("tp", kWide / 4)}, {AllToAll("tp", kWide / 4)});
}

TEST(ChainTest, FromWholeToShardsIsASliceAndBackAGather) {
  PlanUnderTest plan = ByHand();
  BodyWriter& body = plan.Segment("m");
  const int x = body.InPort("x", {"batch", "seq", "ffn"});
  body.Op("b", "relu", {body.Op1("a", "gelu", {x})});
  ExpectMoves(plan.Tp(4).Split("m.b", "tp", {"ffn"}), {}, {AllGather("tp", kWide)});
}

TEST(ChainTest, FromShardsToWholeIsAGatherAndBackASlice) {
  PlanUnderTest plan = ByHand();
  BodyWriter& body = plan.Segment("m");
  const int x = body.InPort("x", {"batch", "seq", "ffn"});
  body.Op("b", "relu", {body.Op1("a", "gelu", {x})});
  ExpectMoves(plan.Tp(4).Split("m.a", "tp", {"ffn"}), {AllGather("tp", kWide)}, {});
}

TEST(ChainTest, OneRelayoutServesAllReaders) {
  PlanUnderTest plan = ByHand();
  BodyWriter& body = plan.Segment("m");
  const int a = body.Op1("a", "gelu", {body.InPort("x", {"batch", "seq", "ffn"})});
  body.Op("b", "relu", {a});
  body.Op("c", "gelu", {a});
  plan.Tp(4).Split("m.a", "tp", {"ffn"}).Split("m.b", "tp", {"seq"}).Split("m.c", "tp", {"seq"});
  // The gradients of both readers are summed before they go back.
  ExpectMoves(plan, {AllToAll("tp", kWide / 4)}, {AllToAll("tp", kWide / 4)});
}

TEST(ChainTest, RowBeforeColumnReducesTheWideTensor) {
  PlanUnderTest plan = ByHand();
  BodyWriter& body = plan.Segment("m", 2);
  int x = body.Op1("fc1", "linear", {Stream(body)}, {{"n", "ffn"}});
  x = body.Op1("act", "gelu", {x});
  body.OutPort(body.Op1("fc2", "linear", {x}, {{"k", "ffn"}}));
  plan.Tp(4).Split("m.*.fc1", "tp", {".k"}).Split("m.*.fc2", "tp", {".n"});
  ExpectMoves(plan, {AllReduce("tp", kWide)}, {AllReduce("tp", kWide)});
}

TEST(UlyssesTest, ExchangesTokensForHeadsAndBack) {
  PlanUnderTest plan = ByHand();
  BodyWriter& body = plan.Segment("m", 2);
  const std::vector<int> qkv = body.Op("qkv", "qkv_linear", {Stream(body)});
  body.OutPort(body.Op1("proj", "out_linear", {body.Op1("core", "attention", qkv)}));
  plan.Tp(4).Split("m", "tp", {"seq"}).Split("m.*.core", "tp", {"heads"});
  const std::string one = AllToAll("tp", kQuery / 4);
  const int64_t weights = kHidden * kHeads * kHeadDim * 4;
  // The output is saved once and read back in both layouts: by the product's
  // weight gradient in tokens, by the attention's gradient in heads.
  ExpectMoves(plan, {one, one, one, one}, {one, one, one, one, one},
              {AllReduce("tp", kFp32 * 2 * weights)});
}

// ---- fewer key heads than ranks ----

TEST(SubAxesTest, KeyHeadsAreReplicatedOverTheInnerSubAxis) {
  constexpr int64_t kKvHeads = 2, kPerKv = 4;
  PlanUnderTest plan = ByHand(kKvHeads, kPerKv);
  BodyWriter& body = plan.Segment("m", 2);
  const std::vector<int> qkv = body.Op("qkv", "qkv_linear", {Stream(body)});
  body.OutPort(body.Op1("proj", "out_linear", {body.Op1("core", "attention", qkv)}));
  plan.Tp(8).Split("", "tp", {"heads"});
  const absl::StatusOr<ExecutionGraph> graph = plan.Compile();
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->mesh.DebugString(), "pp=1 dp=1 tp.0=2 tp.1=4");
  const Moves moves = MovesOf(*graph);
  EXPECT_THAT(moves.forward, UnorderedElementsAreArray({AllReduce("tp.0*tp.1", kStream)}));
  // The gradients of keys and values are sums over the ranks that share a head.
  // Those of the stream are, too, but for the part that comes through keys and
  // values, which is whole there: the sum over tp.1 is taken first.
  const int64_t key = kBf16 * kTokens * kHeadDim;
  EXPECT_THAT(moves.backward,
              UnorderedElementsAreArray({AllReduce("tp.1", key), AllReduce("tp.1", key),
                                         AllReduce("tp.1", kStream), AllReduce("tp.0", kStream)}));
  EXPECT_THAT(moves.gradients, IsEmpty());
}

// ---- one session, several plans ----

TEST(SessionTest, PlansThatSplitWeightsOverDataRanksDoNotShareBodies) {
  Session session;
  for (int64_t dp : {2, 4, 8}) {
    PlanUnderTest plan = Product({{"dp", "n"}});
    plan.Dp(dp).MicroBatches(1, 1);
    const absl::StatusOr<ExecutionGraph> shared = plan.Compile(session);
    const absl::StatusOr<ExecutionGraph> alone = plan.Compile();
    ASSERT_TRUE(shared.ok() && alone.ok());
    EXPECT_EQ(shared->DebugString(), alone->DebugString()) << "dp " << dp;
  }
}

TEST(SessionTest, PlansThatReplicateTheBatchDoNotShareBodies) {
  Session session;
  for (int64_t dp : {2, 4}) {
    PlanUnderTest plan = Product({{"tp", "n"}});
    plan.Dp(dp).Tp(2);
    const absl::StatusOr<ExecutionGraph> shared = plan.Compile(session);
    const absl::StatusOr<ExecutionGraph> alone = plan.Compile();
    ASSERT_TRUE(shared.ok() && alone.ok());
    EXPECT_EQ(shared->DebugString(), alone->DebugString()) << "dp " << dp;
  }
}

}  // namespace
}  // namespace plancast
