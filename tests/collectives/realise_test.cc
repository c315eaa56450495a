#include "collectives/realise.h"

#include <cmath>
#include <cstdlib>
#include <random>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

constexpr CollectiveKind kKinds[] = {CollectiveKind::kAllReduce,     CollectiveKind::kAllGather,
                                     CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll,
                                     CollectiveKind::kPermute,       CollectiveKind::kSendRecv,
                                     CollectiveKind::kBroadcast};

Machine Made(const std::string& preset) {
  auto machine = MachineFromPreset(preset);
  EXPECT_TRUE(machine.ok()) << machine.status();
  return *std::move(machine);
}

// 8 GPUs and 4 interfaces a host, all of which serve any group.
Machine FourInterfaces() {
  Machine::Spec spec = Made("vtrain-a100-80g:8").spec();
  spec.ring_nics = 0;
  auto machine = Machine::Create(spec);
  EXPECT_TRUE(machine.ok()) << machine.status();
  return *std::move(machine);
}

RealisedCollective Realised(const Machine& machine, const GroupPattern& group, CollectiveKind kind,
                            int64_t bytes, const CollectivePolicy& policy = {}) {
  auto realised = Realise(machine, group, kind, bytes, policy);
  EXPECT_TRUE(realised.ok()) << realised.status();
  return *std::move(realised);
}

double Load(const Machine& machine, const RealisedCollective& collective, LinkKind kind) {
  for (const LinkLoad& load : collective.loads) {
    if (load.link_class == machine.FindLinkClass(kind)) return load.coefficient_q20 / 1048576.0;
  }
  return 0;
}

TEST(GroupPatternTest, ListsItsMembers) {
  const GroupPattern group = {1, {{2, 2}, {2, 8}}};
  EXPECT_EQ(group.size(), 4);
  EXPECT_THAT(group.Members(), ::testing::ElementsAre(1, 3, 9, 11));
}

