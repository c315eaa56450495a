#include "graph/split/op_split.h"

#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

DeviceMesh Mesh() { return *DeviceMesh::Create({{"dp", 2}, {"tp", 4}}); }

// `split`: "s:dp n:tp". The partition's text, one line a border tensor and
// one an owed reduction.
std::string Partition(const OpRule& rule, const std::string& split, int64_t extent = 16) {
  FactorSplit axes = FactorSplit::None(rule);
  for (absl::string_view part : absl::StrSplit(split, ' ', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> cut = absl::StrSplit(part, ':');
    axes.axes[*rule.FindFactor(cut.first)].push_back(*Mesh().FindAxis(cut.second));
  }
  const std::vector<int64_t> extents(rule.factors().size(), extent);
  absl::StatusOr<OpPartition> partition = PartitionOp(rule, axes, Mesh(), extents);
  return partition.ok() ? partition->DebugString(rule, Mesh())
                        : std::string(partition.status().message());
}
std::string Partition(const std::string& rule, const std::string& split, int64_t extent = 16) {
  return Partition(**FindRule(rule), split, extent);
}

TEST(PartitionOpTest, MegatronColumnThenRow) {
  EXPECT_EQ(Partition("linear", "n:tp"),
            "in x []\n"
            "in w [tp: Shard(0)]\n"
            "out y [tp: Shard(2)]\n");
  EXPECT_EQ(Partition("linear", "k:tp"),
            "in x [tp: Shard(2)]\n"
            "in w [tp: Shard(1)]\n"
            "out y [tp: Partial(sum)]\n");
}

TEST(PartitionOpTest, BackwardOfColumnParallelOwesTheInputGradient) {
  EXPECT_EQ(Partition(*Differentiate(**FindRule("linear"), {"x"}), "n:tp b:dp"),
            "in d_y [dp: Shard(0), tp: Shard(2)]\n"
            "in w [tp: Shard(0)]\n"
            "out d_x [dp: Shard(0), tp: Partial(sum)]\n");
  EXPECT_EQ(Partition(*Differentiate(**FindRule("linear"), {"w"}), "n:tp b:dp"),
            "in d_y [dp: Shard(0), tp: Shard(2)]\n"
            "in x [dp: Shard(0)]\n"
            "out d_w [dp: Partial(sum), tp: Shard(0)]\n");
}

// Three partial products are added locally; one reduction is owed for all.
TEST(PartitionOpTest, PartialSumsPassThroughAdditions) {
  const OpRule dgrad = *Differentiate(**FindRule("qkv_linear"), {"x"});
  EXPECT_THAT(Partition(dgrad, "g:tp"), HasSubstr("out d_x [tp: Partial(sum)]\n"));
  EXPECT_THAT(Partition(dgrad, "g:tp"), ::testing::Not(HasSubstr("owes")));
}

// A bias after the sum must be added once: the sum has to be whole before.
TEST(PartitionOpTest, BiasMakesTheSumOwedInside) {
  EXPECT_EQ(Partition("linear_bias", "k:tp"),
            "in x [tp: Shard(2)]\n"
            "in w [tp: Shard(1)]\n"
            "in bias []\n"
            "out y []\n"
            "owes sum(tp) of a after statement 0\n");
}

TEST(PartitionOpTest, NormsOweTheirSums) {
  EXPECT_THAT(Partition("rms_norm", "h:tp"), HasSubstr("owes sum(tp) of squares after"));
  EXPECT_EQ(Partition("layer_norm", "h:tp"),
            "in x [tp: Shard(2)]\n"
            "in gamma [tp: Shard(0)]\n"
            "in beta [tp: Shard(0)]\n"
            "out y [tp: Shard(2)]\n"
            "owes sum(tp) of mean after statement 1\n"
            "owes sum(tp) of squares after statement 2\n");
}

TEST(PartitionOpTest, SequenceParallelNormOwesItsWeightGradients) {
  const OpRule backward = *Differentiate(**FindRule("layer_norm"), {"x", "gamma", "beta"});
  const std::string text = Partition(backward, "s:tp");
  EXPECT_THAT(text, HasSubstr("out d_x [tp: Shard(1)]\n"
                              "out d_gamma [tp: Partial(sum)]\n"
                              "out d_beta [tp: Partial(sum)]\n"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("owes")));
}

TEST(PartitionOpTest, VocabularyParallelLossOwesThree) {
  EXPECT_EQ(Partition("cross_entropy", "v:tp"),
            "in x [tp: Shard(2)]\n"
            "in id []\n"
            "out loss []\n"
            "owes max(tp) of m after statement 0\n"
            "owes sum(tp) of z after statement 2\n"
            "owes sum(tp) of logit after statement 3\n");
  EXPECT_THAT(Partition(*Differentiate(**FindRule("cross_entropy"), {"x"}), "v:tp"),
              ::testing::Not(HasSubstr("owes")));
}

TEST(PartitionOpTest, EmbeddingSplitOverTheVocabularyIsPartial) {
  EXPECT_EQ(Partition("embedding", "v:tp"),
            "in id []\n"
            "in w [tp: Shard(0)]\n"
            "out y [tp: Partial(sum)]\n");
}

TEST(PartitionOpTest, AttentionOverKeysOwesOneOnlineSoftmax) {
  EXPECT_EQ(Partition("attention", "t:tp"),
            "in q []\n"
            "in k [tp: Shard(1)]\n"
            "in v [tp: Shard(1)]\n"
            "out o []\n"
            "owes online_softmax(tp) of m, z, a after statement 4\n");
  EXPECT_THAT(Partition("attention", "t:dp t:tp"), HasSubstr("owes online_softmax(dp,tp)"));
  // Heads are free; the head size owes the scores.
  EXPECT_THAT(Partition("attention", "g:tp"), ::testing::Not(HasSubstr("owes")));
  EXPECT_THAT(Partition("attention", "d:tp"), HasSubstr("owes sum(tp) of x after statement 0\n"));
}

// Synchronised batch norm: one exchange of two sums a channel, either way.
TEST(PartitionOpTest, FusedOpsPackTheirStatistics) {
  EXPECT_EQ(Partition("batch_norm", "b:dp"),
            "in x [dp: Shard(0)]\n"
            "in gamma []\n"
            "in beta []\n"
            "out y [dp: Shard(0)]\n"
            "owes sum(dp) of squares, mean after statement 2\n");
  const OpRule backward = *Differentiate(**FindRule("batch_norm"), {"x"});
  const std::string text = Partition(backward, "b:dp");
  EXPECT_EQ(text.find("owes sum(dp)"), text.rfind("owes")) << text;
  EXPECT_NE(text.find("owes"), std::string::npos);
  // A norm whose second sum needs the first owes two.
  const OpRule two = *OpRule::Parse(
      "norm(x) -> (y) {\n"
      "  mean[b] += x[b,h] / size(h)\n"
      "  squares[b] += (x[b,h] - mean[b]) * (x[b,h] - mean[b])\n"
      "  y[b,h] = (x[b,h] - mean[b]) * rsqrt(squares[b])\n"
      "  fused norm\n}");
  EXPECT_THAT(Partition(two, "h:dp"), HasSubstr("owes sum(dp) of mean after statement 0\n"
                                                "owes sum(dp) of squares after statement 1\n"));
}

// Parts of a recurrence pass on decay and state, in one exchange also backward.
TEST(PartitionOpTest, RecurrencesPassOnTheirStates) {
  EXPECT_EQ(Partition("linear_recurrence", "t:tp"),
            "in a [tp: Shard(1)]\n"
            "in u [tp: Shard(1)]\n"
            "out h [tp: Shard(1)]\n"
            "owes scan(tp) of h after statement 0\n");
  EXPECT_THAT(Partition("selective_scan", "c:tp"), ::testing::Not(HasSubstr("owes scan")));
  const OpRule backward =
      *Differentiate(**FindRule("selective_scan"), {"x", "delta", "a", "bt", "ct"});
  EXPECT_THAT(Partition(backward, "t:tp"), HasSubstr("owes scan(tp) of h, d_h_later, h_before"));
}

TEST(PartitionOpTest, OpaqueOpsAreCutOverTheirPointwiseFactorsOnly) {
  const OpRule rule =
      *OpRule::Parse("r(x, param w) -> (y) { y[b,i] opaque(b)= x[b,j] * w[k]; save x, w }");
  EXPECT_EQ(Partition(rule, "b:dp"),
            "in x [dp: Shard(0)]\n"
            "in w []\n"
            "out y [dp: Shard(0)]\n");
  // Its weight's gradient is a sum over samples.
  EXPECT_THAT(Partition(*Differentiate(rule, {"w"}), "b:dp"),
              HasSubstr("out d_w [dp: Partial(sum)]"));
  EXPECT_THAT(Partition(rule, "j:tp"),
              HasSubstr("cannot shard factor `j`: an opaque statement needs all of it. Cut `b`"));
}

// A sum over the rows cannot be rescaled by the maximum of each row.
TEST(PartitionOpTest, SumsAcrossMaximaOweEachStatistic) {
  const OpRule rule = *OpRule::Parse(
      "pooled(x) -> (z) {\n"
      "  m[s] max= x[s,t]\n"
      "  p[s,t] = exp(x[s,t] - m[s])\n"
      "  z[] += p[s,t]\n"
      "  fused pooled\n"
      "}\n");
  EXPECT_THAT(Partition(rule, "t:tp"), HasSubstr("owes max(tp) of m after statement 0\n"));
  EXPECT_THAT(Partition(rule, "t:tp"), ::testing::Not(HasSubstr("online_softmax")));
}

TEST(PartitionOpTest, UnfusedSoftmaxOwesEachStatistic) {
  EXPECT_THAT(Partition("softmax", "t:tp"), HasSubstr("owes max(tp) of m after statement 0\n"
                                                      "owes sum(tp) of z after statement 2\n"));
}

// 2-D and 3-D matrix multiplication.
TEST(PartitionOpTest, SeveralAxesCombine) {
  EXPECT_EQ(Partition("linear", "k:dp n:tp"),
            "in x [dp: Shard(2)]\n"
            "in w [dp: Shard(1), tp: Shard(0)]\n"
            "out y [dp: Partial(sum), tp: Shard(2)]\n");
  EXPECT_EQ(Partition("linear", "k:dp k:tp"),
            "in x [dp: Shard(2), tp: Shard(2)]\n"
            "in w [dp: Shard(1), tp: Shard(1)]\n"
            "out y [dp: Partial(sum), tp: Partial(sum)]\n");
}

TEST(PartitionOpTest, Errors) {
  EXPECT_EQ(Partition("linear", "n:tp", 2),
            "op `linear` cannot shard factor `n` (2) over `tp` of size 4: there are more parts "
            "than elements. Sizes that work: 1, 2.");
  EXPECT_THAT(Partition("linear", "n:dp n:tp", 4), HasSubstr("over `dp` and `tp` of size 8"));
  EXPECT_THAT(Partition("linear", "n:tp k:tp"),
              HasSubstr("axis `tp` cuts both factor `n` and factor `k`"));
  EXPECT_THAT(Partition("linear", "n:tp n:dp"), HasSubstr("outer axes come first"));
}

TEST(PartitionOpTest, DeviceIndicesFollowTheLayout) {
  const OpRule& rule = **FindRule("linear");
  FactorSplit split = FactorSplit::None(rule);
  split.axes[1] = {0, 1};
  const std::vector<IndexSet> sets = DeviceIndices(split, Mesh(), {1, 16, 3, 3}, 6);
  EXPECT_EQ(sets[1][0].begin, 12);
  EXPECT_EQ(sets[1][0].end, 14);
  EXPECT_EQ(CountOf(sets[2]), 3);
}

// Slots follow their tokens: a cut of either is one of both, and nothing is owed.
TEST(PartitionOpTest, RoutedSlotsAreCutWithTheirTokens) {
  for (const char* split : {"s:tp", "r:tp"}) {
    EXPECT_EQ(Partition("moe_dispatch", split),
              "in x [tp: Shard(1)]\n"
              "in at [tp: Shard(2)]\n"
              "out d [tp: Shard(2)]\n");
    EXPECT_EQ(Partition("moe_combine", split),
              "in o [tp: Shard(2)]\n"
              "in g [tp: Shard(1)]\n"
              "in at [tp: Shard(2)]\n"
              "out y [tp: Shard(1)]\n");
  }
  // Experts alone: every device has all tokens and adds what its experts give.
  EXPECT_EQ(Partition("moe_dispatch", "e:tp"),
            "in x []\n"
            "in at [tp: Shard(1)]\n"
            "out d [tp: Shard(1)]\n");
  EXPECT_EQ(Partition("moe_combine", "e:tp"),
            "in o [tp: Shard(1)]\n"
            "in g [tp: Shard(2)]\n"
            "in at [tp: Shard(1)]\n"
            "out y [tp: Partial(sum)]\n");
}

// Without the promise a slot may name any token, so that a cut of the tokens
// leaves shares of every slot.
TEST(PartitionOpTest, SlotsThatFollowNobodyArePartial) {
  const OpRule rule =
      *OpRule::Parse("gather(x, at:i64) -> (d) { d[r,h] += x[s,h] * [s == at[r]] }");
  EXPECT_EQ(Partition(rule, "s:tp"),
            "in x [tp: Shard(0)]\n"
            "in at []\n"
            "out d [tp: Partial(sum)]\n");
}

}  // namespace
}  // namespace plancast
