// Jumps over periods of a steady state: times are those without.

#include "gtest/gtest.h"
#include "tests/executor/graph_builder.h"
#include "tests/executor/simulation.h"

namespace plancast {
namespace {

std::unique_ptr<Simulation> Go(const ExecutionGraph& graph, bool shortcuts, int devices,
                               Form form) {
  const Machine machine = *Machine::Create(UnitMachine(1, devices));
  auto simulation = Simulation::Run(graph, machine, UnitComm(machine), form, {},
                                    /*interference=*/0.3, shortcuts);
  EXPECT_TRUE(simulation.ok()) << simulation.status();
  return *std::move(simulation);
}

// Simulates at least so many periods less, which makes no difference.
void ExpectJump(const ExecutionGraph& graph, int32_t periods, int devices = 2,
                Form form = Form::kFolded) {
  const auto jumps = Go(graph, true, devices, form), walks = Go(graph, false, devices, form);
  EXPECT_GE(jumps->trace().periods, periods);
  EXPECT_EQ(walks->trace().periods, 0);
  ASSERT_EQ(jumps->sim().entities.size(), walks->sim().entities.size());
  for (int e = 0; e < static_cast<int>(jumps->sim().entities.size()); ++e) {
    EXPECT_EQ(jumps->unfolded(e).start, walks->unfolded(e).start) << "entity " << e;
    EXPECT_EQ(jumps->unfolded(e).end, walks->unfolded(e).end) << "entity " << e;
  }
  EXPECT_EQ(jumps->trace().makespan_ps, walks->trace().makespan_ps);
}

// Each micro-batch computes, communicates what the one before computed, and then
// once more; both communications share links. In one micro-batch, the last waits
// for what the one before it waited for.
ExecutionGraph TwoBehindEachOther(int odd = -1) {
  GraphBuilder b({{"tp", 2}});
  const auto comm = [&](StreamKind stream) {
    b.Comm(CollectiveKind::kAllReduce, 20'000'000'000, {0}, {~0}, Purpose::kTp, stream).OutPort(0);
  };
  b.Block("compute").Kernel(1).OutPort(0);
  b.Block("first", 1);
  comm(StreamKind::kModelComm);
  b.Block("second", 1);
  comm(StreamKind::kGradComm);
  b.Program("all");
  for (int m = 0; m < 40; ++m) {
    b.Run("compute", {}, 1, m);
    if (m == 0) {
      b.Run("first", {}, 1, m);
    } else {
      b.Run("first", {{3 * (m - 1), 0, 0}}, 1, m);
    }
    b.Run("second", {{3 * (m == odd ? m - 1 : m) + 1, 0, 0}}, 1, m);
  }
  return b.Build();
}

TEST(JumpTest, OverAllThatIsAlike) { ExpectJump(TwoBehindEachOther(), 30); }

TEST(JumpTest, NotOverOneThatWaitsForSomethingElse) {
  for (int odd = 27; odd < 33; ++odd) {
    SCOPED_TRACE(testing::Message() << "micro-batch " << odd);
    ExpectJump(TwoBehindEachOther(odd), 20);
  }
}

// Two stages in turn, layers that repeat; each layer is reduced over `tp` devices.
ExecutionGraph TwoStages(int64_t tp) {
  GraphBuilder b({{"pp", 2}, {"tp", tp}});
  b.Block("layers", 1).Kernel(0.3, {~0}).Kernel(0.2);
  if (tp > 1) b.Comm(CollectiveKind::kAllReduce, 3'000'000'000, {1}, {1});
  b.Kernel(0.1, {b.last_task()});
  b.OutPort(b.last_task());
  b.Block("send", 1).Comm(CollectiveKind::kSendRecv, 10'000'000'000, {0}, {~0}, Purpose::kPp,
                          StreamKind::kSendNext);
  b.Meets();
  b.Block("recv").Comm(CollectiveKind::kSendRecv, 10'000'000'000, {0}, {}, Purpose::kPp,
                       StreamKind::kRecvPrev);
  b.Meets().OutPort(0);
  std::vector<int> meetings;
  b.Program("stage 0", {{0, 0}});
  for (int m = 0; m < 24; ++m) {
    meetings.push_back(b.Rendezvous());
    b.Run("layers", {}, 3, m);
    b.Run("send", {{b.last_instance(), 0, 0}}, 1, m, meetings.back());
  }
  b.Program("stage 1", {{0, 1}});
  for (int m = 0; m < 24; ++m) {
    b.Run("recv", {}, 1, m, meetings[m]);
    b.Run("layers", {{b.last_instance(), 0, 0}}, 3, m);
  }
  return b.Build();
}

TEST(JumpTest, OverPeriodsOfPipelines) { ExpectJump(TwoStages(1), 10); }

// Every device by itself: in what order members come at one time shows nowhere.
TEST(JumpTest, OverPeriodsOfTheFlatForm) { ExpectJump(TwoStages(4), 10, 8, Form::kFlat); }

}  // namespace
}  // namespace plancast
