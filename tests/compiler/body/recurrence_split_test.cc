// State-space scans cut over the sequence pass on decays and states, cut over
// channels nothing.

#include <cstdint>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/plan_under_test.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kBatch = 2, kSeq = 64, kChannels = 16, kStates = 8, kTp = 4;
// Bytes of the states of all channels, in fp32.
constexpr int64_t kState = 4 * kBatch * kChannels * kStates;

// A scan between two ops that are split alike.
PlanUnderTest ScanSplitOver(const std::string& dim) {
  PlanUnderTest plan({{"seq", kSeq}, {"channels", kChannels}, {"states", kStates}});
  plan.MicroBatches(kBatch, 1).ByHand().Tp(kTp);
  BodyWriter& body = plan.Segment("m");
  const int x = body.InPort("x", {"batch", "seq", "channels"});
  const int delta = body.Op1("delta", "relu_nd(rank=3)", {x});
  const int states = body.Input("b", DType::kCompute, {"batch", "seq", "states"});
  const int reads = body.Input("c", DType::kCompute, {"batch", "seq", "states"});
  const int act = body.Op1("act", "relu_nd(rank=3)", {x});
  const int y = body.Op1("scan", "selective_scan", {act, delta, states, reads},
                         {{"t", "seq"}, {"c", "channels"}, {"n", "states"}});
  body.OutPort(y);
  for (const char* op : {"m.delta", "m.act", "m.scan"}) plan.Split(op, "tp", {dim});
  return plan;
}

TEST(RecurrenceSplitTest, PartsOfTheSequencePassOnTheirStates) {
  PlanUnderTest plan = ScanSplitOver("seq");
  const Moves moves = plan.Traffic();
  // Decay and last state of each of the four parts.
  EXPECT_THAT(moves.forward, ElementsAre(AllGather("tp", 2 * kState * kTp)));
  // Backward the same for the states that the gradients of the decays read, and for what
  // later positions send back; in one exchange.
  EXPECT_THAT(moves.backward, ElementsAre(AllGather("tp", 2 * 2 * kState * kTp)));
}

TEST(RecurrenceSplitTest, ChannelsOweNothing) {
  PlanUnderTest plan = ScanSplitOver("channels");
  const Moves moves = plan.Traffic();
  EXPECT_THAT(moves.forward, IsEmpty());
  EXPECT_THAT(moves.backward, IsEmpty());
}

// The ends of the parts are found in a first pass that writes nothing.
TEST(RecurrenceSplitTest, APartIsWalkedTwice) {
  PlanUnderTest whole = ScanSplitOver("channels"), parts = ScanSplitOver("seq");
  auto scans = [](const ExecutionGraph& graph) { return KernelsLabelled(graph, "m.F", "scan"); };
  const std::vector<KernelSpec> once = scans(*whole.Compile()), twice = scans(*parts.Compile());
  ASSERT_EQ(once.size(), 1u);
  ASSERT_EQ(twice.size(), 2u);
  EXPECT_EQ(twice[0].write_bytes, 0);
  EXPECT_EQ(twice[1].write_bytes, 2 * kBatch * kSeq / kTp * kChannels);
  // The state never goes to memory.
  EXPECT_LT(once[0].write_bytes, kState * kSeq / kTp);
}

}  // namespace
}  // namespace plancast
