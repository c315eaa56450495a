// Blocks whose loops are cut into tasks: what stands for what.

#include "compiler/loops/loop_tasks.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using Way = PartTransport::Way;

// gather -> product -> other, and other -> product -> scatter, each a loop of three parts.
BlockTemplate Small(const PartTransport& comes, const PartTransport& leaves) {
  KernelSpec product;
  product.family = KernelFamily::kGemm;
  product.m = 9;
  KernelSpec part = product;
  part.m = 3;
  KernelSpec other;
  other.label = "other";
  other.read_bytes = 8;
  CommSpec gather, scatter;
  gather.axes = scatter.axes = {0};
  gather.kind = CollectiveKind::kAllGather;
  gather.bytes = 90;
  scatter.kind = CollectiveKind::kReduceScatter;
  scatter.bytes = 60;
  BlockBuilder builder("b", 1);
  const auto tp = StreamKind::kModelComm;
  const int g = builder.AddComm(gather, tp, Purpose::kTp, "gather", {~0});
  const int p = builder.AddKernel(product, Purpose::kForward, "p", {g});
  const int o = builder.AddKernel(other, Purpose::kForward, "o", {g, p});
  const int q = builder.AddKernel(product, Purpose::kForward, "q", {o});
  const int s = builder.AddComm(scatter, tp, Purpose::kTp, "scatter", {q});
  const uint16_t tensor = builder.AddTensor("t");
  builder.AddMemory(p, false, MemoryKind::kActivations, tensor, 40);
  builder.AddMemory(q, true, MemoryKind::kActivations, tensor, -40);
  builder.AddOutPort(s);
  BlockTemplate::Loop& in = builder.LoopAt(0);
  in.gathers = {g};
  in.op = {p};
  in.how.comes = comes;
  in.how.turns = comes.sends();
  BlockTemplate::Loop& out = builder.LoopAt(1);
  out.op = {q};
  out.scatters = {s};
  out.how.leaves = leaves;
  out.how.turns = leaves.sends();
  for (BlockTemplate::Loop* loop : {&builder.LoopAt(0), &builder.LoopAt(1)}) {
    loop->how.pieces = 3;
    loop->how.turns_over = {0};
    loop->kernels = {{part}, {part}, {part}};
  }
  return std::move(builder).Build();
}

std::vector<int> DepsOf(const Block& block, int t) {
  return {block.deps.begin() + block.dep_begin[t], block.deps.begin() + block.dep_begin[t + 1]};
}
int64_t BytesOf(const BlockTemplate& block, int t) {
  return block.comms[block.block.spec[t]].bytes;
}

TEST(LoopTasksTest, RingsAndCollectives) {
  const BlockTemplate out = RunLoops(Small({Way::kRing}, {Way::kCollective}));
  const Block& block = out.block;
  EXPECT_THAT(block.label, ElementsAre("gather", "gather", "p", "p", "p", "o", "q", "scatter", "q",
                                       "scatter", "q", "scatter"));
  EXPECT_THAT(DepsOf(block, 0), ElementsAre(~0));
  EXPECT_THAT(DepsOf(block, 1), ElementsAre(0));   // what has come is handed on
  EXPECT_THAT(DepsOf(block, 2), ElementsAre(~0));  // its own rows are there
  EXPECT_THAT(DepsOf(block, 3), ElementsAre(~0, 0));
  EXPECT_THAT(DepsOf(block, 4), ElementsAre(~0, 1));
  EXPECT_THAT(DepsOf(block, 5), ElementsAre(1, 4));  // others wait for all
  EXPECT_THAT(DepsOf(block, 7), ElementsAre(6));
  EXPECT_THAT(DepsOf(block, 11), ElementsAre(10));
  EXPECT_EQ(BytesOf(out, 0), 30);
  EXPECT_EQ(BytesOf(out, 7), 20);
  EXPECT_EQ(out.comms[block.spec[7]].kind, CollectiveKind::kReduceScatter);
  EXPECT_THAT(block.out_ports, ElementsAre(11));
  ASSERT_EQ(block.memory.size(), 2);
  EXPECT_EQ(block.memory[0].task, 2);
  EXPECT_EQ(block.memory[1].task, 10);
}

TEST(LoopTasksTest, PeersSumAtTheEnd) {
  const BlockTemplate out = RunLoops(Small({Way::kPeers, 0, true, true}, {Way::kPeers, 0, true}));
  const Block& block = out.block;
  // A copy of its own part, and a sum of all.
  EXPECT_THAT(block.label, ElementsAre("p", "gather", "gather", "p", "p", "p", "o", "q", "scatter",
                                       "q", "scatter", "q", "q"));
  EXPECT_THAT(DepsOf(block, 1), ElementsAre(0));
  EXPECT_THAT(DepsOf(block, 2), ElementsAre(0));
  EXPECT_EQ(out.comms[block.spec[1]].policy, "copy");
  EXPECT_EQ(out.comms[block.spec[1]].kind, CollectiveKind::kPermute);
  const KernelSpec& sum = out.kernels[block.spec[12]];
  EXPECT_EQ(sum.label, "part_sum");
  EXPECT_EQ(sum.read_bytes, 60);
  EXPECT_EQ(sum.write_bytes, 20);
  EXPECT_THAT(DepsOf(block, 12), ElementsAre(8, 10, 11));
  EXPECT_THAT(block.out_ports, ElementsAre(12));
}

TEST(LoopTasksTest, ARingOfSumsAddsAsItGoes) {
  const BlockTemplate out = RunLoops(Small({Way::kCollective}, {Way::kRing}));
  const Block& block = out.block;
  EXPECT_THAT(block.label, ElementsAre("gather", "gather", "gather", "p", "p", "p", "o", "q",
                                       "scatter", "q", "q", "scatter", "q", "q"));
  EXPECT_EQ(out.kernels[block.spec[10]].label, "part_add");
  EXPECT_EQ(out.kernels[block.spec[10]].read_bytes, 40);
  EXPECT_THAT(DepsOf(block, 10), ElementsAre(8, 9));
}

}  // namespace
}  // namespace plancast
