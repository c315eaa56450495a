#include "compiler/program/pipeline_transfer.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/plan_under_test.h"

namespace plancast {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::Not;

constexpr int64_t kStream = 2 * 2 * 16 * 64;  // bf16 x batch x seq x hidden

PipelineTransfer Transfer() {
  PipelineTransfer transfer;
  transfer.port_bytes = {1000};
  transfer.wire_bytes = 1000;
  transfer.peer_offset = 1;
  return transfer;
}

int64_t NetBytes(const Block& block) {
  int64_t bytes = 0;
  for (const MemoryEvent& event : block.memory) bytes += event.delta;
  return bytes;
}

TEST(PipelineTransferTest, TheSenderFreesWhatTheReceiverAllocates) {
  const DeviceMesh mesh = *DeviceMesh::Create({{"pp", 2}, {"tp", 4}});
  const BlockTemplate send = SendBlock(Transfer(), StreamKind::kSendNext);
  const BlockTemplate receive = ReceiveBlock(mesh, Transfer(), StreamKind::kRecvPrev);
  EXPECT_EQ(NetBytes(send.block), -1000);
  EXPECT_EQ(NetBytes(receive.block), 1000);
  EXPECT_EQ(send.block.rendezvous_task, 0);
  EXPECT_EQ(receive.block.rendezvous_task, 0);
  EXPECT_EQ(send.comms[0].bytes, receive.comms[0].bytes);
  EXPECT_EQ(send.comms[0].kind, CollectiveKind::kSendRecv);
}

TEST(PipelineTransferTest, AScatteredTransferIsGatheredWhereItArrives) {
  const DeviceMesh mesh = *DeviceMesh::Create({{"pp", 2}, {"tp", 4}});
  PipelineTransfer transfer = Transfer();
  transfer.wire_bytes = 250;
  transfer.gather_axes = {1};
  EXPECT_EQ(SendBlock(transfer, StreamKind::kSendNext).comms[0].bytes, 250);
  const BlockTemplate receive = ReceiveBlock(mesh, transfer, StreamKind::kRecvPrev);
  ASSERT_EQ(receive.block.size(), 2);
  EXPECT_EQ(receive.comms[1].kind, CollectiveKind::kAllGather);
  EXPECT_EQ(receive.comms[1].bytes, 1000);
  EXPECT_EQ(receive.block.out_ports, std::vector<int32_t>{1});
}

TEST(PipelineTransferTest, EveryPortLeavesWithTheTransfer) {
  const DeviceMesh mesh = *DeviceMesh::Create({{"pp", 2}});
  PipelineTransfer transfer = Transfer();
  transfer.port_bytes = {1000, 500, 20};
  EXPECT_EQ(SendBlock(transfer, StreamKind::kSendNext).block.num_in_ports, 3);
  EXPECT_EQ(ReceiveBlock(mesh, transfer, StreamKind::kRecvPrev).block.out_ports,
            (std::vector<int32_t>{0, 0, 0}));
}

// ---- in compiled plans ----

PlanUnderTest TwoStages(bool norm = false) {
  PlanUnderTest plan({{"seq", 16}, {"hidden", 64}, {"ffn", 256}});
  BodyWriter& body = plan.Segment("layers", 4);
  const int x = body.InPort("x", {"batch", "seq", "hidden"});
  int y = norm ? body.Op1("norm", "rms_norm", {x}) : x;
  y = body.Op1("fc1", "linear", {y}, {{"n", "ffn"}});
  y = body.Op1("fc2", "linear", {y}, {{"k", "ffn"}});
  body.OutPort(norm ? body.Op1("residual", "residual_add", {y, x}) : y);
  plan.Pp(2).MicroBatches(2, 4);
  return plan;
}

// Bytes of all transfers, one entry a block.
std::vector<int64_t> TransferBytes(PlanUnderTest& plan) {
  const absl::StatusOr<ExecutionGraph> graph = plan.Compile();
  EXPECT_TRUE(graph.ok()) << graph.status();
  std::vector<int64_t> bytes;
  for (const Block& block : graph->blocks) {
    for (int32_t t = 0; t < block.size(); ++t) {
      if (block.purpose[t] == Purpose::kPp && block.kind[t] == TaskKind::kComm) {
        bytes.push_back(graph->comms[block.spec[t]].bytes);
      }
    }
  }
  return bytes;
}

TEST(PipelineTransferTest, StagesExchangeTheStreamBothWays) {
  EXPECT_THAT(TransferBytes(TwoStages().Tp(1)), AllOf(Each(kStream), testing::SizeIs(4)));
}

TEST(PipelineTransferTest, EveryTensorParallelRankSendsItsCopy) {
  EXPECT_THAT(TransferBytes(TwoStages().Tp(4)), Each(kStream));
}

TEST(PipelineTransferTest, UnderSequenceParallelismItsShard) {
  EXPECT_THAT(TransferBytes(TwoStages(true).Tp(4).Sp()), Each(kStream / 4));
}

TEST(PipelineTransferTest, OrItsShareIfTheReceiversGather) {
  PlanUnderTest plan = TwoStages();
  plan.profile().pipeline.p2p_scatter_gather = true;
  EXPECT_THAT(TransferBytes(plan.Tp(4)), Each(kStream / 4));
}

TEST(PipelineTransferTest, ASendMeetsOneReceive) {
  for (int64_t v : {1, 2}) {
    PlanUnderTest plan = TwoStages();
    plan.Pp(2, v > 1 ? Schedule::kInterleaved : Schedule::k1f1b, v);
    const absl::StatusOr<ExecutionGraph> graph = plan.Compile();
    ASSERT_TRUE(graph.ok()) << graph.status();
    int transfers = 0;
    for (const Rendezvous& meeting : graph->rendezvous) {
      ASSERT_THAT(meeting.parties, testing::SizeIs(2));
      EXPECT_NE(meeting.parties[0].program, meeting.parties[1].program);
      const Rendezvous::Party& party = meeting.parties[0];
      const Instance& instance = graph->programs[party.program].instances[party.instance];
      transfers += instance.phase == Phase::kComm;  // the optimizer's is none
    }
    // Borders x micro-batches x directions; a ring of chunks has more borders.
    EXPECT_EQ(transfers, (2 * v - 1) * 4 * 2);
  }
}

}  // namespace
}  // namespace plancast
