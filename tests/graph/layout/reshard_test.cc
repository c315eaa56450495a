#include "graph/layout/reshard.h"

#include <cmath>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Placement kR = Placement::Replicate(), kP = Placement::Partial(), kS0 = Placement::Shard(0),
                kS1 = Placement::Shard(1);

DeviceMesh Mesh(int64_t dp, int64_t tp) { return *DeviceMesh::Create({{"dp", dp}, {"tp", tp}}); }

ReshardSide Side(int64_t dp, int64_t tp, Layout layout, int64_t first_device = 0) {
  return {Mesh(dp, tp), std::move(layout), first_device};
}

// [batch, seq, hidden] from dp=4 tp=4 on devices 0 to 15 to dp=2 tp=8 on 16 to 31.
constexpr int64_t kBatch = 16, kSeq = 32, kHidden = 8, kElements = kBatch * kSeq * kHidden;
ReshardProblem Activations(Placement source_tp, Placement target_tp) {
  return {
      {kBatch, kSeq, kHidden}, Side(4, 4, {{kS0, source_tp}}), Side(2, 8, {{kS0, target_tp}}, 16)};
}

std::vector<ReshardProgram> Plans(const ReshardProblem& problem) {
  absl::StatusOr<std::vector<ReshardProgram>> plans = PlanReshards(problem);
  EXPECT_OK(plans);
  return *std::move(plans);
}

TEST(ReshardTest, CopiesOverTensorParallelDevices) {
  const std::vector<ReshardProgram> plans = Plans(Activations(kR, kR));
  ASSERT_EQ(plans.size(), 3u);
  // Sixteen devices take half of the batch, from two of the four parts; each of the four copies of
  // a part serves two devices.
  EXPECT_EQ(plans[0].crossing(), 8 * kElements);
  EXPECT_EQ(plans[0].DebugString(),
            "send_receive\n"
            "  32 messages, 32768 elements\n"
            "  devices 0..15 send 2 of 1024\n"
            "  devices 0..15 receive 2 of 1024");
  // An eighth of it, then a gather; an eighth lies inside one part.
  EXPECT_EQ(plans[1].crossing(), kElements);
  EXPECT_EQ(plans[1].DebugString(),
            "scatter_gather(tp)\n"
            "  16 messages, 4096 elements\n"
            "  devices 0..15 send 1 of 256\n"
            "  devices 0..15 receive 1 of 256\n"
            "  all_gather(tp) 2048");
  EXPECT_EQ(plans[1].after[0].received, kElements / 2 * 7 / 8);
  // Each part once, to two devices of each half in turn.
  EXPECT_EQ(plans[2].crossing(), kElements);
  EXPECT_EQ(plans[2].DebugString(),
            "broadcast(tp)\n"
            "  4 messages, 4096 elements\n"
            "  devices 0,4,8,12 send 1 of 1024\n"
            "  devices 1..3,5..7,9..11,13..15 send nothing\n"
            "  devices 0..1,8..9 receive 1 of 1024\n"
            "  devices 2..7,10..15 receive nothing\n"
            "  broadcast(tp) 2048");
  EXPECT_EQ(plans[2].transfers.DebugString(),
            "0 -> 0: 1024 [0:4, 0:32, 0:8]\n"
            "4 -> 1: 1024 [4:8, 0:32, 0:8]\n"
            "8 -> 8: 1024 [8:12, 0:32, 0:8]\n"
            "12 -> 9: 1024 [12:16, 0:32, 0:8]");
}

TEST(ReshardTest, SequenceShardsCrossOnce) {
  const std::vector<ReshardProgram> plans = Plans(Activations(kS1, kS1));
  ASSERT_EQ(plans.size(), 1u);  // there are no copies to gather or to broadcast
  EXPECT_EQ(plans[0].crossing(), kElements);
  EXPECT_EQ(plans[0].DebugString(),
            "send_receive\n"
            "  32 messages, 4096 elements\n"
            "  devices 0..15 send 2 of 128\n"
            "  devices 0..15 receive 2 of 128");
}