// BigScience's all-reduces of 4 GB on Jean Zay: 0.709 s over 4 hosts of V100, 1.147 s over 16
// (experiments/bandwidth); the rate at four is the mean with A100s', the one at 16 holds for more.
TEST(RealiseTest, OmniPathIsAsSlowAsMeasured) {
  const auto seconds = [](int hosts) {
    const Machine machine = Made(absl::StrCat("jeanzay-v100-32g:", hosts));
    const RealisedCollective reduce =
        Realised(machine, {0, {{4 * hosts, 1}}}, CollectiveKind::kAllReduce, 4'000'000'000);
    return static_cast<double>(AloneTime(machine, reduce)) * 1e-12;
  };
  EXPECT_NEAR(seconds(4), 0.709, 0.03 * 0.709);
  EXPECT_NEAR(seconds(16), 1.147, 0.03 * 1.147);
  // Halfway along the logarithm of hosts; a ring's bytes are 2 (n - 1) / n.
  EXPECT_NEAR(seconds(8) / (31.0 / 32),
              std::sqrt(seconds(4) / (15.0 / 16) * seconds(16) / (63.0 / 64)), 0.01);
  EXPECT_NEAR(seconds(64) / seconds(16), 1, 0.03);
}

TEST(RealiseTest, AGroupOfOneTakesNothing) {
  const Machine machine = Made("dgx-h100:2");
  for (const CollectiveKind kind : kKinds) {
    const RealisedCollective nothing = Realised(machine, {3, {{1, 1}}}, kind, 1 << 30);
    EXPECT_EQ(AloneTime(machine, nothing), 0);
    EXPECT_TRUE(nothing.loads.empty());
    EXPECT_EQ(AloneTime(machine, Realised(machine, {0, {{8, 1}}}, kind, 0)), 0);
  }
}

TEST(RealiseTest, TensorParallelLoadsNvlinkOnly) {
  const Machine machine = Made("dgx-a100-80g:2");
  const auto c = Realised(machine, {8, {{8, 1}}}, CollectiveKind::kAllReduce, 64 << 20);
  EXPECT_EQ(c.algorithm, "ring");
  EXPECT_EQ(c.protocol, "Simple");
  EXPECT_EQ(c.loads.size(), 1);
  EXPECT_GT(Load(machine, c, LinkKind::kNvlink), 1.75);
  EXPECT_EQ(c.factor, "nvlink3/ring");
  EXPECT_EQ(c.provenance.knowledge, Knowledge::kCalibrated);
  EXPECT_GT(c.sm_fraction, 0.05);
  EXPECT_LT(c.sm_fraction, 0.5);
}

TEST(RealiseTest, RailAlignedDataParallelLoadsItsInterface) {
  const Machine machine = Made("dgx-a100-80g:16");
  const auto c = Realised(machine, {3, {{16, 8}}}, CollectiveKind::kReduceScatter, 1 << 30);
  EXPECT_EQ(c.loads.size(), 1);
  EXPECT_NEAR(Load(machine, c, LinkKind::kNic), 15.0 / 16 / 0.96, 0.01);
}

TEST(RealiseTest, SeveralMembersPerHostSpreadOverTheirInterfaces) {
  const Machine machine = FourInterfaces();
  // tp=2: 4 members per host on 4 interfaces; tp=1: 8 members on the same 4.
  const auto tp2 = Realised(machine, {0, {{32, 2}}}, CollectiveKind::kReduceScatter, 1 << 30);
  const auto tp1 = Realised(machine, {0, {{64, 1}}}, CollectiveKind::kReduceScatter, 1 << 30);
  EXPECT_NEAR(Load(machine, tp2, LinkKind::kNic), 31.0 / 32 / 4 / 0.96, 0.01);
  EXPECT_NEAR(Load(machine, tp1, LinkKind::kNic), 63.0 / 64 / 4 / 0.96, 0.01);
  EXPECT_GT(Load(machine, tp2, LinkKind::kNvlink), 0);
}

TEST(RealiseTest, RingsOfPartOfAHostMayShareOneInterface) {
  const Machine wide = FourInterfaces();
  const Machine narrow = Made("vtrain-a100-80g:8");
  const auto load = [](const Machine& machine, const GroupPattern& group) {
    return Load(machine, Realised(machine, group, CollectiveKind::kReduceScatter, 1 << 30),
                LinkKind::kNic);
  };
  EXPECT_NEAR(load(narrow, {0, {{32, 2}}}), 4 * load(wide, {0, {{32, 2}}}), 1e-5);
  // Whole hosts and groups with one member a host have all interfaces.
  EXPECT_EQ(load(narrow, {0, {{64, 1}}}), load(wide, {0, {{64, 1}}}));
  EXPECT_EQ(load(narrow, {0, {{8, 8}}}), load(wide, {0, {{8, 8}}}));
}

TEST(RealiseTest, TreesOverTwoHostsAreChosenAsIfTheyWereLarge) {
  // Two hosts send the buffer once each way in a tree, rings nearly twice; NCCL counts
  // trees as twice, the tuner of Amazon's network does not.
  const auto algorithm = [](const std::string& preset) {
    return Realised(Made(preset), {0, {{16, 1}}}, CollectiveKind::kAllReduce, 1 << 30).algorithm;
  };
  EXPECT_EQ(algorithm("oci-a100-40g:2"), "ring");
  EXPECT_EQ(algorithm("p4de-a100-80g:2"), "tree");
}

TEST(RealiseTest, GroupsOnOneInterfaceAddUp) {
  // tp=4 on 8 GPUs and 4 NICs: neighbouring dp groups share an interface, and
  // each needs all of it.
  const Machine machine = Made("vtrain-a100-80g:8");
  const int nic = machine.FindLinkClass(LinkKind::kNic);
  const auto a = Realised(machine, {0, {{8, 8}}}, CollectiveKind::kAllReduce, 1 << 30);
  const auto b = Realised(machine, {1, {{8, 8}}}, CollectiveKind::kAllReduce, 1 << 30);
  EXPECT_EQ(machine.LinkInstance(nic, 0), machine.LinkInstance(nic, 1));
  EXPECT_EQ(a.loads[0].coefficient_q20, b.loads[0].coefficient_q20);
  // Alone it saturates the interface: two take exactly twice the transfer.
  const double capacity = machine.link_classes()[nic].bytes_per_s;
  EXPECT_NEAR(a.rate_cap_bytes_per_s * Load(machine, a, LinkKind::kNic) / capacity, 1, 1e-5);
}

TEST(RealiseTest, TensorParallelAcrossHostsIsSlower) {
  const Machine machine = Made("dgx-a100-80g:2");
  const auto inside = Realised(machine, {0, {{8, 1}}}, CollectiveKind::kAllReduce, 50'000'000);
  const auto across =
      Realised(machine, {0, {{4, 1}, {2, 8}}}, CollectiveKind::kAllReduce, 50'000'000);
  EXPECT_GT(AloneTime(machine, across), 1.5 * AloneTime(machine, inside));
}

TEST(RealiseTest, HopperReducesInTheSwitch) {
  const Machine machine = Made("dgx-h100:1");
  EXPECT_EQ(Realised(machine, {0, {{8, 1}}}, CollectiveKind::kAllReduce, 1 << 30).algorithm,
            "nvls");
  EXPECT_EQ(Realised(machine, {0, {{2, 1}}}, CollectiveKind::kAllReduce, 1 << 30).algorithm,
            "ring");
  const Machine mesh = Made("hgx4-h100:1");
  EXPECT_EQ(Realised(mesh, {0, {{4, 1}}}, CollectiveKind::kAllReduce, 1 << 30).algorithm, "ring");
}

TEST(RealiseTest, SmallMessagesTakeTheLowLatencyProtocol) {
  const Machine machine = Made("dgx-a100-80g:1");
  EXPECT_EQ(Realised(machine, {0, {{8, 1}}}, CollectiveKind::kAllReduce, 4096).protocol, "LL");
}

TEST(RealiseTest, ManyHostsTakeTheTreeForMiddleSizes) {
  const Machine machine = Made("dgx-a100-80g:64");
  const GroupPattern rail = {0, {{64, 8}}};
  EXPECT_EQ(Realised(machine, rail, CollectiveKind::kAllReduce, 1 << 20).algorithm, "tree");
  EXPECT_EQ(Realised(machine, rail, CollectiveKind::kAllReduce, 1LL << 32).algorithm, "ring");
}

// 128 V100 in hosts of 16, us of an all_reduce (github.com/parasailteam/coconet): ring
// 302 at 4 KiB and 26,398 at 1 GiB; trees win up to 32 MiB, rings from 64 MiB.
TEST(RealiseTest, RingsAndTreesOf128GpusCrossWhereMeasured) {
  const Machine machine = Made("dgx2-v100-32g:8");
  const GroupPattern all = {0, {{128, 1}}};
  const auto ring_us = [&](int64_t bytes) {
    CollectivePolicy ring;
    ring.algorithm = "ring";
    const auto c = Realise(machine, all, CollectiveKind::kAllReduce, bytes, ring);
    EXPECT_TRUE(c.ok()) << c.status();
    return AloneTime(machine, *c) * 1e-6;
  };
  EXPECT_NEAR(ring_us(4096), 302, 0.15 * 302);
  EXPECT_NEAR(ring_us(1 << 30), 26398, 0.15 * 26398);
  int64_t crossover = 0;
  for (int64_t bytes = 1 << 20; bytes <= 1 << 30; bytes *= 2) {
    const bool tree = Realised(machine, all, CollectiveKind::kAllReduce, bytes).algorithm == "tree";
    if (!tree && crossover == 0) crossover = bytes;
    EXPECT_EQ(tree, crossover == 0) << "one crossover";
  }
  EXPECT_GT(crossover, 16 << 20);
  EXPECT_LE(crossover, 128 << 20);
}

// NCCL's tuner knows PCIe hosts otherwise than we do: what is cheapest runs there, so that a
// faster link never makes anything slower.
TEST(RealiseTest, FasterLinksNeverSlowPcieHosts) {
  for (const char* preset : {"mi210-pcie:2", "l40s-pcie:2", "l40s-host-bridge:2", "t4-pcie:4"}) {
    const Machine machine = Made(preset);
    Machine::Spec spec = machine.spec();
    spec.nic_bytes_per_s *= 2;
    const Machine nics = *Machine::Create(spec);
    spec.intra_bytes_per_s *= 1.25;
    const Machine both = *Machine::Create(spec);
    const GroupPattern all = {0, {{machine.num_devices(), 1}}};
    const GroupPattern part = {0, {{2, 1}, {spec.hosts, spec.gpus_per_host}}};
    for (const GroupPattern& group : {all, part}) {
      for (const CollectiveKind kind : {CollectiveKind::kAllReduce, CollectiveKind::kAllGather,
                                        CollectiveKind::kReduceScatter}) {
        for (int64_t bytes = 1 << 12; bytes <= int64_t{1} << 32; bytes *= 2) {
          const int64_t now = AloneTime(machine, Realised(machine, group, kind, bytes));
          const int64_t then = AloneTime(nics, Realised(nics, group, kind, bytes));
          EXPECT_LE(then, now + now / 1000) << preset << " " << bytes;
          EXPECT_LE(AloneTime(both, Realised(both, group, kind, bytes)), then + then / 1000)
              << preset << " " << bytes;
        }
      }
    }
  }
}

// NCCL's own model of hosts with one tree of switches is ours, within a fifth.
TEST(RealiseTest, EightDevicesBelowSwitchesTakeWhatNcclSays) {
  const Machine machine = Made("l40s-pcie:1");
  const GroupPattern all = {0, {{8, 1}}};
  const auto ring = Realised(machine, all, CollectiveKind::kAllReduce, int64_t{1} << 30);
  EXPECT_NEAR(AloneTime(machine, ring) * 1e-12, 78.4e-3, 0.2 * 78.4e-3);
  const Machine bridged = Made("l40s-host-bridge:1");
  EXPECT_GT(AloneTime(bridged, Realised(bridged, all, CollectiveKind::kAllReduce, 1 << 30)),
            10 * AloneTime(machine, ring));
}

TEST(RealiseTest, SpineCarriesWhatLeavesThePod) {
  const Machine machine = Made("grandteton-h100-80g:768");
  const GroupPattern inside = {0, {{384, 8}}};
  const GroupPattern across = {0, {{768, 8}}};
  const auto a = Realised(machine, inside, CollectiveKind::kAllGather, 1 << 30);
  const auto b = Realised(machine, across, CollectiveKind::kAllGather, 1 << 30);
  EXPECT_EQ(Load(machine, a, LinkKind::kSpine), 0);
  EXPECT_NEAR(Load(machine, b, LinkKind::kSpine), Load(machine, b, LinkKind::kNic), 1e-5);
}

TEST(RealiseTest, MeshPairsHaveTheirOwnLinksOnly) {
  const Machine machine = Made("jeanzay-v100-32g:1");  // 3 peers, 50 GB/s each
  const auto pair = Realised(machine, {0, {{2, 1}}}, CollectiveKind::kSendRecv, 1 << 30);
  EXPECT_LE(pair.rate_cap_bytes_per_s, 50'000'000'000);
  EXPECT_EQ(pair.provenance.knowledge, Knowledge::kExtrapolated);  // measured on NVLink 3
}

TEST(RealiseTest, ObeysThePolicy) {
  const Machine machine = Made("dgx-h100:2");
  const GroupPattern group = {0, {{16, 1}}};
  CollectivePolicy policy;
  policy.algorithm = "ring";
  policy.protocol = "LL";
  const auto c = Realised(machine, group, CollectiveKind::kAllReduce, 1 << 30, policy);
  EXPECT_EQ(c.algorithm, "ring");
  EXPECT_EQ(c.protocol, "LL");
  const auto best = Realised(machine, group, CollectiveKind::kAllReduce, 1 << 30);
  EXPECT_LT(AloneTime(machine, best), AloneTime(machine, c));
  CollectivePolicy slow;
  slow.bandwidth_scale = 0.5;
  const auto ratio = [&](const GroupPattern& members) {
    const auto slowed = Realised(machine, members, CollectiveKind::kAllReduce, 1LL << 34, slow);
    const auto full = Realised(machine, members, CollectiveKind::kAllReduce, 1LL << 34);
    return static_cast<double>(AloneTime(machine, slowed)) / AloneTime(machine, full);
  };
  EXPECT_NEAR(ratio({0, {{8, 1}}}), 2, 0.05);
  EXPECT_EQ(ratio({0, {{2, 8}}}), 1);  // nothing inside a host
}

TEST(RealiseTest, NominalLinksRunAtTheirCapacity) {
  const Machine machine = Made("dgx-a100-80g:1");
  CollectivePolicy nominal;
  nominal.nominal = true;
  constexpr int64_t kBytes = int64_t{1} << 30;
  // A ring of 8 sends every byte 2 * 7/8 times; 300 GB/s each way (NVIDIA A100 data sheet).
  const double wire = 2 * 7 / 8.0 * kBytes / 300e9;
  const auto c = Realised(machine, {0, {{8, 1}}}, CollectiveKind::kAllReduce, kBytes, nominal);
  EXPECT_NEAR(AloneTime(machine, c) * 1e-12, wire, 0.01 * wire);
  const auto measured = Realised(machine, {0, {{8, 1}}}, CollectiveKind::kAllReduce, kBytes);
  EXPECT_GT(AloneTime(machine, measured), AloneTime(machine, c));
}

TEST(RealiseTest, NamesWhatIsWrong) {
  const Machine machine = Made("dgx-h100:2");
  const GroupPattern group = {0, {{16, 1}}};
  const auto error = [&](CollectiveKind kind, int64_t bytes, const CollectivePolicy& policy) {
    return std::string(Realise(machine, group, kind, bytes, policy).status().message());
  };
  CollectivePolicy typo, tree, scale;
  typo.algorithm = "rnig";
  tree.algorithm = "tree";
  scale.bandwidth_scale = 0;
  EXPECT_THAT(error(CollectiveKind::kAllReduce, 1, typo), HasSubstr("Did you mean `ring`?"));
  EXPECT_THAT(error(CollectiveKind::kAllGather, 1, tree),
              HasSubstr("`tree` does not do all_gather over 16 devices in 2 nodes of `dgx-h100`."));
  EXPECT_THAT(error(CollectiveKind::kAllGather, 1, scale), HasSubstr("`bandwidth_scale` is 0"));
  EXPECT_THAT(error(CollectiveKind::kAllGather, -1, {}), HasSubstr("all_gather of -1 bytes"));
}

// What a member sends in any algorithm, per byte of the buffer: a lower bound.
double LeastFlow(CollectiveKind kind, double n) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return 1;  // with reductions in switches
    case CollectiveKind::kPermute:
    case CollectiveKind::kSendRecv:
    case CollectiveKind::kBroadcast:
      return 1;
    default:
      return (n - 1) / n;
  }
}

