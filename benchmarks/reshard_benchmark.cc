// Planning every way to bring a tensor from one mesh of 512 devices to another, and choosing one.

#include <benchmark/benchmark.h>

#include <vector>

#include "base/check.h"
#include "cluster/device_mesh.h"
#include "graph/layout/reshard.h"

namespace plancast {
namespace {

const Placement kR = Placement::Replicate(), kS0 = Placement::Shard(0), kS1 = Placement::Shard(1);

// dp=64 tp=8 to dp=16 tp=32, on the devices that follow or on the same ones.
void BM_Reshard(benchmark::State& state, const std::vector<Placement>& source,
                const std::vector<Placement>& target, bool same_devices) {
  const ReshardProblem problem = {
      {4096, 4099},
      {*DeviceMesh::Create({{"dp", 64}, {"tp", 8}}), {source}, 0},
      {*DeviceMesh::Create({{"dp", 16}, {"tp", 32}}), {target}, same_devices ? 0 : 512}};
  ReshardPrices prices;
  prices.transfers = [](const PairTransfers& transfers) {
    return BusiestDevice(transfers, [](const Transfer& t) { return 10 + 0.02 * t.elements; });
  };
  prices.collective = [](const DeviceMesh&, const RelayoutStep& step) {
    return 20 + 0.002 * static_cast<double>(step.received);
  };
  size_t programs = 0;
  int64_t messages = 0;
  for (auto _ : state) {
    const auto plans = PlanReshards(problem);
    PLANCAST_CHECK_OK(plans);
    benchmark::DoNotOptimize(CheapestReshard(*plans, prices));
    programs = plans->size();
    messages = plans->front().transfers.messages();
  }
  state.counters["programs"] = static_cast<double>(programs);
  state.counters["messages"] = static_cast<double>(messages);
}

const std::vector<Placement> kBatch = {kS0, kR}, kBatchSeq = {kS0, kS1}, kRows = {kS0, kS0},
                             kColumns = {kS1, kS1}, kCopies = {kR, kR};

BENCHMARK_CAPTURE(BM_Reshard, batch, kBatch, kBatch, false)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(BM_Reshard, sequence, kBatchSeq, kBatchSeq, false)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(BM_Reshard, rows_to_columns, kRows, kColumns, false)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(BM_Reshard, rows_to_copies, kRows, kCopies, false)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(BM_Reshard, rows_to_columns_in_place, kRows, kColumns, true)
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace plancast
