#include <optional>
#include <utility>

#include "base/status_macros.h"
#include "cluster/machine_proto.h"
#include "cluster/topology/machine_topology.h"
#include "collectives/nccl/search.h"
#include "collectives/nccl/tuner.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

// What logs of NCCL show, by our description of the machine, our search and our tuner.

namespace plancast {
namespace {

absl::StatusOr<NcclCommunicator> Search(const Machine& machine, NcclVersion version) {
  const MachineTopology topology = TopologyOf(machine);
  ASSIGN_OR_RETURN(NcclSearchResult found, SearchGraphs(topology.system, topology.hosts, version));
  return std::move(found.communicator);
}

void ExpectGraph(const NcclGraph& graph, int channels, float intra, float inter) {
  EXPECT_EQ(graph.num_channels, channels);
  EXPECT_FLOAT_EQ(graph.bw_intra, intra);
  EXPECT_FLOAT_EQ(graph.bw_inter, inter);
}

void ExpectChannels(const NcclCommunicator& communicator, int all, int p2p, int per_peer) {
  EXPECT_EQ(communicator.channels, all);
  EXPECT_EQ(communicator.p2p_channels, p2p);
  EXPECT_EQ(communicator.p2p_channels_per_peer, per_peer);
}

// github.com/NVIDIA/nccl/issues/1453: three hosts of H100, `Algo 0 proto 0`.
TEST(PublishedLogsTest, H100OfThreeHosts) {
  ASSERT_OK_AND_ASSIGN(const Machine machine, MachineFromPreset("dgx-h100:3"));
  ASSERT_OK_AND_ASSIGN(const NcclCommunicator found, Search(machine, NcclVersion::k2_27));
  ASSERT_OK_AND_ASSIGN(const NcclTuner tuner, NcclTuner::Create(found));
  for (const auto& [bytes, us] : {std::pair(4096, 25.874907), std::pair(8192, 26.549810)}) {
    const std::optional<NcclChoice> choice = tuner.Choose(ProgramKind::kAllReduce, bytes);
    ASSERT_TRUE(choice.has_value());
    EXPECT_EQ(choice->algorithm, NcclAlgorithm::kTree);
    EXPECT_EQ(choice->protocol, Protocol::kLl);
    EXPECT_NEAR(choice->us, us, 1e-4);
  }
}

// github.com/NVIDIA/nccl/issues/1154: two hosts of H800.
TEST(PublishedLogsTest, H800OfTwoHosts) {
  ASSERT_OK_AND_ASSIGN(const Machine machine, MachineFromPreset("deepseek-h800:2"));
  ASSERT_OK_AND_ASSIGN(const NcclCommunicator old, Search(machine, NcclVersion::k2_27));
  ASSERT_OK_AND_ASSIGN(const NcclTuner tuner, NcclTuner::Create(old));
  const NcclCost cost =
      tuner.Cost(ProgramKind::kAllReduce, NcclAlgorithm::kTree, Protocol::kSimple);
  EXPECT_NEAR(cost.bandwidth, 68.8, 0.05);

  ASSERT_OK_AND_ASSIGN(const NcclCommunicator found, Search(machine, NcclVersion::k2_30));
  ExpectGraph(found.ring, 8, 22, 22);
  ExpectGraph(found.nvls, 8, 17.5, 40);
  ExpectChannels(found, 16, 16, 4);
}

// The channels that a run of NCCL 2.30.7 on the description of a host gives.
TEST(PublishedLogsTest, P4d) {
  ASSERT_OK_AND_ASSIGN(const Machine one, MachineFromPreset("p4d-a100-40g:1"));
  ASSERT_OK_AND_ASSIGN(const NcclCommunicator alone, Search(one, NcclVersion::k2_30));
  ExpectGraph(alone.ring, 12, 20, 20);
  ExpectChannels(alone, 24, 32, 32);
  ASSERT_OK_AND_ASSIGN(const Machine two, MachineFromPreset("p4d-a100-40g:2"));
  ASSERT_OK_AND_ASSIGN(const NcclCommunicator found, Search(two, NcclVersion::k2_30));
  ExpectGraph(found.ring, 4, 12, 12);
  ExpectGraph(found.tree, 4, 24, 12);
  ExpectChannels(found, 8, 8, 1);
}

TEST(PublishedLogsTest, TraysOfGb200) {
  proto::Machine tray;
  tray.set_preset("gb200-nvl72");
  tray.set_hosts_per_domain(1);
  tray.set_topology("nvswitch");
  tray.set_hosts(1);
  ASSERT_OK_AND_ASSIGN(const Machine one, MachineFromProto(tray));
  ASSERT_OK_AND_ASSIGN(const NcclCommunicator alone, Search(one, NcclVersion::k2_30));
  ExpectGraph(alone.ring, 16, 45, 45);
  ExpectGraph(alone.nvls, 4, 90, 90);
  ExpectChannels(alone, 32, 32, 32);
  tray.set_hosts(2);
  ASSERT_OK_AND_ASSIGN(const Machine two, MachineFromProto(tray));
  ASSERT_OK_AND_ASSIGN(const NcclCommunicator found, Search(two, NcclVersion::k2_30));
  ExpectGraph(found.ring, 8, 24, 24);
  EXPECT_EQ(found.ring.type_inter, PathType::kP2c);
  ExpectGraph(found.tree, 8, 48, 24);
  ExpectGraph(found.nvls, 4, 48, 48);
  ExpectChannels(found, 16, 16, 4);
}

}  // namespace
}  // namespace plancast
