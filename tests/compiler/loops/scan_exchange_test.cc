// Mamba layers over cp as Megatron runs them (core/ssm/mamba_context_parallel.py): the sequence is
// cut, and around the scan its channels are cut in place of it.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/compiler/body/check_bodies.h"
#include "tests/compiler/plan_under_test.h"

namespace plancast {
namespace {

struct Sizes {
  int64_t batch = 2, seq = 256, hidden = 64, channels = 128, states = 16;
};

// Projections of the sequence's parts around a scan. `cuts`: of the root over cp.
PlanUnderTest Mixer(const Sizes& of, int64_t cp, const std::vector<std::string>& cuts) {
  PlanUnderTest plan(
      {{"seq", of.seq}, {"hidden", of.hidden}, {"channels", of.channels}, {"states", of.states}});
  plan.MicroBatches(of.batch, 1).ByHand().Cp(cp).Split("", "cp", cuts);
  BodyWriter& body = plan.Segment("m");
  const int x = body.InPort("x", {"batch", "seq", "hidden"});
  const int u = body.Op1("in", "linear", {x}, {{"n", "channels"}});
  const int delta = body.Op1("delta", "linear", {x}, {{"n", "channels"}});
  const int b = body.Op1("b", "linear", {x}, {{"n", "states"}});
  const int c = body.Op1("c", "linear", {x}, {{"n", "states"}});
  const int y = body.Op1("scan", "selective_scan", {u, delta, b, c},
                         {{"t", "seq"}, {"c", "channels"}, {"n", "states"}});
  body.OutPort(body.Op1("out", "linear", {y}, {{"k", "channels"}, {"n", "hidden"}}));
  return plan;
}

// Bytes that a rank receives over cp, by kind.
std::map<CollectiveKind, double> Received(const ExecutionGraph& graph, absl::string_view name) {
  std::map<CollectiveKind, double> received;
  const Block& block = BlockNamed(graph, name);
  for (int t = 0; t < block.size(); ++t) {
    if (block.kind[t] != TaskKind::kComm) continue;
    const CommSpec& comm = graph.comms[block.spec[t]];
    const double n = static_cast<double>(graph.mesh.SizeOf(comm.axes));
    received[comm.kind] += static_cast<double>(comm.bytes) * (n - 1) / n;
  }
  return received;
}

TEST(ScanExchangeTest, ChannelsGoForPositionsAndBack) {
  const Sizes of;
  for (const int64_t cp : {2, 4, 8}) {
    for (const char* seq : {"seq", "zigzag(seq)"}) {
      PlanUnderTest plan = Mixer(of, cp, {seq});
      plan.Split("m.scan", "cp", {"channels"});
      const auto graph = plan.Compile();
      ASSERT_TRUE(graph.ok()) << graph.status();
      const double n = static_cast<double>(cp);
      const double positions = static_cast<double>(of.batch * of.seq) / n;
      const double channels = positions * static_cast<double>(of.channels) * 2;
      const double states = positions * static_cast<double>(of.states) * 2;
      auto forward = Received(*graph, "m.F"), backward = Received(*graph, "m.B");
      // Inputs and time steps go, results come back; what writes and reads states is gathered.
      EXPECT_EQ(forward[CollectiveKind::kAllToAll], (n - 1) / n * 3 * channels) << seq;
      EXPECT_EQ(forward[CollectiveKind::kAllGather], (n - 1) * 2 * states) << seq;
      EXPECT_EQ(backward[CollectiveKind::kAllToAll], (n - 1) / n * 3 * channels) << seq;
      EXPECT_EQ(backward[CollectiveKind::kReduceScatter], (n - 1) * 2 * states) << seq;
    }
  }
}

// What grows with the states is passed on instead where positions stay cut.
TEST(ScanExchangeTest, StatesArePassedOnWithoutIt) {
  const Sizes of;
  PlanUnderTest plan = Mixer(of, 4, {"seq"});
  const auto graph = plan.Compile();
  ASSERT_TRUE(graph.ok()) << graph.status();
  auto forward = Received(*graph, "m.F");
  const double state = 4.0 * static_cast<double>(of.batch * of.channels * of.states);
  EXPECT_EQ(forward[CollectiveKind::kAllGather], 3 * 2 * state);
  EXPECT_EQ(forward.count(CollectiveKind::kAllToAll), 0);
}

TEST(ScanExchangeTest, BodiesEqualOneDevice) {
  const Sizes tiny{1, 8, 4, 4, 2};
  for (const char* seq : {"seq", "zigzag(seq)"}) {
    for (const int64_t cp : {2, 4}) {
      PlanUnderTest plan = Mixer(tiny, cp, {seq});
      plan.Split("m.scan", "cp", {"channels"});
      EXPECT_EQ(WrongBodies(plan.Request(), 5), "") << seq << cp;
    }
  }
}

}  // namespace
}  // namespace plancast
