#include "graph/layout/pair_transfers.h"

#include <string>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const Placement kR = Placement::Replicate(), kS0 = Placement::Shard(0), kS1 = Placement::Shard(1);

DeviceMesh Mesh(int64_t dp, int64_t tp) { return *DeviceMesh::Create({{"dp", dp}, {"tp", tp}}); }

ReshardSide Side(int64_t dp, int64_t tp, Layout layout, int64_t first_device = 0) {
  return {Mesh(dp, tp), std::move(layout), first_device};
}

// From devices 0 on to devices 1000 on.
PairTransfers Plan(const std::vector<int64_t>& shape, const ReshardSide& source,
                   ReshardSide target) {
  target.first_device += 1000;
  absl::StatusOr<PairTransfers> plan = PairTransfers::Plan(shape, source, target);
  EXPECT_OK(plan);
  return *std::move(plan);
}

TEST(PairTransfersTest, UnevenShardsKeepTheirSizes) {
  // Rows 3 3 3 1 become 5 5.
  const PairTransfers plan = Plan({10}, Side(4, 1, {{kS0, kR}}), Side(2, 1, {{kS0, kR}}));
  EXPECT_EQ(plan.DebugString(),
            "0 -> 0: 3 [0:3]\n"
            "1 -> 0: 2 [3:5]\n"
            "1 -> 1: 1 [5:6]\n"
            "2 -> 1: 3 [6:9]\n"
            "3 -> 1: 1 [9:10]");
  EXPECT_EQ(plan.elements(), 10);
  EXPECT_EQ(plan.messages(), 5);
}

TEST(PairTransfersTest, PartsThatAreEmptySendNothing) {
  // Rows 2 2 1 and none.
  const PairTransfers plan = Plan({5}, Side(4, 1, {{kS0, kR}}), Side(1, 1, {{kR, kR}}));
  EXPECT_THAT(plan.From(3), IsEmpty());
  EXPECT_THAT(plan.To(0), ElementsAre(Transfer{0, 0, 2}, Transfer{1, 0, 2}, Transfer{2, 0, 1}));
}

TEST(PairTransfersTest, CopiesShareTheSending) {
  // Eight devices want what four have: two each.
  const PairTransfers more = Plan({8}, Side(1, 4, {{kR, kR}}), Side(1, 8, {{kR, kR}}));
  EXPECT_THAT(more.From(1), ElementsAre(Transfer{1, 1, 8}, Transfer{1, 5, 8}));
  // Two want it: one from each half of the four.
  const PairTransfers fewer = Plan({8}, Side(1, 4, {{kR, kR}}), Side(1, 2, {{kR, kR}}));
  EXPECT_EQ(fewer.DebugString(), "0 -> 0: 8 [0:8]\n2 -> 1: 8 [0:8]");
}

TEST(PairTransfersTest, LargeMessagesAreShared) {
  // Parts of 4 4 4 4 1 for two copies: the last goes to a copy with eight.
  const PairTransfers plan = Plan({17}, Side(2, 1, {{kR, kR}}), Side(5, 1, {{kS0, kR}}));
  const std::vector<TransferClass> senders = plan.Senders();
  ASSERT_EQ(senders.size(), 2u);
  EXPECT_THAT(senders[0].messages, ElementsAre(4, 4, 1));
  EXPECT_THAT(senders[0].devices, ElementsAre(0));
  EXPECT_EQ(senders[0].elements(), 9);
  EXPECT_THAT(senders[1].messages, ElementsAre(4, 4));
}

TEST(PairTransfersTest, EqualMeshesAndLayoutsSendToTheirOwnCoordinates) {
  const std::vector<Layout> layouts = {{{kR, kR}}, {{kS0, kR}}, {{kR, kS1}}, {{kS0, kS1}}};
  for (const Layout& layout : layouts) {
    const PairTransfers plan = Plan({9, 10}, Side(3, 4, layout), Side(3, 4, layout));
    for (int64_t device = 0; device < 12; ++device) {
      const std::vector<Transfer> messages = plan.From(device);
      ASSERT_EQ(messages.size(), 1u);
      EXPECT_EQ(messages[0].target, device);
    }
  }
}

