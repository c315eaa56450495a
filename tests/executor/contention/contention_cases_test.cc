// Who slows whom on small machines, with times worked out by hand: all figures
// are chosen so that answers are whole or half seconds, and they are exact.

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/int128.h"
#include "collectives/group_shape.h"
#include "collectives/traffic.h"
#include "executor/executor.h"
#include "gtest/gtest.h"
#include "tests/executor/graph_builder.h"
#include "tests/executor/simulation.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

constexpr auto kAllReduce = CollectiveKind::kAllReduce;
constexpr int64_t kGB = 1'000'000'000;

// Rings and messages by ideal protocols: the flows of collectives/traffic.h, no
// delay, no overhead. An all-reduce of two members sends its buffer once over
// every link that it crosses.
CommPricer::RealiseFn IdealComm(const Machine& machine) {
  return [&machine](const GroupPattern& group,
                    const CommSpec& comm) -> absl::StatusOr<RealisedCollective> {
    const auto shape = ShapeOf(machine, group);
    if (!shape.ok()) return shape.status();
    RealisedCollective realised;
    realised.rate_cap_bytes_per_s = 1;
    if (shape->members == 1) return realised;
    const bool message = comm.kind == CollectiveKind::kSendRecv;
    const Traffic traffic =
        message ? *DirectTraffic(*shape, comm.kind) : *RingTraffic(*shape, comm.kind);
    realised.work_bytes = comm.bytes;
    double rate = 1e18;
    for (size_t l = 0; l < machine.link_classes().size(); ++l) {
      const LinkClass& link = machine.link_classes()[l];
      double load = 0;
      if (static_cast<int>(l) == machine.intra_class()) load = traffic.port;
      if (link.kind == LinkKind::kPcieSwitch) load = traffic.uplink;
      if (link.kind == LinkKind::kHostBridge) load = traffic.bridge;
      if (link.kind == LinkKind::kNic) load = traffic.nic;
      if (link.kind == LinkKind::kSpine) load = traffic.spine;
      if (load == 0) continue;
      realised.loads.push_back({static_cast<int>(l), std::llround(load * (1 << 20))});
      rate = std::min(rate, link.bytes_per_s / load);
    }
    realised.rate_cap_bytes_per_s = static_cast<int64_t>(rate);
    return realised;
  };
}

// When each task ends, seconds, by (program, place in issue order); the same for
// all devices of a program, folded, refined and flat, with and without shortcuts.
std::map<std::pair<int, int>, double> EndsOn(const ExecutionGraph& graph,
                                             const Machine::Spec& spec) {
  const Machine machine = *Machine::Create(spec);
  std::map<std::pair<int, int>, double> ends;
  for (const Form form : {Form::kFolded, Form::kRefined, Form::kFlat}) {
    for (const bool shortcuts : {true, false}) {
      const auto run = Simulation::Run(graph, machine, IdealComm(machine), form, {}, 0, shortcuts);
      EXPECT_TRUE(run.ok()) << run.status();
      for (int e = 0; e < static_cast<int>((*run)->sim().entities.size()); ++e) {
        const int program = (*run)->sim().entities[e].program;
        for (int t = 0; t < static_cast<int>((*run)->unfolded(e).end.size()); ++t) {
          // Picoseconds over 10^12, so that 0.1 is 0.1.
          const double end = std::round((*run)->End(e, t) * 1e12) / 1e12;
          EXPECT_EQ(ends.try_emplace({program, t}, end).first->second, end)
              << "form " << static_cast<int>(form) << ", entity " << e << ", task " << t;
        }
      }
    }
  }
  return ends;
}

// Programs along `axis` that each all-reduce over `over` so many GB.
ExecutionGraph AllReduces(std::vector<MeshAxis> axes, int axis, int over,
                          const std::vector<int64_t>& gigabytes) {
  GraphBuilder b(std::move(axes));
  for (size_t i = 0; i < gigabytes.size(); ++i) {
    const std::string name = "group " + std::to_string(i);
    b.Block(name);
    if (gigabytes[i] > 0) {
      b.Comm(kAllReduce, gigabytes[i] * kGB, {over}, {}, Purpose::kDp, StreamKind::kGradComm);
    } else {
      b.Kernel(0.5);
    }
    b.Program(name, {{axis, static_cast<int64_t>(i)}}).Run(name);
  }
  return b.Build();
}

