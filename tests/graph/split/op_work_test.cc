#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "graph/split/halo_inference.h"
#include "graph/split/op_split.h"
#include "gtest/gtest.h"

namespace plancast {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;

OpWork Work(const OpRule& rule, const std::vector<int64_t>& extents) {
  return WorkOf(rule, extents, 0, static_cast<int>(rule.statements().size()));
}

std::vector<std::string> Names(const OpRule& rule, const std::vector<int>& tensors) {
  std::vector<std::string> names;
  for (int t : tensors) names.push_back(rule.tensors()[t].name);
  return names;
}

TEST(OpWorkTest, LinearIsOneMatmul) {
  const OpRule& rule = **FindRule("linear");  // b s n k
  const OpWork work = Work(rule, {2, 3, 5, 7});
  ASSERT_EQ(work.contractions.size(), 1u);
  EXPECT_EQ(work.contractions[0].m, 6);
  EXPECT_EQ(work.contractions[0].n, 5);
  EXPECT_EQ(work.contractions[0].k, 7);
  EXPECT_EQ(work.contractions[0].batch, 1);
  EXPECT_EQ(work.contractions[0].flops, 2 * 2 * 3 * 5 * 7);
  EXPECT_EQ(work.pointwise_ops, 0);
  EXPECT_THAT(Names(rule, work.reads), ElementsAre("x", "w"));
  EXPECT_THAT(Names(rule, work.writes), ElementsAre("y"));
  EXPECT_THAT(work.read_elements, ElementsAre(DoubleEq(42), DoubleEq(35)));
  EXPECT_THAT(work.write_elements, ElementsAre(DoubleEq(30)));
}

TEST(OpWorkTest, BatchedMatmulsHaveABatch) {
  const OpRule& rule = **FindRule("scores");  // b g r s t d
  const Contraction c = Work(rule, {2, 3, 4, 5, 6, 7}).contractions.at(0);
  EXPECT_EQ(c.batch, 2 * 3);  // r is in the queries only: grouped heads share the keys
  EXPECT_EQ(c.m, 4 * 5);
  EXPECT_EQ(c.n, 6);
  EXPECT_EQ(c.k, 7);
}

TEST(OpWorkTest, AttentionInAWindowCountsItsPoints) {
  // The query at s reads min(s + 1, w) keys: 1 + 2 + 3 + 5 times 3, of 8 queries.
  const OpRule& rule = **FindRule("attention_window");
  std::vector<int64_t> extents;
  for (const std::string& factor : rule.factors()) {
    extents.push_back(factor == "s" || factor == "t" ? 8 : factor == "w" ? 3 : 1);
  }
  for (const Contraction& c : Work(rule, extents).contractions) EXPECT_EQ(c.flops, 2 * 21);
}

TEST(OpWorkTest, LatentAttentionMultipliesBothParts) {
  const OpRule& rule = **FindRule("attention_latent");
  std::vector<int64_t> extents;
  for (const std::string& factor : rule.factors()) {
    extents.push_back(factor == "s" || factor == "t" ? 8
                      : factor == "d"                ? 4
                      : factor == "f"                ? 2
                      : factor == "e"                ? 3
                                                     : 1);
  }
  double flops = 0;
  for (const Contraction& c : Work(rule, extents).contractions) flops += c.flops;
  EXPECT_EQ(flops, 2 * 36 * (4 + 2 + 3));
}

// 2 samples, 4 experts of 3 slots: one product of 6 rows for each expert.
TEST(OpWorkTest, ExpertsAreTheBatchOfGroupedMatmuls) {
  const OpRule& rule = **FindRule("expert_linear");  // b e r n k
  const Contraction c = Work(rule, {2, 4, 3, 5, 7}).contractions.at(0);
  EXPECT_EQ(c.batch, 4);
  EXPECT_EQ(c.m, 2 * 3);
  EXPECT_EQ(c.n, 5);
  EXPECT_EQ(c.k, 7);
  EXPECT_EQ(c.flops, 2 * (2 * 4 * 3) * 5 * 7);
  const OpRule wgrad = *Differentiate(rule, {"w"});
  const Contraction w = Work(wgrad, {2, 4, 3, 5, 7}).contractions.at(0);
  EXPECT_EQ(w.batch, 4);
  EXPECT_EQ(w.m, 5);
  EXPECT_EQ(w.n, 7);
  EXPECT_EQ(w.k, 2 * 3);
}

// 8 tokens, 2 of 4 experts each, hidden 16: every slot is followed once.
TEST(OpWorkTest, RoutedTokensAreFollowed) {
  const OpRule& dispatch = **FindRule("moe_dispatch");  // b e r h s
  const OpWork out = Work(dispatch, {1, 4, 4, 16, 8});
  EXPECT_TRUE(out.contractions.empty());
  EXPECT_EQ(out.pointwise_ops, 4 * 4 * 16);
  EXPECT_THAT(Names(dispatch, out.reads), ElementsAre("x", "at"));
  EXPECT_THAT(out.read_elements, ElementsAre(DoubleEq(8 * 16), DoubleEq(4 * 4)));
  EXPECT_THAT(out.write_elements, ElementsAre(DoubleEq(4 * 4 * 16)));
  const OpRule& combine = **FindRule("moe_combine");  // b s h e r
  const OpWork back = Work(combine, {1, 8, 16, 4, 4});
  EXPECT_TRUE(back.contractions.empty());
  EXPECT_EQ(back.pointwise_ops, 4 * 4 * 16);
  EXPECT_THAT(back.write_elements, ElementsAre(DoubleEq(8 * 16)));
}

TEST(OpWorkTest, CausalAttentionCountsTheTriangle) {
  const OpRule& rule = **FindRule("attention");  // b g r s t d e
  const OpWork work = Work(rule, {1, 1, 1, 8, 8, 4, 4});
  ASSERT_EQ(work.contractions.size(), 2u);
  EXPECT_EQ(work.contractions[0].flops, 2 * 36 * 4);
  const OpWork full = Work(**FindRule("attention_full"), {1, 1, 1, 8, 8, 4, 4});
  EXPECT_EQ(full.contractions[0].flops, 2 * 64 * 4);
  EXPECT_THAT(Names(rule, work.writes), ElementsAre("o", "m", "z"));
}

// Block shards of a causal op are uneven, mirrored ones are not.
TEST(OpWorkTest, MirroredShardsBalanceCausalWork) {
  const OpRule& rule = **FindRule("attention");
  const DeviceMesh mesh = *DeviceMesh::Create({{"cp", 4}});
  const std::vector<int64_t> extents = {1, 1, 1, 64, 64, 4, 4};
  auto flops = [&](ShardPattern pattern, int64_t device) {
    FactorSplit split = FactorSplit::None(rule);
    split.axes[*rule.FindFactor("s")] = {0};
    split.patterns.assign(rule.factors().size(), pattern);
    return WorkOf(rule, DeviceIndices(split, mesh, extents, device), 0, 6).contractions[0].flops;
  };
  EXPECT_LT(flops(ShardPattern::kBlock, 0) * 4, flops(ShardPattern::kBlock, 3));
  for (int64_t device = 1; device < 4; ++device) {
    EXPECT_EQ(flops(ShardPattern::kMirrored, device), flops(ShardPattern::kMirrored, 0));
  }
}

TEST(OpWorkTest, LookupsAreNoMatmulsAndReadOnlyTheirRows) {
  const OpRule& embedding = **FindRule("embedding");  // b s h v
  const OpWork work = Work(embedding, {2, 3, 8, 1000});
  EXPECT_TRUE(work.contractions.empty());
  EXPECT_EQ(work.pointwise_ops, 2 * 3 * 8);
  EXPECT_THAT(Names(embedding, work.reads), ElementsAre("w", "id"));
  EXPECT_THAT(work.read_elements, ElementsAre(DoubleEq(2 * 3 * 8), DoubleEq(6)));
  // A table smaller than the lookups is read once.
  EXPECT_EQ(Work(embedding, {2, 3, 8, 4}).read_elements[0], 4 * 8);

  const OpRule& rotary = **FindRule("rotary");  // b s g r d c
  EXPECT_TRUE(Work(rotary, {2, 3, 2, 2, 8, 8}).contractions.empty());
  EXPECT_EQ(Work(rotary, {2, 3, 2, 2, 8, 8}).pointwise_ops, 2 * 3 * 2 * 2 * 8);
  EXPECT_TRUE(Work(**FindRule("cross_entropy"), {2, 3, 1000}).contractions.empty());
}

TEST(OpWorkTest, DotProductsPerElementAreNoMatmuls) {
  const OpRule backward = *Differentiate(**FindRule("rms_norm"), {"x", "gamma"});
  EXPECT_TRUE(Work(backward, {2, 3, 8}).contractions.empty());
}

TEST(OpWorkTest, SplitsAtStatements) {
  const OpRule& rule = **FindRule("cross_entropy");
  const OpWork head = WorkOf(rule, std::vector<int64_t>{2, 3, 10}, 0, 1);
  EXPECT_THAT(Names(rule, head.reads), ElementsAre("x"));
  EXPECT_THAT(Names(rule, head.writes), ElementsAre("m"));
  const OpWork tail = WorkOf(rule, std::vector<int64_t>{2, 3, 10}, 1, 5);
  EXPECT_THAT(Names(rule, tail.reads), ElementsAre("x", "m", "id"));
  EXPECT_THAT(Names(rule, tail.writes), ElementsAre("loss", "e", "z"));
}

TEST(OpWorkTest, RenamedTensorsAreNotMoved) {
  const OpRule backward = *Differentiate(**FindRule("residual_add"), {"x", "r"});
  const OpWork work = Work(backward, {2, 3, 8});
  EXPECT_TRUE(work.reads.empty());
  EXPECT_TRUE(work.writes.empty());
  EXPECT_EQ(work.pointwise_ops, 0);
}

bool HasHalos(const OpPartition& partition) {
  for (const StatementCut& cut : partition.statements) {
    for (Halo halo : cut.halos) {
      if (!halo.empty()) return true;
    }
  }
  return false;
}

// However an op is cut, its shards together do its work once (times the
// copies along axes that cut nothing of a statement).
TEST(OpWorkTest, FlopsAreConserved) {
  const DeviceMesh mesh = *DeviceMesh::Create({{"a", 2}, {"b", 3}});
  int contractions = 0;
  auto check = [&](const OpRule& rule) {
    const int n = static_cast<int>(rule.factors().size());
    const std::vector<int64_t> extents(n, 6);
    const OpWork whole = Work(rule, extents);
    for (int a = 0; a < n; ++a) {
      for (int b = 0; b < n; ++b) {
        FactorSplit split = FactorSplit::None(rule);
        split.axes[a].push_back(0);
        split.axes[b].push_back(1);
        AlignTiedCuts(rule, &split);
        std::vector<double> sum(whole.contractions.size());
        const OpPartition partition = *PartitionOp(rule, split, mesh, extents);
        for (int64_t device = 0; device < 6; ++device) {
          const OpWork work = WorkOf(rule, {partition, split, mesh, extents, device}, 0,
                                     static_cast<int>(rule.statements().size()));
          ASSERT_EQ(work.contractions.size(), sum.size());
          for (size_t c = 0; c < sum.size(); ++c) sum[c] += work.contractions[c].flops;
        }
        for (size_t c = 0; c < sum.size(); ++c) {
          const std::vector<int>& box = rule.statements()[whole.contractions[c].statement].factors;
          auto in_box = [&](int factor) {
            return std::any_of(box.begin(), box.end(),
                               [&](int f) { return rule.ties()[f] == rule.ties()[factor]; });
          };
          const double copies = (in_box(a) ? 1 : 2) * (in_box(b) ? 1 : 3);
          const double once = whole.contractions[c].flops * copies;
          // Intermediate results that are read across borders are computed there, too.
          if (HasHalos(partition)) {
            EXPECT_GE(sum[c], once) << rule.DebugString();
          } else {
            EXPECT_EQ(sum[c], once) << rule.DebugString();
          }
          ++contractions;
        }
      }
    }
  };
  for (const std::string& name : RuleNames()) {
    const OpRule& rule = **FindRule(name);
    check(rule);
    absl::StatusOr<OpRule> backward = Differentiate(rule, DifferentiableInputs(rule));
    if (backward.ok()) check(*backward);
  }
  EXPECT_GT(contractions, 1000);
}

// A norm sums up each token's features and then goes over them again; its weight is read once.
TEST(OpWorkTest, NormsGoOverTheirRowsAgain) {
  const OpRule& rule = **FindRule("rms_norm");  // b s h
  const OpWork work = Work(rule, {2, 3, 5});
  ASSERT_THAT(Names(rule, work.reads), ElementsAre("x", "gamma"));
  EXPECT_THAT(work.reread_rows, ElementsAre(DoubleEq(5), DoubleEq(0)));
  EXPECT_THAT(work.read_elements, ElementsAre(DoubleEq(30), DoubleEq(5)));
}

// Those of a channel do not lie next to each other: long sums alone are read twice.
TEST(OpWorkTest, NormsOverOtherDimsHaveNoRows) {
  const OpRule rule = **FindRule("batch_norm(rank=2)");
  std::vector<int64_t> extents(rule.factors().size(), 4);
  EXPECT_THAT(Work(rule, extents).reread_rows, ::testing::Each(DoubleEq(0)));
}

TEST(OpWorkTest, PointwiseKernelsHaveNoRows) {
  const OpRule& rule = **FindRule("gelu");
  EXPECT_THAT(Work(rule, {2, 3, 5}).reread_rows, ElementsAre(DoubleEq(0)));
}

}  // namespace
}  // namespace plancast
