#include "executor/chunks/place_nccl.h"

#include <cstdint>
#include <iostream>
#include <string>

#include "cluster/topology/machine_topology.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

NcclSearchResult SearchOn(const Machine& machine) {
  const MachineTopology topology = TopologyOf(machine);
  absl::StatusOr<NcclSearchResult> search =
      SearchGraphs(topology.system, topology.hosts, kLatestNccl);
  EXPECT_OK(search.status());
  return *std::move(search);
}

// What NCCL expects has no filling of pipelines in it: chunks take a little more, and
// never less than the transfer. For large messages both are the transfer.
TEST(PlaceNcclTest, ChunksTakeWhatNcclExpectsAndTheFilling) {
  for (const char* preset : {"dgx-h100:1", "dgx-h100:2", "dgx-h100:8", "dgx-a100-80g:4"}) {
    const Machine machine = *MachineFromPreset(preset);
    const NcclSearchResult search = SearchOn(machine);
    const NcclTuner tuner = *NcclTuner::Create(search.communicator);
    for (const ProgramKind kind : {ProgramKind::kAllReduce, ProgramKind::kAllGather}) {
      for (const int64_t bytes :
           {int64_t{1} << 13, int64_t{1} << 20, int64_t{1} << 26, int64_t{1} << 32}) {
        const auto choice = tuner.Choose(kind, bytes);
        ASSERT_TRUE(choice.has_value());
        const auto placed = PlaceNccl(machine, search, kind, *choice, bytes);
        ASSERT_OK(placed.status());
        const auto outcome = ExecuteChunks(ChunkNetwork::OfMachine(machine), {*placed});
        ASSERT_OK(outcome.status());
        const double us = static_cast<double>(outcome->finish_ps) * 1e-6;
        const NcclCost cost = tuner.Cost(kind, choice->algorithm, choice->protocol);
        std::cout << preset << " " << kProgramKindNames[kind] << " " << bytes << " "
                  << kNcclAlgorithmNames[choice->algorithm] << "/"
                  << kProtocolNames[choice->protocol] << " x" << choice->channels << ": NCCL "
                  << choice->us << ", chunks " << us << ", classes " << outcome->classes
                  << ", messages " << outcome->messages << "\n";
        EXPECT_GE(us, static_cast<double>(bytes) / cost.bandwidth / 1e3 * 0.99);
        EXPECT_GT(us / choice->us, 0.5);
        EXPECT_LT(us / choice->us, 3.0);
      }
    }
  }
}

}  // namespace
}  // namespace plancast
