// Jumps over periods of a steady state: times are those without.

#include <cstdint>
#include <iostream>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "tests/executor/expect_same.h"
#include "tests/executor/graph_builder.h"
#include "tests/executor/random_plan.h"
#include "tests/executor/simulation.h"

namespace plancast {
namespace {

std::unique_ptr<Simulation> Go(const ExecutionGraph& graph, bool shortcuts, int devices, Form form,
                               const HostParams& host) {
  const Machine machine = *Machine::Create(UnitMachine(1, devices));
  auto simulation = Simulation::Run(graph, machine, UnitComm(machine), form, host,
                                    /*interference=*/0.3, shortcuts);
  EXPECT_TRUE(simulation.ok()) << simulation.status();
  return *std::move(simulation);
}

// Simulates at least so many periods less, which makes no difference.
void ExpectJump(const ExecutionGraph& graph, int32_t periods, int devices = 2,
                Form form = Form::kFolded, const HostParams& host = {}) {
  const auto jumps = Go(graph, true, devices, form, host);
  const auto walks = Go(graph, false, devices, form, host);
  EXPECT_GE(jumps->trace().Periods(), periods);
  EXPECT_EQ(walks->trace().Periods(), 0);
  ExpectSameTraces(*jumps, *walks);
  ExpectSameAttribution(*jumps, *walks);
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

// Stage 1 sets the pace and leaves the host of stage 0 a little ahead in every
// period, until its launches do not matter any more. The hosts wait at the end only.
ExecutionGraph HostCatchesUp() {
  GraphBuilder b({{"pp", 2}});
  const auto transfer = [&](const char* name, StreamKind stream) {
    b.Block(name, 1).Comm(CollectiveKind::kSendRecv, 1'000'000, {0}, {~0}, Purpose::kPp, stream);
    b.Meets().OutPort(0);
  };
  b.Block("head").Kernel(0.5);
  b.Block("small");
  for (int i = 0; i < 8; ++i) b.Kernel(0.001);
  b.Block("slow").Kernel(1).OutPort(0);
  b.Block("tail", 1).Kernel(0.001, {~0}).OutPort(0);
  transfer("send", StreamKind::kSendPrev);
  transfer("recv", StreamKind::kRecvNext);
  b.Block("norm", 1).Kernel(0.001, {~0}, Purpose::kOther).HostSync();
  std::vector<int> meetings;
  b.Program("stage 0", {{0, 0}});
  for (int m = 0; m < 120; ++m) {
    meetings.push_back(b.Rendezvous());
    b.Run("recv", {}, 1, m, meetings.back());
    const int received = b.last_instance();
    b.Run("head", {}, 1, m);
    b.Run("small", {}, 1, m);
    b.Run("tail", {{received, 0, 0}}, 1, m);
  }
  b.Run("norm", {{b.last_instance(), 0, 0}});
  b.Program("stage 1", {{0, 1}});
  for (int m = 0; m < 120; ++m) {
    b.Run("slow", {}, 1, m);
    b.Run("send", {{b.last_instance(), 0, 0}}, 1, m, meetings[m]);
  }
  b.Run("norm", {{b.last_instance(), -1, 0}});
  return b.Build();
}

TEST(JumpTest, NotWhileHostsThatWaitAtTheEndAreBehind) {
  HostParams host;
  host.launch_ps = 89'000'000'000;  // 11 launches in a micro-batch take 0.979 s of 1 s
  ExpectJump(HostCatchesUp(), 60, 2, Form::kFolded, host);
}

TEST(JumpTest, OverPeriodsOfPipelines) { ExpectJump(TwoStages(1), 10); }

// Every device by itself: in what order members come at one time shows nowhere.
TEST(JumpTest, OverPeriodsOfTheFlatForm) { ExpectJump(TwoStages(4), 10, 8, Form::kFlat); }

// Plans of up to 1,024 micro-batches: when tasks run, what they waited for, and where
// the time goes.
TEST(JumpTest, ChangesNothingOfRandomLongPlans) {
  constexpr uint32_t kFirst = 1, kLast = 120;
  std::cout << "seeds " << kFirst << " to " << kLast << "\n";
  int plans = 0, jumped = 0;
  for (uint32_t seed = kFirst; seed <= kLast && !testing::Test::HasFailure(); ++seed) {
    const bool flat = seed % 4 == 0;
    const RandomPlan plan = DrawLongPlan(seed, flat ? 64 : 1024);
    const Machine machine = *Machine::Create(plan.machine);
    const CommPricer::RealiseFn realise = MadeUpComm(machine, seed);
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const auto run = [&](bool shortcuts) {
      return Simulation::Run(plan.graph, machine, realise, flat ? Form::kFlat : Form::kFolded,
                             plan.host, plan.interference, shortcuts, LinkSharing::kMaxMin,
                             plan.comm_interference);
    };
    const auto with = run(true), without = run(false);
    ASSERT_EQ(with.status(), without.status());
    if (!with.ok()) continue;
    ++plans;
    jumped += (*with)->trace().Periods() > 0;
    ExpectSameTraces(**with, **without);
    ExpectSameAttribution(**with, **without);
  }
  std::cout << jumped << " of " << plans << " plans jumped\n";
  EXPECT_GT(jumped, plans / 4);
}

}  // namespace
}  // namespace plancast
