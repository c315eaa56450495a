#include "interop/astra/simulator/simulate_astra.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/interop/astra/simulator/astra_builder.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using Kind = AstraAlgorithm::Kind;

constexpr int64_t kMiB = 1 << 20;

int64_t LastOf(const AstraWorkload& workload, const AstraNetwork& network,
               const AstraSystem& system) {
  const auto result = SimulateAstra(workload, network, system);
  EXPECT_OK(result);
  return result.ok() ? result->last_finish_ns() : -1;
}

// One message 1 -> 4 of 1 MiB.
int64_t OneMessage(const AstraNetwork& network) {
  AstraWorkload workload;
  workload.programs = {AstraRow({}), AstraRow({AstraMessage(true, 4, 0, kMiB)}),
                       AstraRow({AstraMessage(false, 1, 0, kMiB)})};
  workload.program_of.assign(network.npus(), 0);
  workload.program_of[1] = 1;
  workload.program_of[4] = 2;
  return LastOf(workload, network, SystemOf({Kind::kRing}));
}

TEST(SimulateAstraTest, OneMessageWithCongestionStoresAndForwards) {
  EXPECT_EQ(OneMessage(OneDim(AstraWiring::kRing, 16, true)), 60093);
  EXPECT_EQ(OneMessage(OneDim(AstraWiring::kFullyConnected, 16, true)), 20031);
  EXPECT_EQ(OneMessage(OneDim(AstraWiring::kSwitch, 16, true)), 40062);
  EXPECT_EQ(OneMessage(OneDim(AstraWiring::kRing, 16, false)), 21031);
  EXPECT_EQ(OneMessage(OneDim(AstraWiring::kFullyConnected, 16, false)), 20031);
  EXPECT_EQ(OneMessage(OneDim(AstraWiring::kSwitch, 16, false)), 20531);
}

// Everybody sends 1 MiB to everybody at once: the naive all-gather of
// astra-network-analytical's example.
TEST(SimulateAstraTest, NaiveAllGatherOnARing) {
  const AstraNetwork network = OneDim(AstraWiring::kRing, 16, true);
  AstraSystem system = SystemOf({Kind::kRing});
  system.all_gather = {{Kind::kCustom}};
  for (int64_t place = 0; place < 16; ++place) {
    std::vector<AstraNode> nodes;
    for (int64_t other = 0; other < 16; ++other) {
      if (other != place) nodes.push_back(AstraMessage(true, other, 0, kMiB));
    }
    for (int64_t other = 0; other < 16; ++other) {
      if (other != place) nodes.push_back(AstraMessage(false, other, 0, kMiB));
    }
    system.custom.push_back(AstraRow(nodes, /*chain=*/false));
  }
  const AstraWorkload workload =
      OnAllRanks(AstraRow({AstraComm(AstraCollective::kAllGather, kMiB)}), 16);
  EXPECT_EQ(LastOf(workload, network, system), 704116);
}

// The regression of ASTRA-sim's repository.
TEST(SimulateAstraTest, RegressionOfTheRepository) {
  AstraSystem system = SystemOf({Kind::kRing});
  system.splits = 4;
  system.endpoint_delay_ns = 10;
  system.local_mem_gb_per_s = 50;
  const AstraWorkload workload =
      OnAllRanks(AstraRow({AstraComm(AstraCollective::kAllReduce, kMiB)}), 8);
  EXPECT_EQ(LastOf(workload, OneDim(AstraWiring::kRing, 8, true), system), 117780);
  // Without the delays of memory and processor: what the network takes.
  EXPECT_EQ(LastOf(workload, OneDim(AstraWiring::kRing, 8, true), SystemOf({Kind::kRing})), 41189);
}

// Closed form of the backend without congestion.
TEST(SimulateAstraTest, ClosedFormsWithoutCongestion) {
  const double bytes_per_ns = 50.0 * (1 << 30) / 1e9;
  for (const int64_t n : {2, 4, 8, 16, 64}) {
    for (const int64_t size : {int64_t{4096}, kMiB, 7 * kMiB}) {
      const auto t = [&](int64_t m) {
        return static_cast<int64_t>(1000 + static_cast<double>(m) / bytes_per_ns);
      };
      int64_t log = 0;
      while ((int64_t{1} << log) < n) ++log;
      int64_t halving = 1;
      for (int64_t k = 1; k <= log; ++k) halving += 2 * (t(size >> k) + 1);
      const struct {
        Kind kind;
        AstraCollective collective;
        int64_t want;
      } cases[] = {
          {Kind::kRing, AstraCollective::kAllReduce, 1 + 2 * (n - 1) * (t(size / n) + 1)},
          {Kind::kRing, AstraCollective::kReduceScatter, 1 + (n - 1) * (t(size / n) + 1)},
          {Kind::kRing, AstraCollective::kAllGather, 1 + (n - 1) * (t(size) + 1)},
          {Kind::kDirect, AstraCollective::kAllReduce, 1 + 2 * (t(size / n) + 1)},
          {Kind::kDirect, AstraCollective::kReduceScatter, 1 + t(size / n) + 1},
          {Kind::kDirect, AstraCollective::kAllToAll, 1 + t(size / n) + 1},
          {Kind::kDirect, AstraCollective::kAllGather, 1 + t(size) + 1},
          {Kind::kHalvingDoubling, AstraCollective::kAllReduce, halving},
      };
      for (const auto& c : cases) {
        const AstraWorkload workload = OnAllRanks(AstraRow({AstraComm(c.collective, size)}), n);
        const auto result =
            SimulateAstra(workload, OneDim(AstraWiring::kSwitch, n, false), SystemOf({c.kind}));
        ASSERT_OK(result);
        EXPECT_THAT(result->finish_ns, Each(c.want))
            << n << " NPUs, " << size << " B, " << static_cast<int>(c.kind) << " "
            << static_cast<int>(c.collective);
      }
    }
  }
}

