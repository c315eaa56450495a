#include "executor/chunks/execute_chunks.h"

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cluster/machine.h"
#include "tests/executor/chunks/cases.h"
#include "tests/testing/seed.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kGb = 1'000'000'000, kUs = 1'000'000, kMiB = 1 << 20;

int64_t Finish(const ChunkNetwork& network, const PlacedProgram& program,
               const ChunkOptions& options = {}) {
  const absl::StatusOr<ChunkOutcome> outcome = ExecuteChunks(network, {program}, options);
  EXPECT_OK(outcome);
  return outcome.ok() ? outcome->finish_ps : -1;
}

// Seconds of one step that sends `bytes` at 100 GB/s, 2 us away.
double Step(double bytes) { return 2e-6 + bytes / 100e9; }

TEST(ExecuteChunksTest, TakesWhatTheClosedFormsSay) {
  for (const int32_t n : {2, 4, 8, 16}) {
    const ChunkNetwork star = Star(n, 100 * kGb, 2 * kUs);
    for (const int64_t bytes : {int64_t{1024}, 64 * kMiB}) {
      const auto seconds = [&](const char* algorithm, ProgramKind kind) {
        return Finish(star, Placed(Asked(algorithm, kind, {n}), bytes)) * 1e-12;
      };
      const double part = static_cast<double>(bytes) / n;
      const auto all_reduce = ProgramKind::kAllReduce, all_gather = ProgramKind::kAllGather;
      EXPECT_NEAR(seconds("ring", all_reduce), 2 * (n - 1) * Step(part), 1e-9);
      EXPECT_NEAR(seconds("ring", all_gather), (n - 1) * Step(part), 1e-9);
      EXPECT_NEAR(seconds("ring", ProgramKind::kReduceScatter), (n - 1) * Step(part), 1e-9);
      EXPECT_NEAR(seconds("direct", all_reduce), 2 * Step((n - 1) * part), 1e-9);
      EXPECT_NEAR(seconds("direct", ProgramKind::kAllToAll), Step((n - 1) * part), 1e-9);
      double halving = 0, pat = 0;
      for (int32_t d = 1; d < n; d *= 2) {
        halving += 2 * Step(d * part);
        // Of several messages to one rank the last is late by one latency only.
        pat += Step(d * part);
      }
      EXPECT_NEAR(seconds("halving_doubling", all_reduce), halving, 1e-9);
      EXPECT_NEAR(seconds("pat", all_gather), pat, 1e-9);
    }
  }
}

// Small messages go up and down a tree; large ones, in many turns, take what the
// busiest rank sends: twice the buffer (of two ranks each sends it once).
TEST(ExecuteChunksTest, TreesTakeWhatTheClosedFormsSay) {
  for (const int32_t n : {2, 4, 8, 16}) {
    const ChunkNetwork star = Star(n, 100 * kGb, 2 * kUs);
    const ProgramRequest tree = Asked("tree", ProgramKind::kAllReduce, {1, n}, 2);
    EXPECT_NEAR(Finish(star, Placed(tree, 2)) * 1e-12, 2 * std::log2(n) * 2e-6, 2e-9);
    ChunkParameters parameters;
    parameters.chunk_bytes = 64 << 10;
    const double sent = n == 2 ? 1 : 2;
    const double seconds = Finish(star, Placed(tree, 1024 * kMiB, parameters)) * 1e-12;
    EXPECT_NEAR(seconds / (sent * 1024 * kMiB / 100e9), 1, 0.02) << n;
  }
}

// A chain of n ranks and m pieces: (n - 2 + m) pieces one after another and the way.
TEST(ExecuteChunksTest, PiecesFillAPipeline) {
  const int32_t n = 5;
  const ChunkNetwork star = Star(n, 100 * kGb, 2 * kUs);
  for (const int64_t m : {1, 2, 8, 64}) {
    const int64_t bytes = 64 * kMiB;
    const double expected = (n - 1) * 2e-6 + (n - 2 + m) * (bytes / m / 100e9);
    ChunkParameters slices, turns;
    slices.slice_bytes = turns.chunk_bytes = bytes / m;
    const ProgramRequest chain = Asked("ring", ProgramKind::kBroadcast, {n});
    EXPECT_NEAR(Finish(star, Placed(chain, bytes, slices)) * 1e-12, expected, 1e-9);
    EXPECT_NEAR(Finish(star, Placed(chain, bytes, turns)) * 1e-12, expected, 1e-9);
  }
}

