#include "executor/simulate/simulate.h"

#include "executor/attribution/breakdown.h"
#include "executor/attribution/critical_path.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/executor/graph_builder.h"
#include "tests/executor/simulation.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

Machine Make(const Machine::Spec& spec) {
  absl::StatusOr<Machine> machine = Machine::Create(spec);
  EXPECT_TRUE(machine.ok()) << machine.status();
  return *machine;
}

std::unique_ptr<Simulation> Go(const ExecutionGraph& graph, const Machine& machine,
                               Form form = Form::kFolded, HostParams host = {},
                               double interference = 0) {
  auto simulation = Simulation::Run(graph, machine, UnitComm(machine), form, host, interference);
  EXPECT_TRUE(simulation.ok()) << simulation.status();
  return *std::move(simulation);
}

constexpr int64_t kSecond = 1'000'000'000'000;

TEST(SimulateTest, KernelsOfAStreamRunOneAfterAnother) {
  GraphBuilder b({{"dp", 1}});
  b.Block("F").Kernel(1).Kernel(2).Kernel(3);
  b.Program("all").Run("F", {}, 2);
  const auto s = Go(b.Build(), Make(UnitMachine(1, 1)));
  EXPECT_DOUBLE_EQ(s->makespan(), 12);
  EXPECT_DOUBLE_EQ(s->Start(0, 4), 7);
}

