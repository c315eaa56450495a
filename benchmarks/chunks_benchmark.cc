// An all-reduce over 4,096 ranks chunk by chunk: 512 DGX H100, 16 channels, folded.
// Peak memory of one case alone: --case=ring_64MiB (prints one line).

#include <sys/resource.h>

#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "cluster/machine.h"
#include "collectives/programs/program_maker.h"
#include "executor/chunks/execute_chunks.h"
#include "executor/chunks/realise_chunks.h"

namespace plancast {
namespace {

struct Case {
  const char* name;
  const char* algorithm;
  int64_t bytes;
};
constexpr Case kCases[] = {
    {"ring_1MiB", "ring", 1 << 20},   {"ring_64MiB", "ring", 64 << 20},
    {"ring_1GiB", "ring", 1 << 30},   {"tree_1MiB", "tree", 1 << 20},
    {"tree_64MiB", "tree", 64 << 20}, {"tree_1GiB", "tree", 1 << 30},
};

ChunkOutcome Run(const Case& c, int32_t hosts) {
  const absl::StatusOr<Machine> machine = MachineFromPreset("dgx-h100:" + std::to_string(hosts));
  PLANCAST_CHECK_OK(machine.status());
  const ChunkNetwork network = ChunkNetwork::OfMachine(*machine);
  ProgramRequest request;
  request.algorithm = c.algorithm;
  request.levels = {8, hosts};
  request.channels = 16;
  PlacedProgram placed;
  placed.program = *MakerOf(request);
  placed.places.resize(placed.program.num_ranks);
  std::iota(placed.places.begin(), placed.places.end(), 0);
  placed.bytes = c.bytes;
  // NCCL's Simple: eight places of 512 KiB, chunks of one (tree) or four (ring) of
  // them; the rate is that of a channel of its graphs, 24 GB/s.
  placed.parameters.block_bytes_per_s = 24'000'000'000;
  placed.parameters.fifo_bytes = 4 << 20;
  placed.parameters.chunk_bytes = request.algorithm == "tree" ? 512 << 10 : 2 << 20;
  placed.parameters.slice_bytes = 1 << 20;
  absl::StatusOr<ChunkOutcome> outcome = ExecuteChunks(network, {std::move(placed)});
  PLANCAST_CHECK_OK(outcome.status());
  return *std::move(outcome);
}

void BM_AllReduce(benchmark::State& state) {
  const Case& c = kCases[state.range(0)];
  ChunkOutcome outcome;
  for (auto _ : state) outcome = Run(c, static_cast<int32_t>(state.range(1)));
  state.SetLabel(c.name);
  state.counters["blocks"] = static_cast<double>(outcome.blocks);
  state.counters["classes"] = static_cast<double>(outcome.classes);
  state.counters["messages"] = static_cast<double>(outcome.messages);
  state.counters["forecast_us"] = static_cast<double>(outcome.finish_ps) * 1e-6;
}
BENCHMARK(BM_AllReduce)
    ->ArgNames({"case", "hosts"})
    ->ArgsProduct({{0, 1, 2, 3, 4, 5}, {64, 512}})
    ->Unit(benchmark::kMillisecond);

// The same with the shipped coefficients (PlaceCollective): three runs, of which two
// find out what hops and filling take.
void BM_RealiseByChunks(benchmark::State& state) {
  const absl::StatusOr<Machine> machine =
      MachineFromPreset("dgx-h100:" + std::to_string(state.range(1)));
  PLANCAST_CHECK_OK(machine.status());
  GroupPattern group;
  group.dims = {{machine->num_devices(), 1}};
  CollectivePolicy policy;
  policy.algorithm = kCases[state.range(0)].algorithm;
  absl::StatusOr<RealisedCollective> realised;
  for (auto _ : state) {
    realised = RealiseByChunks(*machine, group, CollectiveKind::kAllReduce,
                               kCases[state.range(0)].bytes, policy);
    PLANCAST_CHECK_OK(realised.status());
  }
  state.SetLabel(kCases[state.range(0)].name);
  state.counters["forecast_us"] = static_cast<double>(AloneTime(*machine, *realised)) * 1e-6;
}
BENCHMARK(BM_RealiseByChunks)
    ->ArgNames({"case", "hosts"})
    ->ArgsProduct({{0, 1, 2, 3, 4, 5}, {64, 512}})
    ->Unit(benchmark::kMillisecond);

double PeakMegabytes() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

}  // namespace
}  // namespace plancast

int main(int argc, char** argv) {
  for (const plancast::Case& c : plancast::kCases) {
    if (argc < 2 || std::string("--case=") + c.name != argv[1]) continue;
    const double before = plancast::PeakMegabytes();
    const auto outcome = plancast::Run(c, 512);
    std::printf("%s: %.1f us, %.1f MB at the peak, %.1f before\n", c.name,
                static_cast<double>(outcome.finish_ps) * 1e-6, plancast::PeakMegabytes(), before);
    return 0;
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