TEST(ReshardTest, ShardsBecomeCopiesByOneGather) {
  const std::vector<ReshardProgram> plans = Plans(Activations(kS1, kR));
  ASSERT_EQ(plans.size(), 3u);
  EXPECT_EQ(plans[0].crossing(), 8 * kElements);
  EXPECT_EQ(plans[1].crossing(), kElements);
  // Each slice is what one device has, though seq has shards of a quarter.
  EXPECT_EQ(plans[1].transfers.messages(), 16);
  EXPECT_EQ(plans[2].crossing(), kElements);
}

TEST(ReshardTest, EqualMeshesSendToTheirOwnCoordinates) {
  for (const Layout& layout : {Layout{{kS0, kR}}, Layout{{kR, kR}}, Layout{{kS0, kS1}}}) {
    for (const ReshardProgram& plan :
         Plans({{8, 4, 8}, Side(4, 2, layout), Side(4, 2, layout, 8)})) {
      if (plan.strategy == ReshardStrategy::kBroadcast) continue;
      const int64_t gathered =
          plan.after.empty() ? 1 : plan.problem.target.mesh.SizeOf(plan.after[0].axes);
      const int64_t local = 8 * 4 * 8 / layout.ShardCount(Mesh(4, 2));
      for (int64_t device = 0; device < 8; ++device) {
        EXPECT_THAT(plan.transfers.From(device),
                    ElementsAre(Transfer{device, device, local / gathered}))
            << plan.DebugString();
        EXPECT_EQ(plan.TargetTraffic(device).received, local);
      }
    }
  }
}

TEST(ReshardTest, GathersOverTheInnermostAxesFirst) {
  const std::vector<ReshardProgram> plans =
      Plans({{8, 8}, Side(2, 2, {{kS0, kR}}), Side(2, 4, {{kR, kR}}, 4)});
  ASSERT_EQ(plans.size(), 4u);
  EXPECT_THAT(plans[1].after[0].axes, ElementsAre(1));
  EXPECT_EQ(plans[1].crossing(), 2 * 64);
  EXPECT_THAT(plans[2].after[0].axes, ElementsAre(0, 1));
  EXPECT_EQ(plans[2].crossing(), 64);
  EXPECT_EQ(plans[3].strategy, ReshardStrategy::kBroadcast);
}

TEST(ReshardTest, DevicesOfBothMeshesOnlySend) {
  // Devices 0 and 1 hold halves; 0 to 3 shall hold everything. A gather would bring them what they
  // have.
  const std::vector<ReshardProgram> plans =
      Plans({{8}, Side(2, 1, {{kS0, kR}}), Side(4, 1, {{kR, kR}})});
  ASSERT_EQ(plans.size(), 1u);
  EXPECT_EQ(plans[0].crossing(), 4 * 8 - 8);
  EXPECT_EQ(plans[0].TargetTraffic(0).received, 4);
  EXPECT_EQ(plans[0].TargetTraffic(3).received, 8);
}

TEST(ReshardTest, ScalarsAreSentOrBroadcast) {
  const std::vector<ReshardProgram> plans =
      Plans({{}, Side(2, 1, {{kR, kR}}), Side(2, 2, {{kR, kR}}, 2)});
  ASSERT_EQ(plans.size(), 2u);
  EXPECT_EQ(plans[0].crossing(), 4);
  EXPECT_EQ(plans[1].crossing(), 1);
}

