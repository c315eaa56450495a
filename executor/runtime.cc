#include "executor/runtime.h"
#include "base/picoseconds.h"

#include <algorithm>
#include <cmath>

namespace plancast {

HostParams HostParamsOf(const RuntimeParams& runtime) {
  HostParams host;
  host.start_ps = CeilToPicoseconds(runtime.iteration_s);
  host.launch_ps = CeilToPicoseconds(runtime.launch_s);
  host.sync_ps = CeilToPicoseconds(runtime.host_sync_s);
  host.cuda_graphs = runtime.cuda_graphs;
  host.graph_launch_ps = CeilToPicoseconds(runtime.graph_launch_s);
  return host;
}

int64_t SlowdownQ20(double slowdown) {
  return std::llround(std::min(slowdown, 1e3) * static_cast<double>(int64_t{1} << 20));
}

std::vector<int64_t> SlowdownsQ20(const std::vector<double>& slowdowns) {
  std::vector<int64_t> fixed;
  for (const double slowdown : slowdowns) fixed.push_back(SlowdownQ20(slowdown));
  return fixed;
}

int64_t SlowdownQ20(const RuntimeParams& runtime) {
  return SlowdownQ20(1 + runtime.interference.value_or(0));
}

}  // namespace plancast
