// Collectives that are replayed end as those that are simulated.

#include <random>

#include "gtest/gtest.h"
#include "interop/astra/simulator/simulate_astra.h"
#include "tests/interop/astra/simulator/astra_builder.h"
#include "tests/testing/seed.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using Kind = AstraAlgorithm::Kind;

void ExpectSame(const AstraWorkload& workload, const AstraNetwork& network,
                const AstraSystem& system, bool fewer_events) {
  AstraOptions plain;
  plain.memo = false;
  const auto one = SimulateAstra(workload, network, system);
  const auto other = SimulateAstra(workload, network, system, plain);
  ASSERT_EQ(one.ok(), other.ok()) << one.status() << " " << other.status();
  if (!one.ok()) return;
  EXPECT_EQ(one->finish_ns, other->finish_ns);
  EXPECT_EQ(one->messages, other->messages);
  if (!fewer_events) return;
  EXPECT_LT(one->events, other->events / 2);
}

AstraProgram Chain(int times, int64_t us) {
  std::vector<AstraNode> nodes;
  for (int i = 0; i < times; ++i) {
    nodes.push_back(AstraKernel(us));
    nodes.push_back(AstraComm(AstraCollective::kAllReduce, 1 << 20));
  }
  return AstraRow(nodes);
}

TEST(ReplaysTest, ChainsAndOverlapsOfAllAlgorithms) {
  for (const Kind kind : {Kind::kRing, Kind::kDirect, Kind::kHalvingDoubling}) {
    for (const bool aware : {false, true}) {
      AstraSystem system = SystemOf({kind});
      system.endpoint_delay_ns = 10;
      system.local_mem_gb_per_s = 50;
      for (const int splits : {1, 3}) {
        system.splits = splits;
        system.active_chunks = 2;
        const AstraNetwork network = OneDim(AstraWiring::kSwitch, 8, aware);
        ExpectSame(OnAllRanks(Chain(50, 20), 8), network, system, !aware);
        AstraProgram overlap;
        for (int i = 0; i < 50; ++i) {
          AstraNode kernel = AstraKernel(10),
                    comm = AstraComm(AstraCollective::kAllReduce, 1 << 20);
          kernel.id = 2 * i, comm.id = 2 * i + 1;
          overlap.Add(kernel);
          overlap.Add(comm, {2 * i});
        }
        ExpectSame(OnAllRanks(overlap, 8), network, system, !aware);
      }
    }
  }
}

TEST(ReplaysTest, TwoDimensionsAndQueues) {
  AstraNetwork network{{{AstraWiring::kSwitch, 4, 400, 936.25}, {AstraWiring::kRing, 4, 50, 1000}}};
  AstraSystem system = SystemOf({Kind::kRing, Kind::kDirect});
  system.splits = 4;
  for (const int queues : {1, 2, 4}) {
    network.queues_per_dim = queues;
    for (const bool aware : {false, true}) {
      network.congestion_aware = aware;
      ExpectSame(OnAllRanks(Chain(40, 30), 16), network, system, false);
    }
  }
}

// Kernels that differ by rank, groups, messages: whatever is replayed must not show.
TEST(ReplaysTest, RandomWorkloads) {
  std::mt19937_64 random(TestSeed(11));
  for (int run = 0; run < 300; ++run) {
    const int64_t n = int64_t{2} << (random() % 3);
    const Kind kinds[] = {Kind::kRing, Kind::kDirect, Kind::kHalvingDoubling,
                          Kind::kDoubleBinaryTree};
    AstraSystem system = SystemOf({kinds[random() % 4]});
    system.splits = static_cast<int>(1 + random() % 3);
    system.active_chunks = static_cast<int>(1 + random() % 3);
    system.endpoint_delay_ns = static_cast<int64_t>(random() % 3) * 5;
    system.local_mem_gb_per_s = random() % 2 == 0 ? 1e9 : 20;
    AstraNetwork network = OneDim(static_cast<AstraWiring>(random() % 3), n, random() % 2 == 0);
    network.queues_per_dim = static_cast<int>(1 + random() % 2);
    if (random() % 3 == 0) network.dims[0].latency_ns = 0;
    const int nodes = static_cast<int>(4 + random() % 30);
    std::vector<AstraNode> same;
    for (int i = 0; i < nodes; ++i) {
      const uint64_t what = random() % 8;
      if (what < 3) {
        same.push_back(AstraKernel(static_cast<int64_t>(random() % 3) * 10));
      } else {
        same.push_back(AstraComm(static_cast<AstraCollective>(random() % 3),
                                 int64_t{1} << (10 + random() % 3)));
      }
    }
    const bool chain = random() % 2 == 0, alike = random() % 2 == 0;
    AstraWorkload workload;
    for (int64_t r = 0; r < n; ++r) {
      std::vector<AstraNode> mine = same;
      for (AstraNode& node : mine) {
        if (!alike && node.kind == AstraNodeKind::kCompute && r == 0) node.duration_us += 7;
      }
      if (random() % 4 == 0 && !alike) {
        mine.insert(mine.begin() + static_cast<int64_t>(random() % mine.size()), AstraKernel(3));
      }
      workload.programs.push_back(AstraRow(mine, chain));
      workload.program_of.push_back(static_cast<int32_t>(r));
    }
    SCOPED_TRACE(::testing::Message()
                 << "run " << run << " npus " << n << " algorithm "
                 << static_cast<int>(system.all_reduce[0].kind) << " wiring "
                 << static_cast<int>(network.dims[0].wiring) << " aware "
                 << network.congestion_aware << " latency " << network.dims[0].latency_ns
                 << " splits " << system.splits << " at once " << system.active_chunks << " queues "
                 << network.queues_per_dim << " endpoint " << system.endpoint_delay_ns << " memory "
                 << system.local_mem_gb_per_s << (chain ? " chain" : "")
                 << (alike ? " alike" : ""));
    ExpectSame(workload, network, system, false);
  }
}

}  // namespace
}  // namespace plancast