// A queue of one place holds the sender back until the receiver is done with what it
// got: every hop then takes the transfer, the way, and the next transfer.
TEST(ExecuteChunksTest, AShortQueueHoldsTheSenderBack) {
  const ChunkNetwork star = Star(3, 100 * kGb, 2 * kUs);
  ChunkParameters parameters;
  parameters.chunk_bytes = kMiB;
  const ProgramRequest chain = Asked("ring", ProgramKind::kBroadcast, {3});
  const double step = Step(kMiB);
  const double piece = kMiB / 100e9;
  EXPECT_NEAR(Finish(star, Placed(chain, 16 * kMiB, parameters)) * 1e-12, 4e-6 + 17 * piece, 1e-9);
  parameters.fifo_bytes = kMiB;
  // The middle rank sends a piece while the first waits; then that is sent.
  EXPECT_NEAR(Finish(star, Placed(chain, 16 * kMiB, parameters)) * 1e-12,
              16 * (step + piece) + 2e-6, 17e-6);
  parameters.fifo_bytes = 8 * kMiB;
  EXPECT_NEAR(Finish(star, Placed(chain, 16 * kMiB, parameters)) * 1e-12, 4e-6 + 17 * piece, 1e-9);
}

TEST(ExecuteChunksTest, AllPairsBeatRingsWhereLatencyCounts) {
  const ChunkNetwork star = Star(8, 300 * kGb, kUs);
  const auto time = [&](const char* algorithm, int64_t bytes) {
    return static_cast<double>(
        Finish(star, Placed(Asked(algorithm, ProgramKind::kAllReduce, {8}), bytes)));
  };
  EXPECT_NEAR(time("ring", 1024) / time("direct", 1024), 7, 0.05);
  EXPECT_NEAR(time("ring", 1024 * kMiB) / time("direct", 1024 * kMiB), 1, 0.03);
}

// With no latency k steps of r rounds with c chunks take r / c of the transfer.
TEST(ExecuteChunksTest, WithoutLatencyRoundsCount) {
  const ChunkNetwork star = Star(8, 100 * kGb, 0);
  const double all = 64.0 * kMiB / 100e9;
  for (const char* algorithm : {"ring", "direct", "halving_doubling"}) {
    EXPECT_NEAR(
        Finish(star, Placed(Asked(algorithm, ProgramKind::kAllReduce, {8}), 64 * kMiB)) * 1e-12,
        14.0 / 8 * all, 1e-8)
        << algorithm;
  }
}

TEST(ExecuteChunksTest, TwoGroupsOnOneInterfaceTakeTwiceTheTransfer) {
  Machine::Spec spec = MachineFromPreset("dgx-h100:1")->spec();
  spec.hosts = 2;
  spec.gpus_per_host = 2;
  spec.intra_bytes_per_s = 400e9;
  spec.nics_per_host = 1;
  spec.nic_bytes_per_s = 25e9;
  spec.nic_latency_s = 3e-6;
  const absl::StatusOr<Machine> machine = Machine::Create(spec);
  ASSERT_OK(machine.status());
  const ChunkNetwork network = ChunkNetwork::OfMachine(*machine);
  PlacedProgram first = Placed(Asked("ring", ProgramKind::kAllReduce, {2}), 1000 * kMiB);
  PlacedProgram second = first;
  first.places = {0, 2};
  second.places = {1, 3};
  const auto alone = ExecuteChunks(network, {first});
  const auto both = ExecuteChunks(network, {first, second});
  ASSERT_OK(alone);
  ASSERT_OK(both);
  const auto latency = static_cast<int64_t>(std::llround(2 * spec.nic_latency_s * 1e12));
  const int64_t twice = 2 * (alone->finish_ps - latency) + latency;
  EXPECT_EQ(both->programs[0].finish_ps, twice);
  EXPECT_EQ(both->programs[1].finish_ps, twice);
}

TEST(ExecuteChunksTest, ThreadBlocksLimitAChannel) {
  const ChunkNetwork star = Star(4, 100 * kGb, 0);
  ChunkParameters parameters;
  parameters.block_bytes_per_s = 20 * kGb;
  for (const int32_t channels : {1, 2, 4, 8}) {
    const ProgramRequest ring = Asked("ring", ProgramKind::kAllGather, {4}, channels);
    const double rate = std::min(20e9 * channels, 100e9);
    EXPECT_NEAR(Finish(star, Placed(ring, 64 * kMiB, parameters)) * 1e-12, 0.75 * 64 * kMiB / rate,
                1e-8);
  }
}

