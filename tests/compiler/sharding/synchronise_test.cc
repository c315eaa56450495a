#include "compiler/sharding/synchronise.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/plan_under_test.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;

PlanOptions Options(int64_t dp, int zero = 0) {
  PlanOptions options;
  options.dp = dp;
  options.zero = zero;
  return options;
}

DeviceMesh Mesh() { return *DeviceMesh::Create({{"pp", 2}, {"dp", 4}, {"cp", 1}, {"tp", 2}}); }

TEST(GradientReductionTest, SharesItsBytesAmongMessages) {
  const BlockTemplate block = GradientReduction(Mesh(), Options(4), PlainProfile(), false, 1001, 4);
  ASSERT_EQ(block.comms.size(), 1u);
  EXPECT_EQ(block.block.size(), 4);
  EXPECT_EQ(block.comms[0].kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(block.comms[0].bytes, 1001);  // 4004 bytes in four
  EXPECT_THAT(block.comms[0].axes, ElementsAre(1));
  EXPECT_EQ(block.block.stream[0], StreamKind::kGradComm);
}

TEST(GradientReductionTest, CutWeightsAreReducedOverTheirCopies) {
  const BlockTemplate block = GradientReduction(Mesh(), Options(4), PlainProfile(), false, 1000, 1,
                                                {{{}, 300}, {{3}, 200}});
  ASSERT_EQ(block.block.size(), 2);
  EXPECT_THAT(block.comms[1].axes, ElementsAre(3));
  EXPECT_EQ(block.comms[1].bytes, 4 * 200);
}

TEST(GradientReductionTest, AxesThatCutTheBatchByHandAreReducedOverToo) {
  const BlockTemplate plain =
      GradientReduction(Mesh(), Options(4), PlainProfile(), false, 0, 1, {}, {{{1, 3}, 1000, 4}});
  ASSERT_EQ(plain.block.size(), 4);
  EXPECT_THAT(plain.comms[0].axes, ElementsAre(1, 3));
  EXPECT_EQ(plain.comms[0].bytes, 1000);
  EXPECT_EQ(plain.block.stream[0], StreamKind::kGradComm);
  // Nothing is sharded over them: shards are summed.
  const BlockTemplate sharded =
      GradientReduction(Mesh(), Options(4, 1), PlainProfile(), true, 0, 1, {}, {{{1, 3}, 1000, 1}});
  ASSERT_EQ(sharded.block.size(), 2);
  EXPECT_THAT(sharded.comms[0].axes, ElementsAre(1));
  EXPECT_EQ(sharded.comms[0].kind, CollectiveKind::kReduceScatter);
  EXPECT_THAT(sharded.comms[1].axes, ElementsAre(3));
  EXPECT_EQ(sharded.comms[1].kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(sharded.comms[1].bytes, 4 * 250);
}

TEST(GradientReductionTest, ZeroOneScatters) {
  const BlockTemplate block =
      GradientReduction(Mesh(), Options(4, 1), PlainProfile(), true, 1000, 1);
  EXPECT_EQ(block.comms[0].kind, CollectiveKind::kReduceScatter);
}

TEST(ParameterGatherTest, ListsOfPartsAreCopiedTensorByTensor) {
  ReturnStyle style;
  style.listed = 10;
  style.launches = 2.5;
  const BlockTemplate block = ParameterGather(Mesh(), Options(4, 1), 1000, 2, 1, {}, {}, style);
  ASSERT_EQ(block.block.size(), 3);
  ASSERT_EQ(block.kernels.size(), 2u);
  EXPECT_EQ(block.comms[0].bytes, 2000);
  EXPECT_EQ(block.kernels[0].launches, 4);  // a flat tensor for each rank
  EXPECT_EQ(block.kernels[0].read_bytes, 2000);
  EXPECT_EQ(block.kernels[1].launches, 2.5 * 10 * 4);
  EXPECT_EQ(block.kernels[1].write_bytes, 2 * 2000);
}

TEST(ParameterGatherTest, OwnersOfWholeTensorsBroadcastInTurn) {
  const auto with = [](int64_t owners) {
    ReturnStyle style;
    style.owners = owners;
    return ParameterGather(Mesh(), Options(4, 1), 1000, 2, 1, {}, {}, style);
  };
  const BlockTemplate few = with(3);
  EXPECT_EQ(few.block.size(), 3);
  EXPECT_EQ(few.comms[0].kind, CollectiveKind::kBroadcast);
  EXPECT_EQ(few.comms[0].bytes, 667);
  EXPECT_EQ(with(100).block.size(), 4);  // ranks
}

}  // namespace
}  // namespace plancast