TEST(ReshardTest, GradientsAreSummedBeforeTheyGoBack) {
  const auto plans = PlanGradientReshards(Activations(kR, kR), {{kS0, kP}});
  ASSERT_OK(plans);
  ASSERT_EQ(plans->size(), 6u);
  EXPECT_EQ((*plans)[0].DebugString(),
            "send_receive\n"
            "  all_reduce(tp) 2048\n"
            "  16 messages, 16384 elements\n"
            "  devices 0..15 send 1 of 1024\n"
            "  devices 0..15 receive 1 of 1024");
  // Eight shards of a half of the batch, of which a device needs those of its part.
  EXPECT_EQ((*plans)[4].DebugString(),
            "scatter_gather(tp)\n"
            "  reduce_scatter(tp) 2048\n"
            "  16 messages, 4096 elements\n"
            "  devices 0..15 send 1 of 256\n"
            "  devices 0..15 receive 1 of 256\n"
            "  all_gather(tp) 1024");
  EXPECT_EQ((*plans)[5].strategy, ReshardStrategy::kBroadcast);
}

TEST(ReshardTest, RefusesWhatCannotCross) {
  EXPECT_THAT(PlanReshards(Activations(kP, kR)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("source: axis `tp` holds partial values")));
  const Placement halo = Placement::Shard(0, ShardPattern::kBlock, {1, 1});
  EXPECT_THAT(PlanGradientReshards(Activations(kR, kR), {{halo, kR}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("a gradient with halos")));
}

// Prices of a link between meshes and one inside the target.
ReshardPrices Prices(double across, double within, double message = 0) {
  ReshardPrices prices;
  prices.transfers = [=](const PairTransfers& transfers) {
    return BusiestDevice(transfers, [=](const Transfer& t) {
      return message + across * static_cast<double>(t.elements);
    });
  };
  prices.collective = [=](const DeviceMesh&, const RelayoutStep& step) {
    return within * static_cast<double>(step.received);
  };
  return prices;
}

TEST(ReshardTest, TheCheapestIsTaken) {
  const std::vector<ReshardProgram> plans = Plans(Activations(kR, kR));
  const auto strategy = [&](const ReshardPrices& prices) {
    return plans[*CheapestReshard(plans, prices)].strategy;
  };
  // A gather inside the mesh is nearly free: 256 elements across in place of 2048 or 1024.
  EXPECT_EQ(strategy(Prices(1, 0.001)), ReshardStrategy::kScatterGather);
  // It costs as much as sending all: then nothing is gained by it.
  EXPECT_EQ(strategy(Prices(1, 1.5)), ReshardStrategy::kSendReceive);
  // 256 + 0.6 * 1792 and max(1024, 0.6 * 2048).
  EXPECT_EQ(PriceOf(plans[1], Prices(1, 0.6)), 256 + 0.6 * 1792);
  EXPECT_EQ(PriceOf(plans[2], Prices(1, 0.6)), 0.6 * 2048);
  EXPECT_EQ(strategy(Prices(1, 0.6)), ReshardStrategy::kBroadcast);
  // Equal prices: the fewest elements across, then the fewest messages.
  EXPECT_EQ(strategy(Prices(0, 0)), ReshardStrategy::kBroadcast);
  EXPECT_THAT(CheapestReshard(plans, Prices(INFINITY, 0)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("finite price")));
}

TEST(ReshardTest, ReductionsArePartOfThePrice) {
  const auto plans = PlanGradientReshards(Activations(kR, kR), {{kS0, kP}});
  ASSERT_OK(plans);
  // What a ring over eight devices brings: twice 7/8 of 2048, or once.
  EXPECT_EQ((*plans)[0].before[0].received, 2 * 1792);
  EXPECT_EQ(PriceOf((*plans)[0], Prices(1, 0.5)), 1792 + 1024);
  EXPECT_EQ((*plans)[4].before[0].received, 1792);
  EXPECT_EQ(PriceOf((*plans)[4], Prices(1, 0.5)), 0.5 * 1792 + 256 + 0.5 * 768);
  // Each device is the first to receive one of the four pieces, and passes it on meanwhile.
  EXPECT_EQ(PriceOf((*plans)[5], Prices(1, 0.5)), 0.5 * 1792 + 0.5 * 768);
  EXPECT_EQ(*CheapestReshard(*plans, Prices(1, 0.5)), 5);
}

}  // namespace
}  // namespace plancast