TEST(PairTransfersTest, ClassesHaveTheDevicesThatDoTheSame) {
  const PairTransfers plan = Plan({8, 8}, Side(2, 2, {{kS0, kR}}), Side(2, 4, {{kR, kS1}}));
  const std::vector<TransferClass> senders = plan.Senders(), receivers = plan.Receivers();
  ASSERT_EQ(senders.size(), 1u);
  EXPECT_THAT(senders[0].devices, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(senders[0].messages, ElementsAre(8, 8, 8, 8));
  ASSERT_EQ(receivers.size(), 1u);
  EXPECT_THAT(receivers[0].messages, ElementsAre(8, 8));
}

TEST(PairTransfersTest, MirroredShardsAreTwoRanges) {
  const Placement mirrored = Placement::Shard(0, ShardPattern::kMirrored);
  const PairTransfers plan = Plan({8}, Side(1, 1, {{kR, kR}}), Side(2, 1, {{mirrored, kR}}));
  EXPECT_EQ(plan.DebugString(), "0 -> 0: 4 [0:2+6:8]\n0 -> 1: 4 [2:4+4:6]");
}

TEST(PairTransfersTest, HalosAreReceivedAndNotSent) {
  const Placement halo = Placement::Shard(0, ShardPattern::kBlock, {1, 1});
  const PairTransfers plan = Plan({8}, Side(2, 1, {{halo, kR}}), Side(2, 1, {{halo, kR}}));
  EXPECT_EQ(plan.DebugString(),
            "0 -> 0: 4 [0:4]\n0 -> 1: 1 [3:4]\n1 -> 0: 1 [4:5]\n1 -> 1: 4 [4:8]");
}

TEST(PairTransfersTest, DevicesOfBothMeshesSendThemselvesNothing) {
  // Devices 0 and 1 hold halves; 0 to 3 shall hold everything.
  const auto plan = PairTransfers::Plan({8}, Side(2, 1, {{kS0, kR}}), Side(4, 1, {{kR, kR}}));
  ASSERT_OK(plan);
  EXPECT_EQ(plan->kept(), 8);
  EXPECT_EQ(plan->DebugString(),
            "0 -> 1: 4 [0:4]\n0 -> 2: 4 [0:4]\n0 -> 3: 4 [0:4]\n"
            "1 -> 0: 4 [4:8]\n1 -> 2: 4 [4:8]\n1 -> 3: 4 [4:8]");
}

TEST(PairTransfersTest, SlicesAndSinglePieces) {
  const DeviceMesh mesh = Mesh(1, 4);
  const std::vector<int64_t> shape = {2, 6};
  const Tiling source = Tiling::Of(Mesh(2, 1), shape, {{kS0, kR}});
  const Tiling target = Tiling::Of(mesh, shape, Layout::Replicated(2));
  EXPECT_EQ(target.copies, 4);
  EXPECT_EQ(target.Elements(0), 12);
  const Tiling slices = target.Sliced(mesh, {1}, {2, 2});
  EXPECT_EQ(slices.copies, 1);
  EXPECT_EQ(
      PairTransfers::Between(source, slices, 1000, /*once=*/false).DebugString(),
      "0 -> 0: 3 [0:1, 0:3]\n0 -> 1: 3 [0:1, 3:6]\n1 -> 2: 3 [1:2, 0:3]\n1 -> 3: 3 [1:2, 3:6]");
  EXPECT_EQ(PairTransfers::Between(source, target, 1000, /*once=*/true).DebugString(),
            "0 -> 0: 6 [0:1, 0:6]\n1 -> 1: 6 [1:2, 0:6]");
}

TEST(PairTransfersTest, RefusesWhatCannotCross) {
  const auto message = [](const std::vector<int64_t>& shape, Placement source, Placement target) {
    const auto plan =
        PairTransfers::Plan(shape, Side(2, 4, {{kS0, source}}), Side(2, 4, {{kS0, target}}, 8));
    EXPECT_THAT(plan, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("")));
    return std::string(plan.status().message());
  };
  EXPECT_EQ(message({8, 8}, Placement::Partial(), kR),
            "source: axis `tp` holds partial values, [dp: Shard(0), tp: Partial(sum)], which do "
            "not go from mesh to mesh: reduce them on their own (dp=2 tp=4) first.");
  EXPECT_THAT(message({8, 8}, kR, Placement::Partial()),
              HasSubstr("target: axis `tp` holds partial values"));
  EXPECT_THAT(message({8, 8}, kR, Placement::Shard(2)),
              HasSubstr("target: axis `tp` shards dim 2 of a tensor with 2 dims"));
  EXPECT_THAT(message({4, -1}, kR, kR), HasSubstr("a dim of size -1"));
  const int64_t large = int64_t{1} << 31;
  EXPECT_THAT(message({large, large}, kR, kR), HasSubstr("more elements than 64 bits count"));
  // A single device has the whole sum.
  EXPECT_OK(PairTransfers::Plan({4}, Side(1, 1, {{Placement::Partial(), kR}}),
                                Side(1, 1, {{kR, kR}}, 1)));
}

TEST(PairTransfersTest, LargeMeshes) {
  const Layout rows = {{kS0, kS0}}, columns = {{kS1, kS1}}, copies = {{kR, kR}},
               batch = {{kS0, kR}};
  for (const auto& [source, target, messages] :
       {std::tuple(rows, columns, 512 * 512), std::tuple(rows, copies, 512 * 512),
        std::tuple(copies, rows, 512), std::tuple(rows, rows, 512),
        std::tuple(batch, batch, 4 * 512)}) {
    const PairTransfers plan = Plan({4096, 4096}, Side(64, 8, source), Side(16, 32, target));
    EXPECT_EQ(plan.messages(), messages);
    EXPECT_EQ(plan.elements(), int64_t{4096} * 4096 * 512 / target.ShardCount(Mesh(16, 32)));
    EXPECT_EQ(plan.Senders().size(), 1u);
    EXPECT_EQ(plan.Receivers().size(), 1u);
  }
}

}  // namespace
}  // namespace plancast
