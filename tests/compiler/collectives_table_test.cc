// Megatron's splits of a transformer give the collectives that theory owes,
// forward and backward, and the reductions of gradients. The other half of the
// table, splits by hand, is in hand_split_collectives_test.cc.

#include <functional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/plan_under_test.h"

namespace plancast {
namespace {

using ::testing::UnorderedElementsAreArray;

constexpr int64_t kBatch = 2, kSeq = 16, kHidden = 64, kFfn = 256, kHeadDim = 8, kVocab = 512;
constexpr int64_t kLayers = 2;
constexpr int64_t kBf16 = 2, kFp32 = 4;
// The residual stream of one micro-batch, and a number per token in fp32.
constexpr int64_t kStream = kBf16 * kBatch * kSeq * kHidden;
constexpr int64_t kStatistic = kFp32 * kBatch * kSeq;

using Collectives = std::vector<std::string>;

void ExpectMoves(PlanUnderTest& plan, const Collectives& forward, const Collectives& backward,
                 const Collectives& gradients) {
  const Moves moves = plan.Traffic();
  EXPECT_THAT(moves.forward, UnorderedElementsAreArray(forward)) << "forward";
  EXPECT_THAT(moves.backward, UnorderedElementsAreArray(backward)) << "backward";
  EXPECT_THAT(moves.gradients, UnorderedElementsAreArray(gradients)) << "gradients";
}

PlanUnderTest SmallModel(int64_t kv_heads = 8, int64_t heads_per_kv = 1, int64_t vocab = kVocab) {
  PlanUnderTest plan({{"seq", kSeq},
                      {"kv_seq", kSeq},
                      {"hidden", kHidden},
                      {"kv_heads", kv_heads},
                      {"heads_per_kv", heads_per_kv},
                      {"head_dim", kHeadDim},
                      {"ffn", kFfn},
                      {"vocab", vocab}});
  plan.MicroBatches(kBatch, 1);
  return plan;
}

int Stream(BodyWriter& body) { return body.InPort("x", {"batch", "seq", "hidden"}); }

// kLayers layers that `write` draws from their input to their output.
PlanUnderTest Layers(const std::function<int(BodyWriter&, int)>& write,
                     PlanUnderTest plan = SmallModel()) {
  BodyWriter& body = plan.Segment("layers", kLayers);
  body.OutPort(write(body, Stream(body)));
  return plan;
}

int GeluMlp(BodyWriter& body, int x) {
  x = body.Op1("fc1", "linear", {x}, {{"n", "ffn"}});
  x = body.Op1("act", "gelu", {x});
  return body.Op1("fc2", "linear", {x}, {{"k", "ffn"}});
}

int SwigluMlp(BodyWriter& body, int x) {
  return body.Op1("fc2", "linear", {body.Op1("act", "swiglu", body.Op("fc1", "gated_linear", {x}))},
                  {{"k", "ffn"}});
}

// norm -> branch -> residual, as in every transformer layer.
std::function<int(BodyWriter&, int)> Residual(std::function<int(BodyWriter&, int)> branch,
                                              const char* norm = "rms_norm") {
  return [branch, norm](BodyWriter& body, int x) {
    const int y = branch(body, body.Op1("norm", norm, {x}));
    return body.Op1("residual", "residual_add", {y, x});
  };
}

int Attention(BodyWriter& body, int x) {
  return body.Op1("proj", "out_linear",
                  {body.Op1("core", "attention", body.Op("qkv", "qkv_linear", {x}))});
}

int UnfusedAttention(BodyWriter& body, int x) {
  const std::vector<int> qkv = body.Op("qkv", "qkv_linear", {x});
  const int scores = body.Op1("scores", "scores", {qkv[0], qkv[1]});
  const int p = body.Op1("softmax", "softmax_causal", {scores});
  const int o = body.Op1("merge", "merge_heads", {body.Op1("context", "context", {p, qkv[2]})});
  return body.Op1("proj", "out_linear", {o});
}

// The weights of the MLP.
constexpr int64_t kMlpWeights = 2 * kHidden * kFfn;

// ---- tensor parallelism ----

TEST(MegatronMlpTest, OneDeviceMovesNothing) { ExpectMoves(Layers(GeluMlp).Tp(1), {}, {}, {}); }

TEST(MegatronMlpTest, ColumnThenRowOwesOneAllReduceEachWay) {
  ExpectMoves(Layers(GeluMlp).Tp(4), {AllReduce("tp", kStream)}, {AllReduce("tp", kStream)}, {});
}

TEST(MegatronMlpTest, BytesDoNotDependOnTheDegree) {
  ExpectMoves(Layers(GeluMlp).Tp(16), {AllReduce("tp", kStream)}, {AllReduce("tp", kStream)}, {});
}

TEST(MegatronMlpTest, AGatedLayerOwesNoMore) {
  ExpectMoves(Layers(SwigluMlp).Tp(4), {AllReduce("tp", kStream)}, {AllReduce("tp", kStream)}, {});
}

TEST(MegatronMlpTest, TheBiasOfTheColumnIsSplitWithIt) {
  const auto mlp = [](BodyWriter& body, int x) {
    x = body.Op1("fc1", "linear_bias", {x}, {{"n", "ffn"}});
    return body.Op1("fc2", "linear", {x}, {{"k", "ffn"}});
  };
  ExpectMoves(Layers(mlp).Tp(4), {AllReduce("tp", kStream)}, {AllReduce("tp", kStream)}, {});
}

TEST(MegatronMlpTest, TheBiasOfTheRowIsAddedAfterTheSum) {
  const auto mlp = [](BodyWriter& body, int x) {
    return body.Op1("bias", "bias_add", {GeluMlp(body, x)});
  };
  ExpectMoves(Layers(mlp).Tp(4), {AllReduce("tp", kStream)}, {AllReduce("tp", kStream)}, {});
}

TEST(MegatronAttentionTest, HeadsOweOneAllReduceEachWay) {
  ExpectMoves(Layers(Attention).Tp(4), {AllReduce("tp", kStream)}, {AllReduce("tp", kStream)}, {});
}

TEST(MegatronAttentionTest, SoDoTheThreeKernelsOfUnfusedAttention) {
  ExpectMoves(Layers(UnfusedAttention).Tp(8), {AllReduce("tp", kStream)},
              {AllReduce("tp", kStream)}, {});
}

TEST(MegatronAttentionTest, SoDoGroupedQueriesWithAKeyHeadForEveryRank) {
  ExpectMoves(Layers(Attention, SmallModel(4, 2)).Tp(4), {AllReduce("tp", kStream)},
              {AllReduce("tp", kStream)}, {});
}

TEST(MegatronAttentionTest, RotaryEmbeddingMovesNothing) {
  const auto attention = [](BodyWriter& body, int x) {
    std::vector<int> qkv = body.Op("qkv", "qkv_linear", {x});
    const int cos = body.Input("cos", DType::kFp32, {"seq", "head_dim"});
    const int sin = body.Input("sin", DType::kFp32, {"seq", "head_dim"});
    const int pair = body.Input("pair", DType::kInt64, {"head_dim"});
    qkv[0] = body.Op1("rotary_q", "rotary", {qkv[0], cos, sin, pair});
    qkv[1] = body.Op1("rotary_k", "rotary_kv", {qkv[1], cos, sin, pair});
    return body.Op1("proj", "out_linear", {body.Op1("core", "attention", qkv)});
  };
  ExpectMoves(Layers(attention).Tp(4), {AllReduce("tp", kStream)}, {AllReduce("tp", kStream)}, {});
}

TEST(MegatronAttentionTest, TheNormOfQueriesIsSharedByAllHeads) {
  const auto attention = [](BodyWriter& body, int x) {
    std::vector<int> qkv = body.Op("qkv", "qkv_linear", {x});
    qkv[0] = body.Op1("q_norm", "head_rms_norm", {qkv[0]});
    qkv[1] = body.Op1("k_norm", "head_rms_norm_kv", {qkv[1]});
    return body.Op1("proj", "out_linear", {body.Op1("core", "attention", qkv)});
  };
  ExpectMoves(Layers(attention).Tp(4), {AllReduce("tp", kStream)}, {AllReduce("tp", kStream)},
              {AllReduce("tp", kFp32 * kLayers * 2 * kHeadDim)});
}

TEST(ParallelBranchesTest, ShareOneAllReduce) {
  const auto layer = [](BodyWriter& body, int x) {
    const int norm = body.Op1("norm", "rms_norm", {x});
    const int both = body.Op1("join", "residual_add", {Attention(body, norm), GeluMlp(body, norm)});
    return body.Op1("residual", "residual_add", {both, x});
  };
  ExpectMoves(Layers(layer).Tp(4), {AllReduce("tp", kStream)}, {AllReduce("tp", kStream)}, {});
}

// ---- sequence parallelism ----

// Forward: gather before the column, scatter behind the row. Backward: the same
// for gradients, and the input again, since it was saved in shards.
const Collectives kSequenceForward = {AllGather("tp", kStream), ReduceScatter("tp", kStream)};
const Collectives kSequenceBackward = {AllGather("tp", kStream), AllGather("tp", kStream),
                                       ReduceScatter("tp", kStream)};

TEST(SequenceParallelTest, MlpGathersAndScatters) {
  ExpectMoves(Layers(Residual(GeluMlp)).Tp(4).Sp(), kSequenceForward, kSequenceBackward,
              {AllReduce("tp", kFp32 * kLayers * kHidden)});
}

TEST(SequenceParallelTest, AttentionGathersAndScatters) {
  ExpectMoves(Layers(Residual(Attention)).Tp(4).Sp(), kSequenceForward, kSequenceBackward,
              {AllReduce("tp", kFp32 * kLayers * kHidden)});
}

TEST(SequenceParallelTest, WholeSavesSpareTheSecondGather) {
  PlanUnderTest plan = Layers(Residual(GeluMlp));
  plan.profile().tensors.sp_saves_sharded = false;
  ExpectMoves(plan.Tp(4).Sp(), kSequenceForward,
              {AllGather("tp", kStream), ReduceScatter("tp", kStream)},
              {AllReduce("tp", kFp32 * kLayers * kHidden)});
}

TEST(SequenceParallelTest, ALayerNormOwesBothItsParameters) {
  ExpectMoves(Layers(Residual(GeluMlp, "layer_norm")).Tp(4).Sp(), kSequenceForward,
              kSequenceBackward, {AllReduce("tp", kFp32 * kLayers * 2 * kHidden)});
}

TEST(SequenceParallelTest, TheBiasOfTheRowIsOwedToo) {
  const auto branch = [](BodyWriter& body, int x) {
    return body.Op1("bias", "bias_add", {GeluMlp(body, x)});
  };
  ExpectMoves(Layers(Residual(branch)).Tp(4).Sp(), kSequenceForward, kSequenceBackward,
              {AllReduce("tp", kFp32 * kLayers * 2 * kHidden)});
}

TEST(SequenceParallelTest, OnOneRankHasNoEffect) {
  ExpectMoves(Layers(Residual(GeluMlp)).Tp(1).Sp(), {}, {}, {});
}

// ---- vocabulary parallelism ----

int Embedding(BodyWriter& body) {
  return body.Op1("tokens", "embedding", {body.Input("ids", DType::kInt64, {"batch", "seq"})});
}

PlanUnderTest Head(PlanUnderTest plan) {
  BodyWriter& body = plan.Segment("head");
  const int labels = body.Input("labels", DType::kInt64, {"batch", "seq"});
  const int logits = body.Op1("logits", "linear", {Stream(body)}, {{"n", "vocab"}});
  body.OutPort(body.Op1("loss", "cross_entropy", {logits, labels}));
  return plan;
}

// Maximum, sum of exponentials, logit of the target.
const Collectives kLossStatistics = {AllReduce("tp", kStatistic), AllReduce("tp", kStatistic),
                                     AllReduce("tp", kStatistic)};

TEST(VocabularyParallelTest, TheEmbeddingOwesASumForward) {
  PlanUnderTest plan = SmallModel();
  BodyWriter& body = plan.Segment("embedding");
  body.OutPort(Embedding(body));
  ExpectMoves(plan.Tp(4), {AllReduce("tp", kStream)}, {}, {});
}

TEST(VocabularyParallelTest, IntoSequenceShardsItScatters) {
  PlanUnderTest plan = SmallModel();
  BodyWriter& embedding = plan.Segment("embedding");
  embedding.OutPort(Embedding(embedding));
  BodyWriter& layers = plan.Segment("layers", kLayers);
  layers.OutPort(layers.Op1("norm", "rms_norm", {Stream(layers)}));
  BodyWriter& head = plan.Segment("head");
  head.Op("pool", "rms_norm", {Stream(head)});
  ExpectMoves(plan.Tp(4).Sp(), {ReduceScatter("tp", kStream)}, {AllGather("tp", kStream)},
              {AllReduce("tp", kFp32 * (kLayers + 1) * kHidden)});
}

TEST(VocabularyParallelTest, TheLossOwesThreeNumbersATokenAndTheInputGradient) {
  ExpectMoves(Head(SmallModel()).Tp(4), kLossStatistics, {AllReduce("tp", kStream)}, {});
}

TEST(VocabularyParallelTest, AVocabularyThatDoesNotDivideOwesTheSame) {
  ExpectMoves(Head(SmallModel(8, 1, 509)).Tp(4), kLossStatistics, {AllReduce("tp", kStream)}, {});
}

TEST(VocabularyParallelTest, AWholeLossWantsTheWholeLogits) {
  PlanUnderTest plan = Head(SmallModel());
  const int64_t logits = kBf16 * kBatch * kSeq * kVocab;
  ExpectMoves(plan.Tp(4).Split("head.loss", "tp", {}), {AllGather("tp", logits)},
              {AllReduce("tp", kStream)}, {});
}

TEST(VocabularyParallelTest, ALossOverTokensOwesTheWeightGradientInstead) {
  PlanUnderTest plan = Head(SmallModel());
  plan.Tp(4).Split("", "tp", {"seq"});
  // Each rank keeps the losses of its tokens.
  ExpectMoves(plan, {}, {}, {AllReduce("tp", kFp32 * kVocab * kHidden)});
}

// ---- data parallelism ----

TEST(DataParallelTest, ReducesGradientsOnly) {
  ExpectMoves(Layers(GeluMlp).Dp(4), {}, {}, {AllReduce("dp", kFp32 * kLayers * kMlpWeights)});
}

TEST(DataParallelTest, EachRankKeepsTheLossesOfItsSamples) {
  ExpectMoves(Head(SmallModel()).Dp(4), {}, {}, {AllReduce("dp", kFp32 * kVocab * kHidden)});
}

TEST(DataParallelTest, ReducesTheShardOfEachTensorParallelRank) {
  ExpectMoves(Layers(GeluMlp).Dp(2).Tp(4), {AllReduce("tp", kStream)}, {AllReduce("tp", kStream)},
              {AllReduce("dp", kFp32 * kLayers * kMlpWeights / 4)});
}

TEST(DataParallelTest, ReducesInTheTypeOfTheWire) {
  PlanUnderTest plan = Layers(GeluMlp);
  plan.profile().types.reduce_dtype = DType::kBf16;
  ExpectMoves(plan.Dp(4), {}, {}, {AllReduce("dp", kBf16 * kLayers * kMlpWeights)});
}

TEST(DataParallelTest, ZeroOneScattersGradientsAndGathersParameters) {
  ExpectMoves(Layers(GeluMlp).Dp(4).Zero1(), {}, {},
              {ReduceScatter("dp", kFp32 * kLayers * kMlpWeights),
               AllGather("dp", kBf16 * kLayers * kMlpWeights)});
}

TEST(DataParallelTest, ZeroOneWithTensorParallelismMovesItsShardOnly) {
  ExpectMoves(Layers(GeluMlp).Dp(2).Tp(4).Zero1(), {AllReduce("tp", kStream)},
              {AllReduce("tp", kStream)},
              {ReduceScatter("dp", kFp32 * kLayers * kMlpWeights / 4),
               AllGather("dp", kBf16 * kLayers * kMlpWeights / 4)});
}

TEST(DataParallelTest, OverlappedParameterGathersMoveTheSameBytesLayerByLayer) {
  PlanUnderTest plan = Layers(GeluMlp);
  plan.options().overlap = {Overlap::kParam};
  plan.options().bucket_bytes = 1;  // a bucket a layer
  const Moves moves = plan.Dp(4).Zero1().Traffic();
  int64_t gathered = 0;
  for (const std::string& move : moves.gradients) {
    if (move.rfind("all_gather(dp) ", 0) == 0) gathered += std::stoll(move.substr(15));
  }
  EXPECT_EQ(gathered, kBf16 * kLayers * kMlpWeights);
}

TEST(DataParallelTest, SequenceParallelNormsAreReducedOverBothAxes) {
  ExpectMoves(Layers(Residual(GeluMlp)).Dp(2).Tp(4).Sp(), kSequenceForward, kSequenceBackward,
              {AllReduce("dp", kFp32 * kLayers * (kMlpWeights / 4 + kHidden)),
               AllReduce("tp", kFp32 * kLayers * kHidden)});
}

TEST(DataParallelTest, TheEmbeddingOwesItsWholeTable) {
  PlanUnderTest plan = SmallModel();
  BodyWriter& body = plan.Segment("embedding");
  body.OutPort(Embedding(body));
  ExpectMoves(plan.Dp(4), {}, {}, {AllReduce("dp", kFp32 * kVocab * kHidden)});
}

}  // namespace
}  // namespace plancast