TEST(ContentionCases, TwoFlowsOnOneLink) {
  // NVLink of 100 GB/s: both at half until the smaller is over after 2 s, when the
  // larger has 100 GB left.
  GraphBuilder b({{"tp", 2}});
  b.Block("both").Comm(kAllReduce, 100 * kGB, {0});
  b.Comm(kAllReduce, 200 * kGB, {0}, {}, Purpose::kDp, StreamKind::kGradComm);
  b.Program("all").Run("both");
  auto ends = EndsOn(b.Build(), UnitMachine(1, 2));
  EXPECT_EQ((ends[{0, 0}]), 2);
  EXPECT_EQ((ends[{0, 1}]), 3);
}

// Two pods of three hosts of one device and one interface of 9 GB/s; a third of
// that leaves a pod.
Machine::Spec Tree() {
  Machine::Spec spec = UnitMachine(6, 1);
  spec.nic_bytes_per_s = 9e9;
  spec.hosts_per_pod = 3;
  spec.oversubscription = 3;
  spec.rail_optimized = false;
  return spec;
}

TEST(ContentionCases, ThreeGroupsOnATree) {
  // 9 GB/s for all three: a third each for 3 s; then 9 and 18 GB are left to two,
  // at half for 2 s; then 9 GB to one.
  auto ends = EndsOn(AllReduces({{"dp", 2}, {"tp", 3}}, 1, 0, {9, 18, 27}), Tree());
  EXPECT_EQ((ends[{0, 0}]), 3);
  EXPECT_EQ((ends[{1, 0}]), 5);
  EXPECT_EQ((ends[{2, 0}]), 6);
}

TEST(ContentionCases, ThreeGroupsWithoutATrunkAreApart) {
  Machine::Spec spec = Tree();
  spec.hosts_per_pod = 0;
  auto ends = EndsOn(AllReduces({{"dp", 2}, {"tp", 3}}, 1, 0, {9, 18, 27}), spec);
  EXPECT_EQ((ends[{0, 0}]), 1);
  EXPECT_EQ((ends[{1, 0}]), 2);
  EXPECT_EQ((ends[{2, 0}]), 3);
}

TEST(ContentionCases, GroupsOnOneInterfaceTakeTheirNumberOfTimes) {
  for (const int64_t groups : {1, 2, 4, 8}) {
    GraphBuilder b({{"dp", 2}, {"tp", groups}});
    b.Block("B").Comm(kAllReduce, 10 * kGB, {0}, {}, Purpose::kDp, StreamKind::kGradComm);
    b.Program("all").Run("B");
    auto ends = EndsOn(b.Build(), UnitMachine(2, groups, groups));
    EXPECT_EQ((ends[{0, 0}]), groups);
  }
}

