#include "collectives/nccl/tuner.h"

#include <algorithm>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/collectives/nccl/communicators.h"

namespace plancast {
namespace {

using testing::HasSubstr;

constexpr auto kTree = NcclAlgorithm::kTree;
constexpr auto kRing = NcclAlgorithm::kRing;
constexpr auto kNvls = NcclAlgorithm::kNvls;
constexpr auto kNvlsTree = NcclAlgorithm::kNvlsTree;
constexpr auto kPat = NcclAlgorithm::kPat;
constexpr auto kLl = Protocol::kLl;
constexpr auto kLl128 = Protocol::kLl128;
constexpr auto kSimple = Protocol::kSimple;
constexpr auto kAllReduce = ProgramKind::kAllReduce;
constexpr auto kAllGather = ProgramKind::kAllGather;

NcclTuner TunerOf(const NcclCommunicator& communicator) { return *NcclTuner::Create(communicator); }

// github.com/NVIDIA/nccl/issues/1453: three nodes of H100 log these times.
TEST(NcclTunerTest, ThreeNodesOfH100AreTimedAsLogged) {
  const NcclTuner tuner = TunerOf(DgxH100(3, NcclVersion::k2_27));
  EXPECT_NEAR(*tuner.Time(kAllReduce, kTree, kLl, 4096), 25.874907, 25.874907e-4);
  EXPECT_NEAR(*tuner.Time(kAllReduce, kTree, kLl, 8192), 26.549810, 26.549810e-4);
  for (const int64_t bytes : {4096, 8192}) {
    const auto choice = tuner.Choose(kAllReduce, bytes);
    EXPECT_EQ(choice->algorithm, kTree);
    EXPECT_EQ(choice->protocol, kLl);
  }
}

// github.com/NVIDIA/nccl/issues/1154: two nodes of H800, 8 channels of 22 GB/s.
TEST(NcclTunerTest, TwoNodesOfH800HaveTheLoggedTreeBandwidth) {
  NcclCommunicator comm = DgxH100(2, NcclVersion::k2_27);
  comm.ring.bw_intra = comm.ring.bw_inter = comm.tree.bw_intra = comm.tree.bw_inter = 22;
  EXPECT_NEAR(TunerOf(comm).Cost(kAllReduce, kTree, kSimple).bandwidth, 68.816, 1e-4 * 68.816);
}

// github.com/NVIDIA/nccl-tests/issues/309 and the H200 log of stas00/ml-engineering:
// Ring/LL up to 1 MiB, NVLS/Simple from 2 MiB.
TEST(NcclTunerTest, OneNodeOfH100TurnsToSwitchesAtTwoMebibytes) {
  const NcclTuner tuner = TunerOf(DgxH100(1, NcclVersion::k2_27));
  EXPECT_EQ(tuner.Choose(kAllReduce, 32 << 10)->algorithm, kRing);
  EXPECT_EQ(tuner.Choose(kAllReduce, 32 << 10)->protocol, kLl);
  EXPECT_EQ(tuner.Choose(kAllReduce, 1 << 20)->protocol, kLl);
  EXPECT_EQ(tuner.Choose(kAllReduce, 1 << 20)->algorithm, kRing);
  for (int64_t bytes = 2 << 20; bytes <= int64_t{16} << 30; bytes *= 2) {
    EXPECT_EQ(tuner.Choose(kAllReduce, bytes)->algorithm, kNvls) << bytes;
  }
}

TEST(NcclTunerTest, RingOfOneNodeByHand) {
  const NcclTuner tuner = TunerOf(DgxA100(1));
  // 14 steps of 0.6, 1.9, 3.4 us after 6.6, 14, 8.4.
  EXPECT_NEAR(tuner.Cost(kAllReduce, kRing, kLl).latency_us, 6.6 + 14 * 0.6, 1e-9);
  EXPECT_NEAR(tuner.Cost(kAllReduce, kRing, kLl128).latency_us, 14 + 14 * 1.9, 1e-9);
  EXPECT_NEAR(tuner.Cost(kAllReduce, kRing, kSimple).latency_us, 8.4 + 14 * 3.4, 1e-9);
  // 12 rings of 20 GB/s, 8 parts in 14 steps; LL at most 87.7, LL128 at 0.92.
  EXPECT_NEAR(tuner.Cost(kAllReduce, kRing, kSimple).bandwidth, 240 * 8 / 14.0, 1e-9);
  EXPECT_NEAR(tuner.Cost(kAllReduce, kRing, kLl128).bandwidth, 240 * 0.92 * 8 / 14, 1e-9);
  EXPECT_NEAR(tuner.Cost(kAllReduce, kRing, kLl).bandwidth, 87.7 * 8 / 14, 1e-9);
  EXPECT_NEAR(tuner.Cost(kAllGather, kRing, kSimple).bandwidth, 240 * 8 / 7.0, 1e-9);
  EXPECT_NEAR(*tuner.Time(kAllReduce, kRing, kSimple, 1'000'000'000),
              8.4 + 14 * 3.4 + 1e6 / (240 * 8 / 14.0), 1e-6);
}

TEST(NcclTunerTest, OneNodeReducesInItsSwitches) {
  // 8 heads, 85 % of 40 GB/s less the head's own, both ways.
  const NcclTuner tuner = TunerOf(DgxH100(1));
  EXPECT_NEAR(tuner.Cost(kAllReduce, kNvls, kSimple).bandwidth,
              8 * (40 * 0.85 * 7 / 8 * 2) * 8 / 14, 1e-9);
  EXPECT_NEAR(tuner.Cost(kAllReduce, kNvls, kSimple).latency_us, 25, 1e-9);
  EXPECT_NEAR(tuner.Cost(kAllGather, kNvls, kSimple).bandwidth, 8 * 40 * 0.85 * 7 / 8 * 7 / 8,
              1e-9);
  // 2.27 knew no efficiency.
  const NcclTuner old = TunerOf(DgxH100(1, NcclVersion::k2_27));
  EXPECT_NEAR(old.Cost(kAllReduce, kNvls, kSimple).bandwidth, 8 * 40 * 5 / 6.0, 1e-9);
}

TEST(NcclTunerTest, PairsRunWhereNcclRunsThem) {
  const NcclTuner one = TunerOf(DgxH100(1)), four = TunerOf(DgxH100(4));
  EXPECT_TRUE(one.Time(kAllReduce, kNvls, kSimple, 1).has_value());
  EXPECT_FALSE(one.Time(kAllReduce, kNvls, kLl, 1).has_value());
  EXPECT_FALSE(one.Time(kAllReduce, kNvlsTree, kSimple, 1).has_value());
  EXPECT_FALSE(four.Time(kAllReduce, kNvls, kSimple, 1).has_value());
  EXPECT_TRUE(four.Time(kAllReduce, kNvlsTree, kSimple, 1).has_value());
  EXPECT_FALSE(four.Time(kAllGather, kTree, kSimple, 1).has_value());
  EXPECT_FALSE(four.Time(kAllGather, kPat, kSimple, 1).has_value());
  EXPECT_FALSE(one.Time(ProgramKind::kAllToAll, kRing, kSimple, 1).has_value());
  NcclCommunicator far = DgxA100(2);
  far.ring.type_inter = PathType::kPhb;
  EXPECT_FALSE(TunerOf(far).Time(kAllReduce, kRing, kLl128, 1).has_value());
  EXPECT_TRUE(TunerOf(far).Time(kAllReduce, kTree, kLl128, 1).has_value());
}

TEST(NcclTunerTest, OneGpuPerNodeGathersByPat) {
  NcclCommunicator comm = DgxH100(4);
  comm.ranks = 4;
  comm.max_local_ranks = 1;
  comm.nvls_supported = false;
  comm.nvls = {};
  const NcclTuner tuner = TunerOf(comm);
  EXPECT_NEAR(tuner.Cost(kAllGather, kPat, kSimple).latency_us, 8 + 2 * 14 / 3.5 + 4 * 2.8, 1e-9);
  EXPECT_NEAR(tuner.Cost(kAllGather, kPat, kSimple).bandwidth, 8 * 48 * 0.75, 1e-9);
}

TEST(NcclTunerTest, ConstraintsNarrowTheChoice) {
  const NcclTuner tuner = TunerOf(DgxH100(1));
  NcclConstraints constraints;
  constraints.nvls = false;
  EXPECT_EQ(tuner.Choose(kAllReduce, 1 << 30, constraints)->algorithm, kRing);
  constraints.algorithm = kTree;
  EXPECT_EQ(tuner.Choose(kAllReduce, 1 << 30, constraints)->algorithm, kTree);
  constraints.protocol = kLl128;
  EXPECT_EQ(tuner.Choose(kAllReduce, 1 << 30, constraints)->protocol, kLl128);
  EXPECT_FALSE(tuner.Choose(kAllGather, 1 << 30, constraints).has_value());
  // Rings round FP8 at every step, so beyond a node of eight NCCL shuns them.
  constraints = {};
  constraints.fp8 = true;
  EXPECT_NE(TunerOf(DgxH100(2)).Choose(kAllReduce, int64_t{16} << 30, constraints)->algorithm,
            kRing);
}

// enqueue.cc: fewer channels, then fewer threads, until each has its 8 (LL, for
// each rank), or 64 (Simple) bytes.
TEST(NcclTunerTest, LaunchesShrinkWithTheMessage) {
  const NcclTuner tuner = TunerOf(DgxH100(1));
  NcclChoice choice = {kRing, kLl, 0, 0, 0};
  tuner.SizeLaunch(1 << 20, &choice);
  EXPECT_EQ(choice.channels, 24);
  EXPECT_EQ(choice.threads, 512);
  tuner.SizeLaunch(128 << 10, &choice);  // 4 * 512 * 64
  EXPECT_EQ(choice.channels, 4);
  tuner.SizeLaunch(8, &choice);
  EXPECT_EQ(choice.channels, 1);
  EXPECT_EQ(choice.threads, 96);
  choice = {kRing, kSimple, 0, 0, 0};
  tuner.SizeLaunch(1 << 30, &choice);
  EXPECT_EQ(choice.channels, 24);
  EXPECT_EQ(choice.threads, 512 + 32);
  choice = {kTree, kLl, 0, 0, 0};
  tuner.SizeLaunch(8, &choice);
  EXPECT_EQ(choice.threads, 640);
  choice = {kNvls, kSimple, 0, 0, 0};
  tuner.SizeLaunch(8, &choice);
  EXPECT_EQ(choice.channels, 16);
  EXPECT_EQ(choice.threads, 640);
}

// Four collectives of a group share a launch: trees pay their latency once.
TEST(NcclTunerTest, GroupedCollectivesShareLatency) {
  const NcclTuner tuner = TunerOf(DgxA100(2));
  const double tree = tuner.Cost(kAllReduce, kTree, kLl).latency_us;
  const double ring = tuner.Cost(kAllReduce, kRing, kLl).latency_us;
  EXPECT_NEAR(*tuner.Time(kAllReduce, kTree, kLl, 0, 4), tree, 1e-9);
  EXPECT_NEAR(*tuner.Time(kAllReduce, kTree, kLl, 0, 5), 2 * tree, 1e-9);
  EXPECT_NEAR(*tuner.Time(kAllReduce, kRing, kLl, 0, 4), 4 * ring, 1e-9);
}

// 8 bytes over 4096 nodes of 6 GPUs.
TEST(NcclTunerTest, TreesLeaveRingsBehindAtScale) {
  double last = 0;
  for (const int nodes : {64, 512, 4096}) {
    NcclCommunicator comm = DgxA100(nodes);
    comm.cpu_vendor = CpuVendor::kIntel;
    comm.ranks = 6 * nodes;
    comm.max_local_ranks = 6;
    const NcclTuner tuner = TunerOf(comm);
    const double ring = *tuner.Time(kAllReduce, kRing, kLl, 8);
    const double tree = *tuner.Time(kAllReduce, kTree, kLl, 8);
    EXPECT_GT(ring / tree, last);
    last = ring / tree;
  }
  EXPECT_GE(last, 100);
  EXPECT_LE(last, 500);
}

TEST(NcclTunerTest, NamesAreReadInAnyCase) {
  EXPECT_EQ(*ParseNcclAlgorithm("nvlstree"), kNvlsTree);
  EXPECT_EQ(*ParseNcclProtocol("ll128"), kLl128);
  EXPECT_THAT(std::string(ParseNcclAlgorithm("rings").status().message()),
              HasSubstr("Did you mean `Ring`?"));
}

TEST(NcclTunerTest, RefusesWhatCannotRun) {
  NcclCommunicator comm = DgxA100(2);
  comm.ring = {};
  EXPECT_THAT(std::string(NcclTuner::Create(comm).status().message()), HasSubstr("ring"));
  comm = DgxA100(2);
  comm.ranks = 1;
  EXPECT_THAT(std::string(NcclTuner::Create(comm).status().message()), HasSubstr("1 ranks"));
}

}  // namespace
}  // namespace plancast
