#include "interop/msccl/msccl_run.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "collectives/programs/program_maker.h"
#include "collectives/synthesis/synthesise.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "interop/msccl/msccl_xml.h"
#include "tests/interop/msccl/msccl_files.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr int64_t kGb = 1'000'000'000, kUs = 1'000'000;

ChunkProgram Synthesised(const LinkGraph& graph, ProgramKind kind, int32_t steps, int32_t rounds,
                         int32_t chunks) {
  SynthesisRequest request;
  request.kind = kind;
  request.steps = steps;
  request.rounds = rounds;
  request.chunks = chunks;
  return Synthesise(graph, request)->program;
}

// Seconds on a DGX-1 whose links move 25 GB/s each, without overheads.
double OnDgx1(const ChunkProgram& program, const LinkGraph& graph, int64_t bytes,
              int64_t latency_ps) {
  const ChunkNetwork network = *NetworkOfGraph(graph, 25 * kGb, latency_ps);
  return static_cast<double>(RunProgram(program, network, bytes, {}, false)->finish_ps) * 1e-12;
}

// SCCL: steps * alpha + rounds / chunks * L * beta, L what one GPU contributes.
TEST(MscclRun, SynthesisedAlgorithmsTakeTheirStepsAndRounds) {
  ASSERT_OK_AND_ASSIGN(const LinkGraph dgx1, LinkGraph::Named("dgx1"));
  const int64_t bytes = int64_t{8} * 42'000'000;
  const double transfer = bytes / 8 / 25e9;
  const auto latency_optimal = Synthesised(dgx1, ProgramKind::kAllGather, 2, 3, 2);
  const auto bandwidth_optimal = Synthesised(dgx1, ProgramKind::kAllGather, 3, 7, 6);
  EXPECT_NEAR(OnDgx1(latency_optimal, dgx1, bytes, 0) / transfer, 3.0 / 2, 1e-6);
  EXPECT_NEAR(OnDgx1(bandwidth_optimal, dgx1, bytes, 0) / transfer, 7.0 / 6, 1e-6);
  // Where only latency counts, the steps do.
  EXPECT_NEAR(OnDgx1(latency_optimal, dgx1, 8 * 42, kUs) / 1e-6, 2, 0.01);
  EXPECT_NEAR(OnDgx1(bandwidth_optimal, dgx1, 8 * 42, kUs) / 1e-6, 3, 0.01);
  // The inversions and their product.
  const auto scatter = Synthesised(dgx1, ProgramKind::kReduceScatter, 3, 7, 6);
  EXPECT_NEAR(OnDgx1(scatter, dgx1, bytes, 0) / transfer, 7.0 / 6, 1e-6);
  const auto all_reduce = Synthesised(dgx1, ProgramKind::kAllReduce, 6, 14, 6);
  EXPECT_NEAR(OnDgx1(all_reduce, dgx1, bytes, 0) / transfer, 7.0 / 3, 1e-6);
}

// A machine whose links have no latency is MSCCL-4's, but for the alpha.
TEST(MscclRun, AllPairsBeatTheRingWhereLatencyCounts) {
  if (!HasMscclFiles()) GTEST_SKIP() << "needs ../shared: set PLANCAST_SHARED_DATA";
  std::vector<ChunkNetwork::Wire> wires;
  for (int32_t p = 0; p < 8; ++p) {
    wires.push_back({p, 8, 300 * kGb, kUs});
    wires.push_back({8, p, 300 * kGb, 0});
  }
  ASSERT_OK_AND_ASSIGN(const ChunkNetwork network, ChunkNetwork::OfWires(8, 9, wires));
  const auto time = [&](const std::string& name, int64_t bytes) {
    const ChunkProgram program = ReadMscclAlgorithm(MscclText(name), name)->program;
    return static_cast<double>(RunProgram(program, network, bytes, {}, false)->finish_ps);
  };
  EXPECT_NEAR(time("allreduce_a100_ring", 1024) / time("allreduce_a100_allpairs", 1024), 7, 0.1);
  const int64_t gib = int64_t{1} << 30;
  EXPECT_NEAR(time("allreduce_a100_ring", gib) / time("allreduce_a100_allpairs", gib), 1, 0.03);
}

