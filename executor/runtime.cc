#include "executor/runtime.h"

#include <algorithm>
#include <cmath>

#include "base/units.h"

namespace plancast {

HostParams HostParamsOf(const RuntimeParams& runtime) {
  HostParams host;
  host.start_ps = Seconds(runtime.iteration_s).value();
  host.launch_ps = Seconds(runtime.launch_s).value();
  host.sync_ps = Seconds(runtime.host_sync_s).value();
  host.cuda_graphs = runtime.cuda_graphs;
  host.graph_launch_ps = Seconds(runtime.graph_launch_s).value();
  return host;
}

int64_t SlowdownQ20(double slowdown) {
  return std::llround(std::min(slowdown, 1e3) * static_cast<double>(int64_t{1} << 20));
}

int64_t SlowdownQ20(const RuntimeParams& runtime) {
  return SlowdownQ20(1 + runtime.interference.value_or(0));
}

}  // namespace plancast