TEST(ExecuteChunksTest, SaysWhatHangs) {
  // Both send two chunks before they receive, and the queue holds one.
  ChunkProgram p;
  p.kind = ProgramKind::kCustom;
  p.chunks = 2;
  for (int32_t r = 0; r < 2; ++r) {
    ThreadBlock block{1 - r, 1 - r, 0, {}};
    for (const ChunkOp op : {ChunkOp::kSend, ChunkOp::kSend, ChunkOp::kRecv, ChunkOp::kRecv}) {
      block.steps.push_back({op, {}, {}, {}});
    }
    p.ranks.push_back({2, 2, 0, {block}});
  }
  PlacedProgram placed;
  placed.program = MakerOfProgram(p);
  placed.places = {0, 1};
  placed.bytes = 2048;
  EXPECT_OK(ExecuteChunks(Star(2, kGb, kUs), {placed}));
  placed.parameters.fifo_bytes = 1024;
  EXPECT_THAT(ExecuteChunks(Star(2, kGb, kUs), {placed}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("a deadlock: gpu 0")));
  placed.places = {0, 1, 2};
  EXPECT_THAT(ExecuteChunks(Star(3, kGb, kUs), {placed}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("2 ranks at 3 places")));
}

TEST(ExecuteChunksTest, TheTimelineHasEveryMessage) {
  const ChunkNetwork star = Star(8, 100 * kGb, kUs);
  ChunkOptions options;
  options.timeline = true;
  const auto outcome =
      ExecuteChunks(star, {Placed(Asked("ring", ProgramKind::kAllReduce, {8}), 4 * kMiB)}, options);
  ASSERT_OK(outcome);
  ASSERT_EQ(outcome->timeline.size(), 112u);
  int64_t bytes = 0;
  for (const ChunkMessage& message : outcome->timeline) {
    EXPECT_EQ(message.bytes, 512 * 1024);
    EXPECT_EQ(message.to, (message.from + 1) % 8);
    EXPECT_EQ(message.arrival_ps, message.end_ps + kUs);
    bytes += message.bytes;
  }
  EXPECT_EQ(bytes, 56 * kMiB);
  EXPECT_EQ(outcome->timeline.back().arrival_ps, outcome->finish_ps);
}

Machine Hosts(int64_t hosts, int64_t gpus, int64_t nics, const std::string& topology,
              int64_t hosts_per_pod = 0) {
  Machine::Spec spec = MachineFromPreset("dgx-h100:1")->spec();
  spec.hosts = hosts;
  spec.gpus_per_host = gpus;
  spec.topology = topology;
  spec.intra_link = topology == "host-bridge" ? "pcie4" : "nvlink4";
  spec.intra_bytes_per_s = topology == "host-bridge" ? 32e9 : 450e9;
  spec.intra_latency_s = 600e-9;
  spec.nics_per_host = nics;
  spec.nic_bytes_per_s = 50e9;
  spec.nic_latency_s = 2.7e-6;
  spec.hosts_per_pod = hosts_per_pod;
  spec.oversubscription = hosts_per_pod > 0 ? 2 : 1;
  absl::StatusOr<Machine> machine = Machine::Create(spec);
  EXPECT_OK(machine.status());
  return *std::move(machine);
}

