// Every op, under every legal split over a 2 x 3 mesh, equals the unsplit op
// in the prime field: shipped rules, their derived backward ops, and rules
// made at random.

#include <functional>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "graph/rule/op_rule.h"
#include "graph/split/op_split.h"
#include "gtest/gtest.h"
#include "tests/graph/random_rule.h"
#include "tests/graph/split_simulator.h"
#include "tests/testing/seed.h"

namespace plancast {
namespace {

const DeviceMesh& Mesh() {
  static const DeviceMesh* mesh = new DeviceMesh(*DeviceMesh::Create({{"a", 2}, {"b", 3}}));
  return *mesh;
}

// Parts that the class of `factor` is cut into.
int64_t PartsOf(const OpRule& rule, const FactorSplit& split, int factor) {
  int64_t parts = 1;
  for (size_t g = 0; g < rule.factors().size(); ++g) {
    if (rule.ties()[g] != rule.ties()[factor]) continue;
    for (int a : split.axes[g]) parts *= Mesh().size(a);
  }
  return parts;
}

// Keeps what `where r follows s` promises: an entry of table `tensor` in the i-th
// part of r points into the i-th part of s, or nowhere.
void KeepPromises(const OpRule& rule, const std::vector<int64_t>& extents, const FactorSplit& split,
                  int tensor, std::mt19937_64& random, Array<Field>* array) {
  const std::vector<int>& dims = rule.tensors()[tensor].factors;
  std::vector<Condition> promises;
  for (const Statement& s : rule.statements()) {
    for (const Condition& c : s.where) {
      const bool here = std::find(dims.begin(), dims.end(), c.left) != dims.end();
      if (c.is_promise() && here) promises.push_back(c);
    }
  }
  if (promises.empty()) return;
  ForEachIndex(array->shape, AllOf(array->shape), [&](const std::vector<int64_t>& at, int64_t e) {
    IndexRange tokens = {0, 1 << 20};
    for (const Condition& c : promises) {
      const int64_t slot = at[std::find(dims.begin(), dims.end(), c.left) - dims.begin()];
      const int64_t parts = PartsOf(rule, split, c.left);
      const int64_t part = slot / ((extents[c.left] + parts - 1) / parts);
      const IndexRange own = ShardIndices(extents[c.right()], parts, part, ShardPattern::kBlock)[0];
      tokens = {std::max(tokens.begin, own.begin), std::min(tokens.end, own.end)};
    }
    const bool empty = tokens.size() == 0 || random() % 6 == 0;
    array->values[e] =
        Field(empty ? -1 : tokens.begin + static_cast<int64_t>(random() % tokens.size()));
  });
}

// Small signed integers; index tensors point anywhere a little past the range,
// unless a promise says where.
std::vector<Array<Field>> DrawInputs(const OpRule& rule, const std::vector<int64_t>& extents,
                                     const FactorSplit& split, std::mt19937_64& random) {
  std::vector<Array<Field>> inputs;
  for (int t : rule.inputs()) {
    Array<Field> array = Array<Field>::Empty(ShapeOf(rule.tensors()[t], extents));
    const bool index = rule.tensors()[t].dtype == DType::kInt64;
    for (size_t e = 0; e < array.values.size(); ++e) {
      array.values[e] = Field(static_cast<int64_t>(random() % (index ? 5 : 7)) - (index ? 0 : 3));
      array.present[e] = true;
    }
    if (index) KeepPromises(rule, extents, split, t, random, &array);
    inputs.push_back(std::move(array));
  }
  return inputs;
}

// Sizes as small as the split allows; every other one does not divide.
std::vector<int64_t> ExtentsFor(const OpRule& rule, const FactorSplit& split, int trial) {
  std::vector<int64_t> extents;
  for (size_t f = 0; f < rule.factors().size(); ++f) {
    const int64_t parts = PartsOf(rule, split, static_cast<int>(f));
    bool conditional = false;
    for (const Statement& s : rule.statements()) {
      for (const Condition& c : s.where) {
        conditional |= c.Mentions(static_cast<int>(f));
      }
    }
    int64_t extent = std::max<int64_t>(parts, conditional ? 4 : 2);
    if (parts > 1 && (trial + f) % 2 == 1) ++extent;
    extents.push_back(extent);
  }
  return extents;
}

// Tied factors and those of recurrences are only cut into blocks.
bool CutsATie(const OpRule& rule, const FactorSplit& split) {
  for (size_t f = 0; f < split.axes.size(); ++f) {
    for (size_t g = 0; g < split.axes.size(); ++g) {
      if (f != g && !split.axes[f].empty() && rule.ties()[f] == rule.ties()[g]) return true;
    }
    for (const Statement& s : rule.statements()) {
      const bool runs = s.combine == Combine::kScan && s.scan.factor == static_cast<int>(f);
      if (runs && !split.axes[f].empty()) return true;
    }
  }
  return false;
}

bool CutsWhatIsWhole(const OpRule& rule, const FactorSplit& split) {
  for (size_t f = 0; f < split.axes.size(); ++f) {
    if (!split.axes[f].empty() && !rule.may_cut(static_cast<int>(f))) return true;
  }
  return false;
}

// Checks all assignments of the two axes to factors; returns how many.
int CheckAllSplits(const OpRule& rule, std::mt19937_64& random) {
  const int n = static_cast<int>(rule.factors().size());
  int checked = 0;
  for (int a = -1; a < n; ++a) {
    for (int b = -1; b < n; ++b) {
      for (ShardPattern pattern : {ShardPattern::kBlock, ShardPattern::kMirrored}) {
        FactorSplit split = FactorSplit::None(rule);
        split.patterns.assign(n, pattern);
        if (a >= 0) split.axes[a].push_back(0);
        if (b >= 0) split.axes[b].push_back(1);
        const std::vector<int64_t> extents = ExtentsFor(rule, split, checked);
        if (pattern == ShardPattern::kMirrored && CutsATie(rule, split)) continue;
        if (CutsWhatIsWhole(rule, split)) {
          EXPECT_FALSE(PartitionOp(rule, split, Mesh(), extents).ok()) << rule.DebugString();
          continue;
        }
        absl::StatusOr<OpPartition> partition = PartitionOp(rule, split, Mesh(), extents);
        if (!partition.ok()) {
          ADD_FAILURE() << partition.status() << "\n" << rule.DebugString();
          return checked;
        }
        const std::vector<Array<Field>> whole =
            EvaluateWhole(rule, extents, DrawInputs(rule, extents, split, random));
        const std::string difference =
            SplitSimulator<Field>(rule, Mesh(), split, extents).Compare(*partition, whole);
        if (!difference.empty()) {
          ADD_FAILURE() << difference << " with a on " << (a < 0 ? "-" : rule.factors()[a])
                        << ", b on " << (b < 0 ? "-" : rule.factors()[b]) << "\n"
                        << rule.DebugString() << "\n"
                        << partition->DebugString(rule, Mesh());
          return checked;
        }
        ++checked;
      }
    }
  }
  return checked;
}

// In slices, so that shards share the table.
constexpr int kSlices = 4;

class ShippedOpsTest : public testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Slices, ShippedOpsTest, testing::Range(0, kSlices));

TEST_P(ShippedOpsTest, TheyAndTheirBackwards) {
  std::mt19937_64 random(20240501 + static_cast<uint64_t>(GetParam()));
  const std::vector<std::string> names = RuleNames();
  int checked = 0, backwards = 0;
  for (size_t n = GetParam(); n < names.size(); n += kSlices) {
    const OpRule& rule = **FindRule(names[n]);
    checked += CheckAllSplits(rule, random);
    // By everything at once, and by each input alone.
    const std::vector<std::string> inputs = DifferentiableInputs(rule);
    std::vector<std::vector<std::string>> choices = {inputs};
    for (const std::string& input : inputs) choices.push_back({input});
    for (const std::vector<std::string>& wrt : choices) {
      absl::StatusOr<OpRule> backward = Differentiate(rule, wrt);
      if (!backward.ok()) continue;  // e.g. by the tables of rotary, or optimizers
      checked += CheckAllSplits(*backward, random);
      ++backwards;
    }
    if (HasFailure()) return;
  }
  std::cout << checked << " splits of ops and " << backwards << " backward ops\n";
  EXPECT_GT(backwards, 60);
}

// Strides, dilations, paddings and ranks other than the defaults.
TEST(OpOracleTest, BoundOpsAndTheirBackwards) {
  std::mt19937_64 random(20240502);
  for (const char* call : {"conv1d(stride=2, pad=1)",
                           "conv1d(dilation=2, pad=2)",
                           "conv1d(stride=3)",
                           "conv2d(pad=1)",
                           "conv2d(stride=2, pad=1, pad_w=0)",
                           "conv1d_depthwise(stride=2, dilation=2, pad=1)",
                           "conv_transpose1d(stride=2, pad=1)",
                           "conv_transpose1d(stride=3, dilation=2)",
                           "max_pool1d(stride=1, pad=1)",
                           "avg_pool1d(stride=3, pad=1)",
                           "slice(start=1, step=2)",
                           "pad(before=2)",
                           "roll(shift=2)",
                           "select(index=1, rank=2)",
                           "concat2(rank=0)",
                           "global_avg_pool(rank=2)",
                           "channel_bias(rank=2)",
                           "merge_dims(rank=0)",
                           "batch_norm(rank=2)",
                           "group_norm(rank=0)",
                           "local_response_norm(before=1, rank=0)",
                           "softmax_nd(rank=2)",
                           "matmul(rank=2)",
                           "relu6(rank=2)"}) {
    absl::StatusOr<OpRulePtr> rule = FindRule(call);
    ASSERT_TRUE(rule.ok()) << rule.status();
    CheckAllSplits(**rule, random);
    absl::StatusOr<OpRule> backward = Differentiate(**rule, DifferentiableInputs(**rule));
    ASSERT_TRUE(backward.ok()) << backward.status();
    CheckAllSplits(*backward, random);
    if (HasFailure()) return;
  }
}

TEST(OpOracleTest, RandomOps) {
  const uint64_t seed = TestSeed(3);
  std::mt19937_64 random(seed);
  RandomRules rules(seed, /*smooth=*/false);
  for (int i = 0; i < 150 && !HasFailure(); ++i) {
    const OpRule rule = rules.Next();
    CheckAllSplits(rule, random);
    absl::StatusOr<OpRule> again = OpRule::Parse(rule.DebugString());
    ASSERT_TRUE(again.ok()) << again.status() << "\n" << rule.DebugString();
    EXPECT_EQ(again->DebugString(), rule.DebugString());
    absl::StatusOr<OpRule> backward = Differentiate(rule, DifferentiableInputs(rule));
    if (backward.ok()) CheckAllSplits(*backward, random);
  }
}

// The oracle itself: a partition that owes too little, or claims too much, is
// told from a right one.
TEST(OpOracleTest, NoticesWrongPartitions) {
  std::mt19937_64 random(7);
  auto compare = [&](const std::string& name, const std::string& factor,
                     const std::function<void(const OpRule&, OpPartition*)>& spoil) {
    const OpRule& rule = **FindRule(name);
    FactorSplit split = FactorSplit::None(rule);
    split.axes[*rule.FindFactor(factor)] = {1};
    const std::vector<int64_t> extents(rule.factors().size(), 3);
    OpPartition partition = *PartitionOp(rule, split, Mesh(), extents);
    spoil(rule, &partition);
    return SplitSimulator<Field>(rule, Mesh(), split, extents)
        .Compare(partition, EvaluateWhole(rule, extents, DrawInputs(rule, extents, split, random)));
  };
  auto nothing = [](const OpRule&, OpPartition*) {};
  auto no_reductions = [](const OpRule&, OpPartition* p) { p->reductions.clear(); };
  for (const char* name : {"attention", "layer_norm", "softmax", "cross_entropy"}) {
    const char* factor = std::string(name) == "layer_norm"      ? "h"
                         : std::string(name) == "cross_entropy" ? "v"
                                                                : "t";
    EXPECT_EQ(compare(name, factor, nothing), "") << name;
    EXPECT_NE(compare(name, factor, no_reductions), "") << name;
  }
  EXPECT_NE(compare("attention", "t",
                    [](const OpRule&, OpPartition* p) {
                      p->reductions[0].combiner = InnerReduction::Combiner::kElementwise;
                    }),
            "");
  EXPECT_EQ(compare("conv1d", "i", nothing), "");
  EXPECT_NE(compare("conv1d", "i",
                    [](const OpRule& rule, OpPartition* p) {
                      Layout& x = p->tensors[rule.inputs()[0]];
                      x = Layout::Replicated(2);
                      x.placements[1] = Placement::Shard(2);
                    }),
            "");
  EXPECT_NE(compare("linear", "k",
                    [](const OpRule& rule, OpPartition* p) {
                      p->tensors[rule.outputs()[0]].placements[1] = Placement::Replicate();
                    }),
            "");
  EXPECT_NE(compare("linear", "k",
                    [](const OpRule& rule, OpPartition* p) {
                      p->tensors[rule.inputs()[0]].placements[1] = Placement::Shard(0);
                    }),
            "");
}

}  // namespace
}  // namespace plancast
