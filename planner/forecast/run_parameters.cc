#include "planner/forecast/run_parameters.h"

#include <algorithm>
#include <cstdint>

namespace plancast {

RuntimeParams RuntimeOf(const SoftwareProfile& profile, const Machine& machine) {
  double factor = 0;
  for (int s = 0; s < machine.num_sections(); ++s) {
    factor = std::max(factor, machine.section(s).spec().host_launch_factor);
  }
  RuntimeParams runtime;
  runtime.launch_s = profile.host.launch_s * factor;
  runtime.host_sync_s = profile.calls.blocking ? 0 : profile.host.host_sync_s * factor;
  runtime.cuda_graphs = profile.host.cuda_graphs;
  runtime.graph_launch_s = profile.host.graph_launch_s * factor;
  runtime.iteration_s = profile.host.iteration_s;
  runtime.comm_scale = profile.contention.comm_scale;
  runtime.interference = profile.contention.interference;
  runtime.comm_interference = profile.contention.comm_interference;
  runtime.gather_skew = profile.contention.gather_skew;
  runtime.link_sharing = profile.contention.link_sharing;
  runtime.memory = profile.memory;
  return runtime;
}

MemoryOverhead OverheadOn(const SoftwareProfile& profile, const Machine& machine) {
  MemoryOverhead overhead = profile.memory;
  for (int s = 0; s < machine.num_sections(); ++s) {
    const Machine& section = machine.section(s);
    overhead.capacity_bytes = static_cast<int64_t>(section.device().capacity_bytes());
    if (!machine.mixed()) break;
    const int64_t begin = machine.FirstDevice(s);
    overhead.capacities.push_back({begin, begin + section.num_devices(), overhead.capacity_bytes});
  }
  return overhead;
}

}  // namespace plancast
