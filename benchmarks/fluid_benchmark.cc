// Events a second of the fluid kernel with many activities at once.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <random>
#include <vector>

#include "executor/sharing/fluid.h"

namespace plancast {
namespace {

constexpr int64_t kOne = 1 << 20;  // coefficient 1

// Resources in clusters of `cluster`; each kind of activity loads three of one
// cluster. What ends is followed by another, so that `active` are always there.
void BM_Fluid(benchmark::State& state) {
  const auto active = static_cast<int>(state.range(0)),
             resources = static_cast<int>(state.range(1)),
             cluster = static_cast<int>(state.range(2));
  std::mt19937 random(1);
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  Fluid fluid;
  for (int r = 0; r < resources; ++r) fluid.AddResource(draw(10'000'000'000, 50'000'000'000));
  std::vector<int32_t> kinds;
  for (int k = 0; k < active; ++k) {
    const int64_t first = draw(0, resources / cluster - 1) * cluster;
    std::vector<Fluid::Use> uses;
    while (uses.size() < 3) {
      const auto resource = static_cast<int32_t>(first + draw(0, cluster - 1));
      bool known = false;
      for (const Fluid::Use& use : uses) known = known || use.resource == resource;
      if (!known) uses.push_back({resource, draw(kOne / 2, 2 * kOne)});
    }
    kinds.push_back(fluid.AddKind(draw(1'000'000'000, 50'000'000'000), 1, uses));
  }
  const auto start = [&] {
    fluid.Start(kinds[static_cast<size_t>(draw(0, active - 1))], draw(1'000'000, 1'000'000'000));
  };
  for (int a = 0; a < active; ++a) start();
  int64_t events = 0;
  for (auto _ : state) {
    const size_t ended = fluid.AdvanceTo(fluid.NextCompletion()).size();
    for (size_t i = 0; i < ended; ++i) start();
    events += static_cast<int64_t>(2 * ended);
  }
  state.counters["events/s"] =
      benchmark::Counter(static_cast<double>(events), benchmark::Counter::kIsRate);
}
BENCHMARK(BM_Fluid)
    ->ArgNames({"active", "resources", "cluster"})
    ->Args({4, 4, 4})
    ->Args({100, 10, 10})
    ->Args({10'000, 1'000, 10})
    ->Args({10'000, 1'000, 100})
    ->Args({10'000, 1'000, 1'000})
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace plancast
