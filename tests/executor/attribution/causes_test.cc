#include "executor/attribution/causes.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/executor/graph_builder.h"
#include "tests/executor/simulation.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kSecond = 1'000'000'000'000;

std::unique_ptr<Simulation> Go(const ExecutionGraph& graph, const Machine::Spec& spec,
                               HostParams host = {}) {
  const Machine machine = *Machine::Create(spec);
  auto simulation = Simulation::Run(graph, machine, UnitComm(machine), Form::kFolded, host);
  EXPECT_TRUE(simulation.ok()) << simulation.status();
  return *std::move(simulation);
}

std::vector<int64_t> CausesOf(const Simulation& s, int32_t entity = 0) {
  return Unfold(s.input(), s.trace(), entity).cause;
}

// 2e11 bytes take 2 s over NVLink.
TEST(CausesTest, ATaskStartsOnWhatEndsThen) {
  GraphBuilder b({{"tp", 2}});
  b.Block("F", 1)
      .Kernel(1, {~0})
      .Comm(CollectiveKind::kAllReduce, 200'000'000'000, {0}, {0})
      .Kernel(1)
      .Kernel(1, {1})
      .OutPort(1);
  b.Program("all").Run("F", {}, 2);
  const auto s = Go(b.Build(), UnitMachine(1, 2));
  EXPECT_THAT(CausesOf(*s), ElementsAre(UnfoldedTrace::kBeginning, 0, 0, 1, 3, 4, 4, 5));
}

// All of them end at 2 s: the one before in the stream, then by stream.
TEST(CausesTest, TheStreamGoesFirst) {
  GraphBuilder b({{"tp", 2}});
  const auto comm = [&](StreamKind stream) {
    b.Comm(CollectiveKind::kAllReduce, 200'000'000'000, {0}, {}, Purpose::kTp, stream);
  };
  b.Block("F").Kernel(2);
  comm(StreamKind::kModelComm);
  b.Kernel(1, {1});
  b.Program("all").Run("F");
  EXPECT_THAT(CausesOf(*Go(b.Build(), UnitMachine(1, 2))),
              ElementsAre(UnfoldedTrace::kBeginning, UnfoldedTrace::kBeginning, 0));
}

TEST(CausesTest, AKernelWaitsForItsLaunch) {
  GraphBuilder b({{"tp", 1}});
  b.Block("F").Kernel(1).Kernel(5).Kernel(1);
  b.Program("all").Run("F");
  HostParams host;
  host.launch_ps = 3 * kSecond;
  const auto s = Go(b.Build(), UnitMachine(1, 1), host);
  EXPECT_THAT(CausesOf(*s), ElementsAre(UnfoldedTrace::kHost, UnfoldedTrace::kHost, 1));
  const Causes causes(s->input(), s->trace());
  EXPECT_EQ(causes.Of(0, {0, 0, 0}).kind, Cause::kHost);
  EXPECT_EQ(causes.Of(0, {0, 0, 0}).ref.instance, -1);
  EXPECT_EQ(causes.EndOf(0, {0, 0, 2}), 12 * kSecond);
}

TEST(CausesTest, TheHostMayHaveWaitedForATask) {
  GraphBuilder b({{"tp", 1}});
  b.Block("F").Kernel(1).HostSync().Kernel(1);
  b.Program("all").Run("F");
  HostParams host;
  host.sync_ps = 2 * kSecond;
  const auto s = Go(b.Build(), UnitMachine(1, 1), host);
  const Causes causes(s->input(), s->trace());
  const Cause cause = causes.Of(0, {0, 0, 1});
  EXPECT_EQ(cause.kind, Cause::kHost);
  EXPECT_EQ(cause.ref, (TaskRef{0, 0, 0}));
  EXPECT_EQ(causes.StartOf(0, {0, 0, 1}), 3 * kSecond);
}

// Launched at 2, 4 and 6 s; it runs for 1 s and ends with the last.
TEST(CausesTest, TheTailOfAKernelWaitsForItsLaunches) {
  GraphBuilder b({{"tp", 1}});
  b.Block("F").Kernel(1).Kernel(9);
  b.Program("all").Run("F");
  ExecutionGraph graph = b.Build();
  for (KernelSpec& kernel : graph.kernels) kernel.launches = 3;
  HostParams host;
  host.launch_ps = 2 * kSecond;
  const auto s = Go(graph, UnitMachine(1, 1), host);
  const Causes causes(s->input(), s->trace());
  EXPECT_EQ(causes.StartOf(0, {0, 0, 0}), 2 * kSecond);
  EXPECT_EQ(causes.EndOf(0, {0, 0, 0}), 6 * kSecond);
  EXPECT_EQ(causes.LaunchTail(0, {0, 0, 0}), 3 * kSecond);
  EXPECT_EQ(causes.LaunchTail(0, {0, 0, 1}), 0);
}

// The second stage is there at once and waits for the first.
TEST(CausesTest, ACommunicationStartsOnWhoComesLast) {
  GraphBuilder b({{"pp", 2}});
  b.Block("send").Kernel(3).Comm(CollectiveKind::kSendRecv, 8, {0}, {0}).Meets();
  b.Block("recv").Comm(CollectiveKind::kSendRecv, 8, {0}).Meets().Kernel(1, {0});
  const int meeting = b.Rendezvous();
  b.Program("stage 0", {{0, 0}}).Run("send", {}, 1, 0, meeting);
  b.Program("stage 1", {{0, 1}}).Run("recv", {}, 1, 0, meeting);
  const auto s = Go(b.Build(), UnitMachine(1, 2));
  EXPECT_THAT(CausesOf(*s, 0), ElementsAre(UnfoldedTrace::kBeginning, 0));
  EXPECT_THAT(CausesOf(*s, 1), ElementsAre(UnfoldedTrace::PeerCause(0), 0));
  const Cause cause = Causes(s->input(), s->trace()).Of(1, {0, 0, 0});
  EXPECT_EQ(cause.kind, Cause::kPeer);
  EXPECT_EQ(cause.entity, 0);
  EXPECT_EQ(cause.ref, (TaskRef{0, 0, 1}));
}

}  // namespace
}  // namespace plancast