TEST(SimulateAstraTest, ChunksRunInWaves) {
  const AstraWorkload workload =
      OnAllRanks(AstraRow({AstraComm(AstraCollective::kAllReduce, 64 * kMiB)}), 8);
  AstraSystem system = SystemOf({Kind::kRing});
  system.splits = 16;
  const AstraNetwork network = OneDim(AstraWiring::kRing, 8, false);
  const int64_t one_by_one = LastOf(workload, network, system);
  for (const int at_once : {2, 4, 16}) {
    system.active_chunks = at_once;
    EXPECT_EQ(LastOf(workload, network, system) * at_once, one_by_one);
  }
}

TEST(SimulateAstraTest, OneCommunicationAtATimeBesideKernels) {
  const AstraNode reduce = AstraComm(AstraCollective::kAllReduce, kMiB);
  const AstraNetwork network = OneDim(AstraWiring::kSwitch, 8, false);
  const AstraSystem system = SystemOf({Kind::kRing});
  const int64_t alone = LastOf(OnAllRanks(AstraRow({reduce}), 8), network, system);
  EXPECT_EQ(LastOf(OnAllRanks(AstraRow({reduce, reduce}, false), 8), network, system), 2 * alone);
  EXPECT_EQ(LastOf(OnAllRanks(AstraRow({reduce, AstraKernel(20)}, false), 8), network, system),
            std::max<int64_t>(alone, 20000));
  const auto chain =
      SimulateAstra(OnAllRanks(AstraRow({AstraKernel(20), reduce}), 8), network, system);
  ASSERT_OK(chain);
  EXPECT_EQ(chain->last_finish_ns(), alone + 20000);
  EXPECT_THAT(chain->compute_ns, Each(20000));
}

TEST(SimulateAstraTest, LastInFirstOutOvertakes) {
  // Of a second collective no chunk waits for those of the first, if it came later.
  AstraSystem system = SystemOf({Kind::kRing});
  system.splits = 4;
  const AstraWorkload workload =
      OnAllRanks(AstraRow({AstraComm(AstraCollective::kAllReduce, kMiB)}), 8);
  const AstraNetwork network = OneDim(AstraWiring::kSwitch, 8, false);
  const int64_t lifo = LastOf(workload, network, system);
  system.order = AstraSystem::Order::kFifo;
  EXPECT_EQ(LastOf(workload, network, system), lifo);  // of one collective there is no order
}

TEST(SimulateAstraTest, MessagesThatComeEarlyWaitForTheirReceive) {
  AstraWorkload workload;
  workload.programs = {AstraRow({AstraMessage(true, 1, 7, 1000)}),
                       AstraRow({AstraKernel(100), AstraMessage(false, 0, 7, 1000)})};
  workload.program_of = {0, 1};
  const auto result =
      SimulateAstra(workload, OneDim(AstraWiring::kRing, 2, false), SystemOf({Kind::kRing}));
  ASSERT_OK(result);
  EXPECT_EQ(result->finish_ns[0], 518);
  EXPECT_EQ(result->finish_ns[1], 100000);
}

TEST(SimulateAstraTest, RooflineOfKernels) {
  AstraNode kernel = AstraKernel(5);
  kernel.ops = 1'000'000'000;
  kernel.bytes = 1'000'000;
  AstraSystem system = SystemOf({Kind::kRing});
  system.roofline = true;
  system.peak_tflops = 100;
  system.local_mem_gb_per_s = 1000;
  const AstraNetwork network = OneDim(AstraWiring::kRing, 2, false);
  EXPECT_EQ(LastOf(OnAllRanks(AstraRow({kernel}), 2), network, system), 10000);
  kernel.bytes = 100'000'000;  // memory-bound
  EXPECT_EQ(LastOf(OnAllRanks(AstraRow({kernel}), 2), network, system), 100000);
  kernel.on_cpu = true;
  EXPECT_EQ(LastOf(OnAllRanks(AstraRow({kernel}), 2), network, system), 5000);
}

TEST(SimulateAstraTest, ErrorsSayWhatIsWrong) {
  const AstraNode reduce = AstraComm(AstraCollective::kAllReduce, kMiB);
  const AstraSystem system = SystemOf({Kind::kRing});
  EXPECT_THAT(
      SimulateAstra(OnAllRanks(AstraRow({reduce}), 4), OneDim(AstraWiring::kRing, 8, false), system)
          .status()
          .message(),
      HasSubstr("traces of 4 ranks; the network has 8 NPUs"));
  EXPECT_THAT(SimulateAstra(OnAllRanks(AstraRow({reduce}), 6), OneDim(AstraWiring::kRing, 6, false),
                            SystemOf({Kind::kHalvingDoubling}))
                  .status()
                  .message(),
              HasSubstr("power of two"));
  AstraWorkload lonely = OnAllRanks(AstraRow({}), 4);
  lonely.programs.push_back(AstraRow({AstraMessage(false, 2, 0, 8)}));
  lonely.program_of[1] = 1;
  EXPECT_THAT(
      SimulateAstra(lonely, OneDim(AstraWiring::kRing, 4, false), system).status().message(),
      HasSubstr("rank 1 never ends"));
  AstraProgram circle = AstraRow({reduce, reduce});
  circle.dep_begin = {0, 1, 2};
  circle.deps = {1, 0};
  EXPECT_THAT(SimulateAstra(OnAllRanks(circle, 4), OneDim(AstraWiring::kRing, 4, false), system)
                  .status()
                  .message(),
              HasSubstr("in a circle"));
}

}  // namespace
}  // namespace plancast