TEST(ContentionCases, FourGroupsOnOneInterfaceTakeFourTimesTheTransferWithRealProtocols) {
  // All steps of Execute, protocols as fitted: what is not transfer stays as it is.
  const auto makespan = [](int64_t groups) {
    GraphBuilder b({{"dp", 2}, {"tp", groups}});
    b.Block("B").Comm(kAllReduce, kGB, {0}, {}, Purpose::kDp, StreamKind::kGradComm);
    b.Program("all").Run("B");
    const Machine machine = *Machine::Create(UnitMachine(2, groups, groups));
    return Execute(b.Build(), machine, UnitCost(), {})->makespan_ps;
  };
  const Machine machine = *Machine::Create(UnitMachine(2, 1));
  const RealisedCollective alone = *Realise(machine, {0, {{2, 1}}}, kAllReduce, kGB);
  const int nic = machine.FindLinkClass(LinkKind::kNic);
  const auto load = std::find_if(alone.loads.begin(), alone.loads.end(),
                                 [&](const LinkLoad& l) { return l.link_class == nic; });
  ASSERT_NE(load, alone.loads.end());
  for (const int64_t groups : {1, 2, 4}) {
    // 10 GB/s among so many loads, in steps of 2^-16 B/s, floored, and at most what
    // one group can take; a gigabyte of work at that, rounded up.
    const auto share =
        static_cast<int64_t>((int128{10 * kGB} << 36) / (load->coefficient_q20 * groups));
    const int64_t rate = std::min(share, alone.rate_cap_bytes_per_s << 16);
    const int64_t transfer = MulDivCeil(kGB * 1'000'000'000, 1000 << 16, rate);
    EXPECT_EQ(makespan(groups), alone.delay_ps + transfer) << groups;
    EXPECT_NEAR(static_cast<double>(makespan(groups) - alone.delay_ps),
                static_cast<double>(groups * (makespan(1) - alone.delay_ps)), 1e6);
  }
}

// One host of four devices, two below each of its PCIe switches; all links 10 GB/s.
Machine::Spec PcieBox(double uplink, double bridge) {
  Machine::Spec spec = UnitMachine(1, 4);
  spec.topology = "host-bridge";
  spec.intra_link = "pcie4";
  spec.intra_bytes_per_s = 10e9;
  spec.gpus_per_switch = 2;
  spec.switch_bytes_per_s = uplink;
  spec.host_bridge_bytes_per_s = bridge;
  return spec;
}

TEST(ContentionCases, TwoGpusShareTheUplinkOfTheirPcieSwitch) {
  // Groups {0, 2} and {1, 3} leave the switches.
  const std::vector<MeshAxis> mesh = {{"a", 2}, {"b", 2}};
  auto one = EndsOn(AllReduces(mesh, 1, 0, {10, 0}), PcieBox(10e9, 100e9));
  EXPECT_EQ((one[{0, 0}]), 1);
  auto both = EndsOn(AllReduces(mesh, 1, 0, {10, 10}), PcieBox(10e9, 100e9));
  EXPECT_EQ((both[{0, 0}]), 2);
  EXPECT_EQ((both[{1, 0}]), 2);
  // Groups {0, 1} and {2, 3} do not.
  auto below = EndsOn(AllReduces(mesh, 0, 1, {10, 10}), PcieBox(10e9, 100e9));
  EXPECT_EQ((below[{0, 0}]), 1);
  EXPECT_EQ((below[{1, 0}]), 1);
}

TEST(ContentionCases, SwitchesShareTheHostBridge) {
  // Wide uplinks; every byte of a ring passes the bridge of 20 GB/s twice, there
  // and back.
  const std::vector<MeshAxis> mesh = {{"a", 2}, {"b", 2}};
  auto one = EndsOn(AllReduces(mesh, 1, 0, {10, 0}), PcieBox(40e9, 20e9));
  EXPECT_EQ((one[{0, 0}]), 1);
  auto both = EndsOn(AllReduces(mesh, 1, 0, {10, 30}), PcieBox(40e9, 20e9));
  EXPECT_EQ((both[{0, 0}]), 2);
  EXPECT_EQ((both[{1, 0}]), 4);
}

TEST(ContentionCases, TheOnlyInterfaceHangsAboveTheSwitches) {
  // Two hosts with one interface of 40 GB/s: the two groups of a switch share its
  // uplink of 10 GB/s on the way there.
  Machine::Spec spec = PcieBox(10e9, 100e9);
  spec.hosts = 2;
  spec.nics_per_host = 1;
  spec.nic_bytes_per_s = 40e9;
  GraphBuilder b({{"dp", 2}, {"tp", 4}});
  b.Block("B").Comm(kAllReduce, 10 * kGB, {0}, {}, Purpose::kDp, StreamKind::kGradComm);
  b.Program("all").Run("B");
  auto above = EndsOn(b.Build(), spec);
  EXPECT_EQ((above[{0, 0}]), 2);
  // An interface of 20 GB/s below each switch: no uplink in the way, but two
  // groups to an interface.
  spec.nics_per_host = 2;
  spec.nic_bytes_per_s = 20e9;
  spec.switch_bytes_per_s = 1e9;
  auto below = EndsOn(b.Build(), spec);
  EXPECT_EQ((below[{0, 0}]), 1);
}

// Two pods of two hosts of two devices with an interface of 10 GB/s each, of which
// half leaves the pod.
Machine::Spec Pods(bool rails) {
  Machine::Spec spec = UnitMachine(4, 2);
  spec.hosts_per_pod = 2;
  spec.oversubscription = 2;
  spec.rail_optimized = rails;
  return spec;
}

TEST(ContentionCases, AnOversubscribedSpineIsShared) {
  // Four groups, 20 GB/s: 5 each.
  const std::vector<MeshAxis> mesh = {{"pod", 2}, {"host", 2}, {"gpu", 2}};
  auto all = EndsOn(AllReduces(mesh, 2, 0, {10, 10}), Pods(false));
  EXPECT_EQ((all[{0, 0}]), 2);
  EXPECT_EQ((all[{1, 0}]), 2);
  // Two groups: their own interfaces are the limit.
  auto half = EndsOn(AllReduces(mesh, 2, 0, {10, 0}), Pods(false));
  EXPECT_EQ((half[{0, 0}]), 1);
}

TEST(ContentionCases, RailsApartDoNotDisturbEachOther) {
  // A rail's two groups have its uplink of 10 GB/s, whatever the other rail does.
  const std::vector<MeshAxis> mesh = {{"pod", 2}, {"host", 2}, {"gpu", 2}};
  for (const int64_t other : {0, 10, 50}) {
    auto ends = EndsOn(AllReduces(mesh, 2, 0, {10, other}), Pods(true));
    EXPECT_EQ((ends[{0, 0}]), 2);
    EXPECT_EQ((ends[{1, 0}]), other > 0 ? static_cast<double>(other) / 5 : 0.5);
  }
}

TEST(ContentionCases, TrafficBetweenRailsCrossesTheSpine) {
  // Hosts of three devices; group {2, 3} joins rails 2 and 0. A rail's two
  // interfaces of 10 GB/s have 5 GB/s to other rails.
  Machine::Spec spec = UnitMachine(2, 3);
  GraphBuilder b({{"dp", 3}, {"tp", 2}});
  b.Block("B").Comm(kAllReduce, 10 * kGB, {1});
  for (int64_t dp = 0; dp < 3; ++dp) {
    b.Program("replica " + std::to_string(dp), {{0, dp}}).Run("B");
  }
  auto full = EndsOn(b.Build(), spec);
  EXPECT_EQ((full[{1, 0}]), 1);
  spec.oversubscription = 4;
  auto narrow = EndsOn(b.Build(), spec);
  EXPECT_EQ((narrow[{0, 0}]), 0.1);
  EXPECT_EQ((narrow[{1, 0}]), 2);
  EXPECT_EQ((narrow[{2, 0}]), 0.1);
  // Behind one switch there are no rails.
  spec.rail_optimized = false;
  auto one_switch = EndsOn(b.Build(), spec);
  EXPECT_EQ((one_switch[{1, 0}]), 1);
}

TEST(ContentionCases, APipelineSendCompetesWithTheGradientReduction) {
  // Stage 0 sends 5 GB while its gradients, 20 GB, are reduced on the same
  // interface of 10 GB/s: half each until the message is through after 1 s; the
  // other 15 GB take 1.5 s.
  GraphBuilder b({{"pp", 2}, {"dp", 2}});
  b.Block("stage 0").Comm(kAllReduce, 20 * kGB, {1}, {}, Purpose::kDp, StreamKind::kGradComm);
  b.Block("send").Comm(CollectiveKind::kSendRecv, 5 * kGB, {0}, {}, Purpose::kPp,
                       StreamKind::kSendNext);
  b.Meets();
  b.Block("recv").Comm(CollectiveKind::kSendRecv, 5 * kGB, {0}, {}, Purpose::kPp,
                       StreamKind::kRecvPrev);
  b.Meets();
  const int meeting = b.Rendezvous();
  b.Program("stage 0", {{0, 0}}).Run("stage 0").Run("send", {}, 1, 0, meeting);
  b.Program("stage 1", {{0, 1}}).Run("recv", {}, 1, 0, meeting);
  auto ends = EndsOn(b.Build(), UnitMachine(4, 1));
  EXPECT_EQ((ends[{0, 0}]), 2.5);
  EXPECT_EQ((ends[{0, 1}]), 1);
  EXPECT_EQ((ends[{1, 0}]), 1);
}

TEST(ContentionCases, MessagesInOppositeDirectionsDoNotMeet) {
  // 10 GB each way over full-duplex interfaces of 10 GB/s.
  GraphBuilder b({{"pp", 2}});
  const auto transfer = [&](const char* name, StreamKind stream) {
    b.Block(name).Comm(CollectiveKind::kSendRecv, 10 * kGB, {0}, {}, Purpose::kPp, stream);
    b.Meets();
  };
  transfer("send next", StreamKind::kSendNext);
  transfer("recv prev", StreamKind::kRecvPrev);
  transfer("send prev", StreamKind::kSendPrev);
  transfer("recv next", StreamKind::kRecvNext);
  const int down = b.Rendezvous(), up = b.Rendezvous();
  b.Program("stage 0", {{0, 0}});
  b.Run("send next", {}, 1, 0, down).Run("recv next", {}, 1, 0, up);
  b.Program("stage 1", {{0, 1}});
  b.Run("recv prev", {}, 1, 0, down).Run("send prev", {}, 1, 0, up);
  for (const auto& [task, end] : EndsOn(b.Build(), UnitMachine(2, 1))) EXPECT_EQ(end, 1);
}

}  // namespace
}  // namespace plancast