TEST(MscclRun, EveryFileRunsOnAMachine) {
  if (!HasMscclFiles()) GTEST_SKIP() << "needs ../shared: set PLANCAST_SHARED_DATA";
  ASSERT_OK_AND_ASSIGN(const Machine machine, MachineFromPreset("dgx-a100-80g:2"));
  const ChunkNetwork network = ChunkNetwork::OfMachine(machine);
  for (const std::string& name : MscclFiles()) {
    SCOPED_TRACE(name);
    ASSERT_OK_AND_ASSIGN(const MscclAlgorithm read, ReadMscclAlgorithm(MscclText(name), name));
    ASSERT_OK_AND_ASSIGN(const ChunkParameters parameters,
                         MscclParameters(machine, read.program.protocol));
    int64_t before = 0;
    for (const int64_t bytes : {int64_t{1} << 10, int64_t{1} << 20, int64_t{1} << 28}) {
      ASSERT_OK_AND_ASSIGN(const MscclRun run,
                           RunProgram(read.program, network, bytes, parameters, false));
      EXPECT_GT(run.finish_ps, before);
      EXPECT_THAT(run.rank_finish_ps, SizeIs(read.program.num_ranks()));
      EXPECT_GT(run.busiest_link.busy, 0);
      EXPECT_LE(run.busiest_link.busy, 1.0001);
      EXPECT_LE(run.busiest_block.busy, 1.0001);
      before = run.finish_ps;
    }
  }
}

TEST(MscclRun, NamesTheBusiestLinkAndTracesMessages) {
  ProgramRequest request;
  request.kind = ProgramKind::kBroadcast;
  request.levels = {3};
  ASSERT_OK_AND_ASSIGN(const ChunkProgram chain, MakeProgram(request));
  ASSERT_OK_AND_ASSIGN(
      const ChunkNetwork network,
      ChunkNetwork::OfWires(3, 3, {{0, 1, 2 * kGb, 0}, {1, 2, kGb, 0}, {2, 0, kGb, 0}}));
  ASSERT_OK_AND_ASSIGN(const MscclRun run, RunProgram(chain, network, kGb, {}, true));
  EXPECT_EQ(run.finish_ps, 1'500'000 * kUs);
  EXPECT_EQ(run.busiest_link.name, "node 1 to node 2");
  EXPECT_NEAR(run.busiest_link.busy, 1 / 1.5, 1e-9);
  EXPECT_NEAR(run.algorithm_bytes_per_s, kGb / 1.5, 1);
  EXPECT_THAT(MessageTrace(run), HasSubstr("to gpu 2, channel 0"));
}

TEST(MscclRun, SaysWhatDoesNotFit) {
  ProgramRequest request;
  request.levels = {4};
  ASSERT_OK_AND_ASSIGN(const ChunkProgram ring, MakeProgram(request));
  ASSERT_OK_AND_ASSIGN(const LinkGraph small, LinkGraph::Named("ring:3"));
  ASSERT_OK_AND_ASSIGN(const ChunkNetwork network, NetworkOfGraph(small, kGb, 0));
  EXPECT_THAT(RunProgram(ring, network, 1, {}, false).status().message(),
              HasSubstr("is for 4 GPUs, and there are 3"));
  ASSERT_OK_AND_ASSIGN(const Machine three, MachineFromPreset("dgx-h100:1x3"));
  EXPECT_THAT(RunProgram(ring, ChunkNetwork::OfMachine(three), 1, {}, false).status().message(),
              HasSubstr("is for 4 GPUs, and there are 3"));  // beside which there is a switch
  EXPECT_THAT(RunProgram(ring, network, 0, {}, false).status().message(), HasSubstr("0 bytes"));
  EXPECT_FALSE(MscclParameters(*MachineFromPreset("dgx-h100:1"), "LL64").ok());
}

}  // namespace
}  // namespace plancast
