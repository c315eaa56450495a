#include "planner/forecast/run_parameters.h"

#include <cstdint>

namespace plancast {

RuntimeParams RuntimeOf(const SoftwareProfile& profile) {
  RuntimeParams runtime;
  runtime.launch_s = profile.launch_s;
  runtime.host_sync_s = profile.host_sync_s;
  runtime.cuda_graphs = profile.cuda_graphs;
  runtime.graph_launch_s = profile.graph_launch_s;
  runtime.iteration_s = profile.iteration_s;
  runtime.comm_scale = profile.comm_scale;
  runtime.interference = profile.interference;
  runtime.comm_interference = profile.comm_interference;
  runtime.link_sharing = profile.link_sharing;
  runtime.memory = profile.memory;
  return runtime;
}

MemoryOverhead OverheadOn(const SoftwareProfile& profile, const Machine& machine) {
  MemoryOverhead overhead = profile.memory;
  overhead.capacity_bytes = static_cast<int64_t>(machine.device().capacity_bytes());
  return overhead;
}

}  // namespace plancast