TEST(SimulateTest, ACommunicationOverlapsWhatDoesNotWaitForIt) {
  GraphBuilder b({{"tp", 4}});
  // 1e11 bytes over NVLink take a second.
  b.Block("F")
      .Kernel(1)
      .Comm(CollectiveKind::kAllReduce, 200'000'000'000, {0}, {0})
      .Kernel(0.5, {0})
      .Kernel(1, {1, 2});
  b.Program("all").Run("F");
  const auto s = Go(b.Build(), Make(UnitMachine(1, 4)));
  EXPECT_DOUBLE_EQ(s->End(0, 1), 3);
  EXPECT_DOUBLE_EQ(s->End(0, 2), 1.5);
  EXPECT_DOUBLE_EQ(s->makespan(), 4);
  const Breakdown parts = BreakdownOf(s->input(), s->trace(), 0);
  EXPECT_EQ(parts.compute, 5 * kSecond / 2);
  EXPECT_EQ(parts.exposed_tp, 3 * kSecond / 2);
  EXPECT_EQ(parts.total(), s->trace().makespan_ps);
}

TEST(SimulateTest, LayersWaitForTheirPredecessorsThroughPorts) {
  GraphBuilder b({{"tp", 2}});
  b.Block("F", 1)
      .Kernel(1, {~0})
      .Comm(CollectiveKind::kAllReduce, 100'000'000'000, {0}, {0})
      .OutPort(1);
  b.Program("all").Run("F", {}, 3);
  const auto s = Go(b.Build(), Make(UnitMachine(1, 2)));
  EXPECT_DOUBLE_EQ(s->makespan(), 6);
}

TEST(SimulateTest, TwoGroupsOnOneNicTakeExactlyTwiceTheBandwidthPhase) {
  for (const auto& [gpus_per_nic, seconds] : {std::pair(1, 1.0), {2, 2.0}, {4, 4.0}}) {
    GraphBuilder b({{"dp", 2}, {"tp", 4}});
    b.Block("sync").Comm(CollectiveKind::kAllReduce, 10'000'000'000, {0}, {}, Purpose::kDp,
                         StreamKind::kGradComm);
    b.Program("all").Run("sync");
    Machine::Spec spec = UnitMachine(2, 4, gpus_per_nic);
    const Machine machine = Make(spec);
    for (Form form : {Form::kFolded, Form::kRefined, Form::kFlat}) {
      const auto s = Go(b.Build(), machine, form);
      EXPECT_DOUBLE_EQ(s->makespan(), seconds) << s->sim().DebugString();
      EXPECT_EQ(BreakdownOf(s->input(), s->trace(), 0).exposed_dp, s->trace().makespan_ps);
    }
  }
}

// Two stages of one GPU each: forward, send, receive, backward.
ExecutionGraph TwoStages(int micro_batches) {
  GraphBuilder b({{"pp", 2}});
  const CollectiveKind kSend = CollectiveKind::kSendRecv;
  b.Block("F", 1).Kernel(1, {~0}).OutPort(0);
  b.Block("send", 1).Comm(kSend, 10'000'000'000, {0}, {~0}, Purpose::kPp, StreamKind::kSendNext);
  b.Meets();
  b.Block("recv").Comm(kSend, 10'000'000'000, {0}, {}, Purpose::kPp, StreamKind::kRecvPrev);
  b.Meets().OutPort(0);
  std::vector<int> meetings;
  b.Program("stage 0", {{0, 0}});
  for (int m = 0; m < micro_batches; ++m) {
    b.Run("F", {}, 1, m);
    meetings.push_back(b.Rendezvous());
    b.Run("send", {{b.last_instance(), 0, 0}}, 1, m, meetings.back());
  }
  b.Program("stage 1", {{0, 1}});
  for (int m = 0; m < micro_batches; ++m) {
    b.Run("recv", {}, 1, m, meetings[m]);
    b.Run("F", {{b.last_instance(), 0, 0}}, 1, m);
  }
  return b.Build();
}

TEST(SimulateTest, AStageWaitsForItsMessages) {
  const auto s = Go(TwoStages(3), Make(UnitMachine(2, 1)));
  EXPECT_DOUBLE_EQ(s->makespan(), 5);
  const Breakdown first = BreakdownOf(s->input(), s->trace(), 0);
  EXPECT_EQ(first.compute, 3 * kSecond);
  // Its second message still leaves until the fourth second.
  EXPECT_EQ(first.exposed_pp, kSecond);
  EXPECT_EQ(first.bubble, kSecond);
  const Breakdown second = BreakdownOf(s->input(), s->trace(), 1);
  EXPECT_EQ(second.bubble, kSecond);
  EXPECT_EQ(second.exposed_pp, kSecond);
  EXPECT_EQ(second.total(), s->trace().makespan_ps);
  SimResult result;
  AttributeCriticalPath(s->input(), s->trace(), result);
  EXPECT_EQ(result.critical_path.total(), s->trace().makespan_ps);
  EXPECT_EQ(result.critical_path.compute, 4 * kSecond);
  EXPECT_EQ(result.critical_path.exposed_pp, kSecond);
  EXPECT_DOUBLE_EQ(result.factors["unit/kernel"].seconds, 4);
  EXPECT_DOUBLE_EQ(result.factors["unit/comm"].seconds, 1);
}

TEST(SimulateTest, OppositeDirectionsOfALinkDoNotCompete) {
  for (const bool opposite : {false, true}) {
    GraphBuilder b({{"pp", 2}});
    const CollectiveKind kSend = CollectiveKind::kSendRecv;
    const StreamKind out = StreamKind::kSendNext, in = StreamKind::kRecvPrev,
                     back = StreamKind::kSendPrev, from_next = StreamKind::kRecvNext;
    b.Block("out").Comm(kSend, 10'000'000'000, {0}, {}, Purpose::kPp, out).Meets();
    b.Block("in").Comm(kSend, 10'000'000'000, {0}, {}, Purpose::kPp, in).Meets();
    b.Block("back").Comm(kSend, 10'000'000'000, {0}, {}, Purpose::kPp, back).Meets();
    b.Block("from next").Comm(kSend, 10'000'000'000, {0}, {}, Purpose::kPp, from_next).Meets();
    const int r0 = b.Rendezvous(), r1 = b.Rendezvous();
    b.Program("stage 0", {{0, 0}}).Run("out", {}, 1, 0, r0);
    // Sends a second message in another queue, or receives one.
    b.Run(opposite ? "from next" : "back", {}, 1, 0, r1);
    b.Program("stage 1", {{0, 1}}).Run("in", {}, 1, 0, r0);
    b.Run(opposite ? "back" : "from next", {}, 1, 0, r1);
    const auto s = Go(b.Build(), Make(UnitMachine(2, 1)));
    EXPECT_DOUBLE_EQ(s->makespan(), opposite ? 1 : 2);
  }
}

TEST(SimulateTest, TheHostLaunchesInIssueOrder) {
  GraphBuilder b({{"dp", 1}});
  b.Block("F").Kernel(0.1).Kernel(0.1).Kernel(5).Kernel(0.1);
  b.Program("all").Run("F");
  HostParams host;
  host.launch_ps = kSecond;
  host.start_ps = kSecond;
  const auto s = Go(b.Build(), Make(UnitMachine(1, 1)), Form::kFolded, host);
  EXPECT_DOUBLE_EQ(s->Start(0, 0), 2);
  EXPECT_DOUBLE_EQ(s->Start(0, 1), 3);
  EXPECT_DOUBLE_EQ(s->Start(0, 2), 4);
  EXPECT_DOUBLE_EQ(s->Start(0, 3), 9);
  const Breakdown parts = BreakdownOf(s->input(), s->trace(), 0);
  EXPECT_EQ(parts.other, kSecond);
  EXPECT_EQ(parts.launch, 28 * kSecond / 10);
  EXPECT_EQ(parts.compute, 53 * kSecond / 10);
  EXPECT_EQ(parts.total(), s->trace().makespan_ps);
}

TEST(SimulateTest, AHostSyncHoldsLaterLaunches) {
  GraphBuilder b({{"tp", 2}});
  b.Block("F")
      .Kernel(1)
      .Comm(CollectiveKind::kAllReduce, 300'000'000'000, {0})
      .HostSync()
      .Kernel(1);
  b.Program("all").Run("F");
  HostParams host;
  host.sync_ps = kSecond / 2;
  const auto s = Go(b.Build(), Make(UnitMachine(1, 2)), Form::kFolded, host);
  EXPECT_DOUBLE_EQ(s->Start(0, 2), 3.5);
  const Breakdown parts = BreakdownOf(s->input(), s->trace(), 0);
  EXPECT_EQ(parts.exposed_tp, 2 * kSecond);
  EXPECT_EQ(parts.launch, kSecond / 2);
  EXPECT_EQ(parts.total(), s->trace().makespan_ps);
}

TEST(SimulateTest, KernelsAreSlowOnlyWhileACommunicationRuns) {
  GraphBuilder b({{"tp", 2}});
  // The all-reduce runs from 1 to 4; of the kernel beside it, 1 s stays, which
  // takes 1.5 s, then the next begins beside it and has 1.5 s / 1.5 = 1 s done at 4.
  b.Block("F")
      .Kernel(1)
      .Comm(CollectiveKind::kAllReduce, 300'000'000'000, {0}, {0})
      .Kernel(1)
      .Kernel(3)
      .Kernel(1, {1});
  b.Program("all").Run("F");
  for (Form form : {Form::kFolded, Form::kFlat}) {
    const auto s = Go(b.Build(), Make(UnitMachine(1, 2)), form, {}, 0.5);
    EXPECT_DOUBLE_EQ(s->End(0, 0), 1);
    EXPECT_DOUBLE_EQ(s->End(0, 1), 4);
    EXPECT_DOUBLE_EQ(s->End(0, 2), 2.5);
    EXPECT_DOUBLE_EQ(s->End(0, 3), 6);
    EXPECT_DOUBLE_EQ(s->makespan(), 7);
    const Breakdown parts = BreakdownOf(s->input(), s->trace(), 0);
    EXPECT_EQ(parts.compute, 7 * kSecond);
  }
}

TEST(SimulateTest, AKernelUnderWaySlowsDownWhenAMessageComes) {
  // Stage 0 sends after 2 s; stage 1 receives while it computes for 4 s.
  GraphBuilder b({{"pp", 2}});
  b.Block("F").Kernel(2).OutPort(0);
  b.Block("G").Kernel(4);
  b.Block("send", 1).Comm(CollectiveKind::kSendRecv, 10'000'000'000, {0}, {~0}, Purpose::kPp,
                          StreamKind::kSendNext);
  b.Meets();
  b.Block("recv").Comm(CollectiveKind::kSendRecv, 10'000'000'000, {0}, {}, Purpose::kPp,
                       StreamKind::kRecvPrev);
  b.Meets();
  const int meeting = b.Rendezvous();
  b.Program("stage 0", {{0, 0}}).Run("F").Run("send", {{0, 0, 0}}, 1, 0, meeting);
  b.Program("stage 1", {{0, 1}}).Run("recv", {}, 1, 0, meeting).Run("G");
  const auto s = Go(b.Build(), Make(UnitMachine(2, 1)), Form::kFolded, {}, 1.0);
  EXPECT_DOUBLE_EQ(s->End(0, 1), 3);
  // 2 s alone, 1 s at half speed, the rest alone.
  EXPECT_DOUBLE_EQ(s->End(1, 1), 4.5);
}

// B begins as a layer at 2 s, with its collective under way for 2 of 10 s. At 3 s gradients take
// a link that a lane of the layer loads elsewhere, so it stops, and goes on from where it is.
TEST(SimulateTest, ACollectiveUnderWayGoesOnInALayerThatStopsAndGoesOn) {
  GraphBuilder b({{"dp", 2}, {"tp", 2}});
  constexpr int64_t kGB = 1'000'000'000;
  b.Block("A").Kernel(2).Comm(CollectiveKind::kAllReduce, 10 * kGB, {0}, {0}, Purpose::kDp,
                              StreamKind::kGradComm);
  b.Block("B").Comm(CollectiveKind::kAllReduce, 1000 * kGB, {1}).Kernel(1, {0}).Kernel(1);
  b.Block("C").Comm(CollectiveKind::kAllReduce, 20 * kGB, {0});
  b.Program("all").Run("A").Run("B").Run("C");
  const Machine machine = Make(UnitMachine(2, 2));
  const CommPricer::RealiseFn unit = UnitComm(machine);
  // NVLink is not what they share.
  const auto nics = [&](const GroupPattern& group,
                        const CommSpec& comm) -> absl::StatusOr<RealisedCollective> {
    absl::StatusOr<RealisedCollective> realised = unit(group, comm);
    const bool leaves = realised->loads.size() > 1;
    realised->loads.clear();
    if (leaves) realised->loads.push_back({machine.FindLinkClass(LinkKind::kNic), 1 << 20});
    if (leaves) realised->delay_ps = kSecond;
    return realised;
  };
  for (const Form form : {Form::kFolded, Form::kRefined, Form::kFlat}) {
    for (const bool shortcuts : {true, false}) {
      const auto s = Simulation::Run(b.Build(), machine, nics, form, {}, 0, shortcuts);
      ASSERT_TRUE(s.ok()) << s.status();
      EXPECT_DOUBLE_EQ((*s)->End(0, 2), 10) << shortcuts;
      EXPECT_DOUBLE_EQ((*s)->End(0, 4), 12) << shortcuts;
    }
  }
}

// B begins as a layer with two collectives under way, to 4 and 6 s, beside a third to 9 s that
// slows its kernels by a quarter: 1 s from 4 and from 6, and 2 s of which 1.4 are over at 9.
TEST(SimulateTest, ALayerTakesTwoCollectivesOver) {
  GraphBuilder b({{"tp", 2}});
  constexpr int64_t kGB = 1'000'000'000;
  b.Block("A").Kernel(2).Comm(CollectiveKind::kAllReduce, 900 * kGB, {0}, {}, Purpose::kDp,
                              StreamKind::kReplicaComm);
  b.Block("B").Comm(CollectiveKind::kAllReduce, 400 * kGB, {0});
  b.Comm(CollectiveKind::kAllReduce, 600 * kGB, {0}, {}, Purpose::kDp, StreamKind::kGradComm);
  b.Kernel(1, {0}).Kernel(1, {1}).Kernel(2);
  b.Program("all").Run("A").Run("B");
  const Machine machine = Make(UnitMachine(1, 2));
  const CommPricer::RealiseFn unit = UnitComm(machine);
  const auto alone = [&](const GroupPattern& group,
                         const CommSpec& comm) -> absl::StatusOr<RealisedCollective> {
    absl::StatusOr<RealisedCollective> realised = unit(group, comm);
    realised->loads.clear();
    return realised;
  };
  for (const Form form : {Form::kFolded, Form::kRefined, Form::kFlat}) {
    for (const bool shortcuts : {true, false}) {
      const auto s = Simulation::Run(b.Build(), machine, alone, form, {}, 0.25, shortcuts);
      ASSERT_TRUE(s.ok()) << s.status();
      EXPECT_DOUBLE_EQ((*s)->End(0, 4), 5.25) << shortcuts;
      EXPECT_DOUBLE_EQ((*s)->End(0, 5), 7.25) << shortcuts;
      EXPECT_DOUBLE_EQ((*s)->End(0, 6), 9.6) << shortcuts;
    }
  }
}

TEST(SimulateTest, AStragglerHoldsItsGroupUp) {
  GraphBuilder b({{"tp", 4}});
  b.Block("F").Kernel(1).Comm(CollectiveKind::kAllReduce, 100'000'000'000, {0}, {0});
  b.Program("all").Run("F");
  Machine::Spec spec = UnitMachine(1, 4);
  spec.device_overrides.push_back({2, 0.5});
  const auto s = Go(b.Build(), Make(spec));
  ASSERT_EQ(s->sim().entities.size(), 2);
  EXPECT_EQ(s->sim().entities[0].devices, 3);
  EXPECT_EQ(s->sim().entities[1].representative, 2);
  EXPECT_DOUBLE_EQ(s->makespan(), 3);
  const Breakdown waits = BreakdownOf(s->input(), s->trace(), 0);
  EXPECT_EQ(waits.straggler, kSecond);
  EXPECT_EQ(waits.bubble, 0);
  EXPECT_EQ(waits.total(), s->trace().makespan_ps);
  EXPECT_EQ(BreakdownOf(s->input(), s->trace(), 1).straggler, 0);
  SimResult result;
  AttributeCriticalPath(s->input(), s->trace(), result);
  EXPECT_EQ(result.critical_path.compute, 2 * kSecond);
}

TEST(SimulateTest, ADeadlockNamesItsCycle) {
  GraphBuilder b({{"pp", 2}});
  const CollectiveKind kSend = CollectiveKind::kSendRecv;
  b.Block("send").Comm(kSend, 8, {0}, {}, Purpose::kPp, StreamKind::kModelComm).Meets();
  b.Block("recv").Comm(kSend, 8, {0}, {}, Purpose::kPp, StreamKind::kModelComm).Meets();
  const int a = b.Rendezvous(), c = b.Rendezvous();
  b.Program("stage 0", {{0, 0}}).Run("send", {}, 1, 0, a).Run("recv", {}, 1, 1, c);
  b.Program("stage 1", {{0, 1}}).Run("send", {}, 1, 1, c).Run("recv", {}, 1, 0, a);
  const Machine machine = Make(UnitMachine(2, 1));
  const auto s = Simulation::Run(b.Build(), machine, UnitComm(machine));
  ASSERT_FALSE(s.ok());
  EXPECT_THAT(std::string(s.status().message()),
              HasSubstr("the schedule deadlocks: `stage 0` at `send` task `t0` (instance 0, "
                        "micro-batch 0, chunk 0), which waits for `stage 1` at `send`"));
}

}  // namespace
}  // namespace plancast
