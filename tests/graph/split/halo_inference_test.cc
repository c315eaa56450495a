#include "graph/split/halo_inference.h"

#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

DeviceMesh Mesh() { return *DeviceMesh::Create({{"dp", 2}, {"tp", 4}}); }

// `split`: "i:tp b:dp"; `extents` in the order of the rule's factors.
absl::StatusOr<OpPartition> Partition(const OpRule& rule, const std::string& split,
                                      const std::vector<int64_t>& extents) {
  FactorSplit axes = FactorSplit::None(rule);
  for (absl::string_view part : absl::StrSplit(split, ' ', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> cut = absl::StrSplit(part, ':');
    axes.axes[*rule.FindFactor(cut.first)].push_back(*Mesh().FindAxis(cut.second));
  }
  return PartitionOp(rule, axes, Mesh(), extents);
}

std::string Text(const OpRule& rule, const std::string& split,
                 const std::vector<int64_t>& extents) {
  const absl::StatusOr<OpPartition> partition = Partition(rule, split, extents);
  return partition.ok() ? partition->DebugString(rule, Mesh())
                        : std::string(partition.status().message());
}

OpRule Rule(const std::string& text) {
  absl::StatusOr<OpRule> rule = OpRule::Parse(text);
  EXPECT_TRUE(rule.ok()) << rule.status();
  return *std::move(rule);
}

// A 3-wide window that keeps the size: one neighbour on either side.
const std::vector<int64_t> kSame = {8, 16, 32, 8, 32, 3};  // b n i c p k

TEST(HaloInferenceTest, SpatialSplitOfAConvolution) {
  const OpRule conv = **FindRule("conv1d(pad=1)");
  EXPECT_EQ(Text(conv, "i:tp", kSame),
            "in x [tp: Shard(2, halo 1+1)]\n"
            "in w []\n"
            "out y [tp: Shard(2)]\n");
  // The same whichever of the tied factors is named.
  EXPECT_EQ(Text(conv, "p:tp", kSame), Text(conv, "i:tp", kSame));
  EXPECT_EQ(Text(conv, "i:tp b:dp", kSame),
            "in x [dp: Shard(0), tp: Shard(2, halo 1+1)]\n"
            "in w []\n"
            "out y [dp: Shard(0), tp: Shard(2)]\n");
}

TEST(HaloInferenceTest, ChannelAndWindowSplits) {
  const OpRule conv = **FindRule("conv1d(pad=1)");
  EXPECT_EQ(Text(conv, "n:tp", kSame), "in x []\nin w [tp: Shard(0)]\nout y [tp: Shard(1)]\n");
  EXPECT_EQ(Text(conv, "c:tp", kSame),
            "in x [tp: Shard(1)]\nin w [tp: Shard(1)]\nout y [tp: Partial(sum)]\n");
  EXPECT_EQ(Text(conv, "k:dp", kSame), "in x []\nin w [dp: Shard(2)]\nout y [dp: Partial(sum)]\n");
}

// The input gradient owns the input's blocks and reads the output's gradient
// across their borders; the weight gradient is a sum over both.
TEST(HaloInferenceTest, BackwardOfASpatialSplit) {
  const OpRule conv = **FindRule("conv1d(pad=1)");
  EXPECT_EQ(Text(*Differentiate(conv, {"x"}), "i:tp", kSame),
            "in d_y [tp: Shard(2, halo 1+1)]\n"
            "in w []\n"
            "out d_x [tp: Shard(2)]\n");
  EXPECT_EQ(Text(*Differentiate(conv, {"w"}), "i:tp", kSame),
            "in d_y [tp: Shard(2)]\n"
            "in x [tp: Shard(2, halo 1+1)]\n"
            "out d_w [tp: Partial(sum)]\n");
}

// The bias gradient knows nothing of the input's positions, which are cut too.
TEST(HaloInferenceTest, GradientsWithoutTheMapKeepTheCut) {
  const OpRule backward = *Differentiate(**FindRule("conv2d_bias"), {"bias"});
  const std::vector<int64_t> extents(backward.factors().size(), 8);
  EXPECT_EQ(Text(backward, "i:tp p:tp", extents),
            "in d_y [tp: Shard(2)]\nout d_bias [tp: Partial(sum)]\n");
}

TEST(HaloInferenceTest, StrideDilationAndPaddingMoveTheHalo) {
  // Stride 2: p runs over 64 while i runs over 32; a block's last window ends
  // where the next block begins.
  EXPECT_THAT(Text(**FindRule("conv1d(stride=2, pad=1)"), "i:tp", {8, 16, 32, 8, 64, 3}),
              HasSubstr("in x [tp: Shard(2, halo 1+0)]"));
  EXPECT_THAT(Text(**FindRule("conv1d(stride=2, pad=3)"), "i:tp", {8, 16, 32, 8, 64, 7}),
              HasSubstr("in x [tp: Shard(2, halo 3+2)]"));
  EXPECT_THAT(Text(**FindRule("conv1d(dilation=4, pad=4)"), "i:tp", kSame),
              HasSubstr("in x [tp: Shard(2, halo 4+4)]"));
  // One-wide windows and windows as wide as their stride need no neighbours.
  EXPECT_THAT(Text(**FindRule("conv1d(stride=2)"), "i:tp", {8, 16, 32, 8, 64, 1}),
              HasSubstr("in x [tp: Shard(2)]"));
  EXPECT_THAT(Text(**FindRule("conv1d(stride=2)"), "i:tp", {8, 16, 32, 8, 64, 2}),
              HasSubstr("in x [tp: Shard(2)]"));
  // Without padding blocks of input and result drift apart by two over all.
  EXPECT_THAT(Text(**FindRule("conv1d"), "i:tp", {8, 16, 30, 8, 32, 3}),
              HasSubstr("in x [tp: Shard(2, halo 0+2)]"));
}

TEST(HaloInferenceTest, WindowsAsWideAsTheInputNeedAllOfIt) {
  EXPECT_EQ(Text(**FindRule("conv1d(pad=15)"), "i:tp", {8, 16, 32, 8, 32, 31}),
            "in x []\nin w []\nout y [tp: Shard(2)]\n");
}

TEST(HaloInferenceTest, MergedDimsAreCutWithTheirOuterPart) {
  const OpRule& flatten = **FindRule("flatten");  // b f c i j
  EXPECT_EQ(Text(flatten, "f:tp", {8, 8 * 6, 8, 2, 3}),
            "in x [tp: Shard(1)]\nout y [tp: Shard(1)]\n");
  // Inner parts are scattered over the merged dim: they leave a sum.
  EXPECT_EQ(Text(flatten, "i:dp", {8, 8 * 6, 8, 2, 3}),
            "in x [dp: Shard(2)]\nout y [dp: Partial(sum)]\n");
  const OpRule& grouped = **FindRule("conv2d_grouped");
  std::vector<int64_t> extents(grouped.factors().size(), 8);
  extents[*grouped.FindFactor("g")] = 4;
  extents[*grouped.FindFactor("m")] = extents[*grouped.FindFactor("h")] = 32;
  EXPECT_EQ(Text(grouped, "m:tp", extents),
            "in x [tp: Shard(1)]\nin w [tp: Shard(0)]\nout y [tp: Shard(1)]\n");
}

// An intermediate result is computed as far as it is read: no exchange inside.
TEST(HaloInferenceTest, StencilsInOneOpAreComputedAcrossBorders) {
  const OpRule blur = Rule(
      "blur2(x) -> (y) {\n"
      "  u[i] += x[p] / 3 where p == i + k - 1\n"
      "  y[j] += u[i] / 3 where i == j + l - 1\n}");
  const std::vector<int64_t> extents = {32, 32, 3, 32, 3};  // i p k j l
  const absl::StatusOr<OpPartition> partition = Partition(blur, "j:tp", extents);
  ASSERT_TRUE(partition.ok()) << partition.status();
  EXPECT_EQ(partition->DebugString(blur, Mesh()),
            "in x [tp: Shard(0, halo 2+2)]\nout y [tp: Shard(0)]\n");
  FactorSplit split = FactorSplit::None(blur);
  split.axes[0] = {1};
  AlignTiedCuts(blur, &split);
  const auto size = [&](int statement, int64_t device) {
    return CountOf(StatementIndices(*partition, split, Mesh(), extents, statement,
                                    device)[statement == 0 ? 0 : 3]);
  };
  EXPECT_EQ(size(0, 0), 9);   // at the border
  EXPECT_EQ(size(0, 1), 10);  // one on either side
  EXPECT_EQ(size(1, 1), 8);
  const DeviceMesh mesh = Mesh();
  const OpWork work = WorkOf(blur, {*partition, split, mesh, extents}, 0, 1);
  EXPECT_EQ(work.pointwise_ops, 10 * 3);
  EXPECT_EQ(work.read_elements[0], 12);
  const OpWork first = WorkOf(blur, {*partition, split, mesh, extents, /*device=*/0}, 0, 1);
  EXPECT_EQ(first.pointwise_ops, 9 * 3);
  EXPECT_EQ(first.read_elements[0], 10);
}

// A statement that selects one index is a part of the result where that index
// is elsewhere.
TEST(HaloInferenceTest, ConstantIndicesOwnNothingElsewhere) {
  const OpRule rule = Rule("f(x) -> (y) { u[b] = x[b,1]\n y[b] = tanh(u[b]) }");
  EXPECT_EQ(Text(rule, "x.1:dp", {4, 4}),
            "in x [dp: Shard(1)]\nout y []\nowes sum(dp) of u after statement 0\n");
}

TEST(HaloInferenceTest, TiedFactorsAreCutIntoBlocks) {
  const OpRule& conv = **FindRule("conv1d");
  FactorSplit split = FactorSplit::None(conv);
  split.patterns.assign(conv.factors().size(), ShardPattern::kMirrored);
  split.axes[*conv.FindFactor("i")] = {1};
  EXPECT_EQ(PartitionOp(conv, split, Mesh(), kSame).status().message(),
            "op `conv1d`: factor `i` is tied to `p`, so it is cut into blocks, not "
            "mirrored.");
  EXPECT_THAT(Text(conv, "i:tp p:dp", {8, 16, 32, 8, 32, 3}),
              HasSubstr("in x [dp: Shard(2, halo 0+2), tp: Shard(2, halo 0+2)]"));
  EXPECT_THAT(Text(conv, "i:tp", {8, 16, 2, 8, 32, 3}), HasSubstr("more parts than elements"));
}

}  // namespace
}  // namespace plancast