class LawsTest : public ::testing::TestWithParam<std::string> {};

TEST_P(LawsTest, HoldOnEveryMachine) {
  const Machine machine = Made(absl::StrCat(GetParam(), ":36"));
  std::mt19937 random(7);
  for (int trial = 0; trial < 60; ++trial) {
    GroupPattern group;
    int64_t stride = 1 + random() % 3;
    for (int d = 0; d < 2; ++d) {
      const auto extent = static_cast<int64_t>(1 + random() % 6);
      group.dims.push_back({extent, stride});
      stride *= extent * (1 + random() % 2);
    }
    const int64_t last = group.Members().back();
    if (last >= machine.num_devices() || group.size() < 2) continue;
    group.base = random() % (machine.num_devices() - last);
    for (const CollectiveKind kind : kKinds) {
      int64_t before = 0;
      std::string how;
      for (int64_t bytes = 1; bytes < (1LL << 38); bytes = bytes * 3 + 1) {
        const auto c = Realised(machine, group, kind, bytes);
        const int64_t time = AloneTime(machine, c);
        SCOPED_TRACE(absl::StrCat(kCollectiveKindNames[kind], " ", bytes, " ", c.algorithm, "/",
                                  c.protocol));
        // What NCCL changes to is sometimes faster than it thought: two hosts of H100
        // take 77.7 us for 512 KiB and 71.9 us for 1 MiB (NVIDIA/nccl-tests#309).
        const std::string now = absl::StrCat(c.algorithm, "/", c.protocol);
        EXPECT_GE(time, now == how ? before : before * 3 / 4) << "more bytes take longer";
        before = time;
        how = now;
        const double best = machine.spec().intra_bytes_per_s +
                            machine.spec().nic_bytes_per_s * machine.spec().nics_per_host;
        EXPECT_GE(time * 1e-12, bytes * LeastFlow(kind, group.size()) / best);
        EXPECT_GT(c.rate_cap_bytes_per_s, 0);
        EXPECT_FALSE(c.loads.empty());
        for (size_t i = 1; i < c.loads.size(); ++i) {
          EXPECT_LT(c.loads[i - 1].link_class, c.loads[i].link_class);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Presets, LawsTest, ::testing::ValuesIn(MachinePresetNames()),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

TEST(RealiseTest, CopyEnginesSendInsideOfANode) {
  const Machine machine = Made("dgx-h100:2");
  CollectivePolicy copy;
  copy.algorithm = "copy";
  const int64_t bytes = int64_t{1} << 26;
  const RealisedCollective sent =
      Realised(machine, {0, {{8, 1}}}, CollectiveKind::kPermute, bytes, copy);
  EXPECT_TRUE(sent.uses_no_sms);
  EXPECT_EQ(sent.channels, 0);
  EXPECT_EQ(sent.sm_fraction, 0);
  // 371 of 450 GB/s, 2.6 us (collectives/data/copies.textproto, links.textproto).
  const double expected = 2.6e-6 + static_cast<double>(bytes) / (0.825 * 450e9);
  EXPECT_NEAR(AloneTime(machine, sent) * 1e-12, expected, 1e-3 * expected);
  // Kernels do what is not asked for, and what no copy reaches.
  const GroupPattern across = {0, {{2, 8}}};
  const RealisedCollective plain =
      Realised(machine, {0, {{8, 1}}}, CollectiveKind::kPermute, bytes);
  EXPECT_EQ(plain.algorithm, "direct");
  EXPECT_FALSE(plain.uses_no_sms);
  EXPECT_GT(AloneTime(machine, plain), AloneTime(machine, sent));
  EXPECT_EQ(AloneTime(machine, Realised(machine, across, CollectiveKind::kPermute, bytes, copy)),
            AloneTime(machine, Realised(machine, across, CollectiveKind::kPermute, bytes)));
}

}  // namespace
}  // namespace plancast