// Folded and skipping is to the picosecond what flat and step by step is.
TEST(ExecuteChunksTest, FoldedEqualsFlat) {
  std::mt19937_64 random(TestSeed(5));
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  int64_t blocks = 0, classes = 0, jumps = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const int64_t gpus = std::vector<int64_t>{1, 2, 4, 8}[pick(0, 3)];
    const bool pcie = gpus >= 4 && pick(0, 3) == 0;
    const int64_t hosts = pick(1, 6);
    if (gpus * hosts == 1) continue;
    const int64_t nics = pcie ? 1 : std::vector<int64_t>{1, gpus}[pick(0, 1)];
    const int64_t pods = hosts % 2 == 0 && pick(0, 2) == 0 ? hosts / 2 : 0;
    const Machine machine = Hosts(hosts, gpus, nics, pcie ? "host-bridge" : "nvswitch", pods);
    const ChunkNetwork network = ChunkNetwork::OfMachine(machine);
    std::vector<PlacedProgram> programs;
    std::string text;
    for (int64_t p = pick(1, 2); p > 0; --p) {
      const std::vector<absl::string_view> algorithms = ProgramAlgorithms();
      ProgramRequest request;
      request.kind = static_cast<ProgramKind>(pick(0, 8));
      request.algorithm = std::string(algorithms[pick(0, algorithms.size() - 1)]);
      if (request.algorithm == "parameter_server") continue;  // needs places of their own
      request.levels = {static_cast<int32_t>(gpus), static_cast<int32_t>(hosts)};
      request.channels = std::vector<int32_t>{1, 2, 3, 4, 8, 16}[pick(0, 5)];
      request.receiver = request.ranks() - 1;
      if (!MakerOf(request).ok()) continue;
      ChunkParameters parameters;
      parameters.start_ps = pick(0, 3) * kUs;
      parameters.node_hop_ps = pick(0, 1000) * 1000;
      parameters.network_hop_ps = pick(0, 9000) * 1000;
      parameters.node_efficiency = 0.7;
      if (pick(0, 1) == 0) parameters.chunk_bytes = pick(1, 4) << 17;
      if (pick(0, 1) == 0) parameters.slice_bytes = 1 << 17;
      if (pick(0, 1) == 0) parameters.fifo_bytes = 4 << 20;
      if (pick(0, 1) == 0) parameters.block_bytes_per_s = 20 * kGb;
      if (pick(0, 2) == 0) parameters.local_bytes_per_s = 300 * kGb;
      const int64_t bytes = pick(1, 64) << pick(0, 19);
      programs.push_back(Placed(request, bytes, parameters));
      if (programs.back().program.head.helpers > 0) {
        if (pcie) {
          programs.pop_back();
          continue;
        }
        for (int32_t r = request.ranks(); r < programs.back().program.num_ranks; ++r) {
          programs.back().places[r] = *network.SwitchesOf((r - request.ranks()) * gpus);
        }
      }
      absl::StrAppend(&text, request.algorithm, " ", kProgramKindNames[request.kind], " over ",
                      absl::StrJoin(request.levels, "x"), " ", bytes, " bytes ", request.channels,
                      " channels; ");
    }
    if (programs.empty()) continue;
    ChunkOptions flat_options;
    flat_options.fold = flat_options.jump = false;
    const auto folded = ExecuteChunks(network, programs);
    const auto flat = ExecuteChunks(network, programs, flat_options);
    ASSERT_EQ(folded.ok(), flat.ok()) << text << folded.status() << flat.status();
    if (!flat.ok()) continue;
    for (size_t p = 0; p < programs.size(); ++p) {
      ASSERT_EQ(folded->programs[p].rank_finish_ps, flat->programs[p].rank_finish_ps)
          << text << " on " << machine.DebugString();
    }
    blocks += folded->blocks;
    classes += folded->classes;
    jumps += folded->jumps;
  }
  EXPECT_LT(classes, blocks / 2);
  EXPECT_GT(jumps, 0);
}

// With what a thread block may send bounded by its share, hosts of one level of a tree
// are alike, and turns after the first few are skipped.
TEST(ExecuteChunksTest, TreesFoldToTheirLevels) {
  std::vector<int64_t> classes, messages;
  for (const int64_t turns : {1000, 100000}) {
    const Machine machine = Hosts(64, 8, 8, "nvswitch");
    ChunkParameters parameters;
    parameters.buffer_bytes_per_s = 190e9;
    parameters.chunk_bytes = (int64_t{1} << 34) / 16 / turns;
    const ProgramRequest tree = Asked("tree", ProgramKind::kAllReduce, {8, 64}, 16);
    const auto outcome = ExecuteChunks(ChunkNetwork::OfMachine(machine),
                                       {Placed(tree, int64_t{1} << 34, parameters)});
    ASSERT_OK(outcome);
    classes.push_back(outcome->classes);
    messages.push_back(outcome->messages);
  }
  EXPECT_LT(classes[0], 400);  // of 18,400 thread blocks
  EXPECT_EQ(classes[1], classes[0]);
  EXPECT_LT(messages[1], 5 * messages[0]);  // of a hundred times as many
}

TEST(ExecuteChunksTest, ClassesDoNotGrowWithHosts) {
  std::vector<int64_t> classes, messages;
  for (const int64_t hosts : {16, 64}) {
    const Machine machine = Hosts(hosts, 8, 8, "nvswitch");
    const ChunkNetwork network = ChunkNetwork::OfMachine(machine);
    // What thread blocks can move leaves no two transfers to share a link.
    ChunkParameters parameters;
    parameters.block_bytes_per_s = 40 * kGb;
    const ProgramRequest ring =
        Asked("ring", ProgramKind::kAllReduce, {8, static_cast<int32_t>(hosts)}, 8);
    const auto outcome = ExecuteChunks(network, {Placed(ring, 256 * kMiB, parameters)});
    ASSERT_OK(outcome);
    classes.push_back(outcome->classes);
    messages.push_back(outcome->messages);
  }
  EXPECT_EQ(classes[0], 8);
  EXPECT_EQ(classes[1], 8);
  EXPECT_LT(messages[1], 2 * messages[0]);
}

}  // namespace
}  // namespace plancast
