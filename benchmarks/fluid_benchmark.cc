// Events a second of the fluid kernel with many activities at once: one Fluid over
// everything, and level by level.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <random>
#include <vector>

#include "cluster/machine.h"
#include "executor/sharing/fluid.h"
#include "executor/sharing/levels.h"

namespace plancast {
namespace {

constexpr int64_t kOne = 1 << 20;  // coefficient 1

void AddHostLink(Fluid& fluid, int64_t capacity) { fluid.AddResource(capacity); }
void AddHostLink(Levels& levels, int64_t capacity) { levels.AddResource(capacity, Level::kHost); }
int32_t AddSpine(Fluid& fluid, int64_t capacity) { return fluid.AddResource(capacity); }
int32_t AddSpine(Levels& levels, int64_t capacity) {
  return levels.AddResource(capacity, Level::kCluster);
}

// Hosts of `links` links; each kind of activity loads three of one host, and one in
// `crossing` (0: none) a spine as well. What ends is followed by another, so that
// `active` are always there.
template <typename Shares>
void BM_Sharing(benchmark::State& state) {
  const auto active = static_cast<int>(state.range(0)),
             resources = static_cast<int>(state.range(1)), links = static_cast<int>(state.range(2)),
             crossing = static_cast<int>(state.range(3));
  std::mt19937 random(1);
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  Shares shares;
  for (int r = 0; r < resources; ++r) AddHostLink(shares, draw(10'000'000'000, 50'000'000'000));
  const int32_t spine = AddSpine(shares, 1'000'000'000'000);
  std::vector<int32_t> kinds;
  for (int k = 0; k < active; ++k) {
    const int64_t first = draw(0, resources / links - 1) * links;
    std::vector<Fluid::Use> uses;
    while (uses.size() < 3) {
      const auto resource = static_cast<int32_t>(first + draw(0, links - 1));
      bool known = false;
      for (const Fluid::Use& use : uses) known = known || use.resource == resource;
      if (!known) uses.push_back({resource, draw(kOne / 2, 2 * kOne)});
    }
    if (crossing > 0 && k % crossing == 0) uses.push_back({spine, kOne});
    kinds.push_back(shares.AddKind(draw(1'000'000'000, 50'000'000'000), 1, uses));
  }
  const auto start = [&] {
    shares.Start(kinds[static_cast<size_t>(draw(0, active - 1))], draw(1'000'000, 1'000'000'000));
  };
  for (int a = 0; a < active; ++a) start();
  int64_t events = 0;
  for (auto _ : state) {
    const size_t ended = shares.AdvanceTo(shares.NextCompletion()).size();
    for (size_t i = 0; i < ended; ++i) start();
    events += static_cast<int64_t>(2 * ended);
  }
  state.counters["events/s"] =
      benchmark::Counter(static_cast<double>(events), benchmark::Counter::kIsRate);
}

void Loads(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"active", "resources", "links", "crossing"})
      ->Args({4, 4, 4, 0})
      ->Args({100, 10, 10, 0})
      ->Args({10'000, 1'000, 10, 0})
      ->Args({10'000, 1'000, 10, 1'000})
      ->Args({10'000, 1'000, 100, 0})
      ->Args({10'000, 1'000, 1'000, 0})
      ->Unit(benchmark::kMicrosecond);
}
BENCHMARK(BM_Sharing<Fluid>)->Apply(Loads);
BENCHMARK(BM_Sharing<Levels>)->Apply(Loads);

}  // namespace
}  // namespace plancast
