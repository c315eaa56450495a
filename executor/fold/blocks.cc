#include "executor/fold/blocks.h"

#include <algorithm>
#include <numeric>

namespace plancast {

bool UsesHostMemory(const ExecutionGraph& graph) {
  return std::any_of(graph.comms.begin(), graph.comms.end(),
                     [](const CommSpec& comm) { return IsOnHost(comm.kind); });
}

bool IsForHostMemory(const LinkClass& link) {
  return link.kind == LinkKind::kHostUplink || link.kind == LinkKind::kHostMemory;
}

std::vector<int64_t> BlocksOf(const Machine& machine, bool host_memory) {
  const Machine::Spec& spec = machine.spec();
  std::vector<int64_t> blocks = {spec.gpus_per_host, machine.gpus_per_domain()};
  if (spec.hosts_per_pod > 0) blocks.push_back(spec.hosts_per_pod * spec.gpus_per_host);
  for (const LinkClass& link : machine.link_classes()) {
    if (!host_memory && IsForHostMemory(link)) continue;
    blocks.push_back(link.devices_per_block);
    if (spec.gpus_per_host % link.instances_per_block == 0) {
      blocks.push_back(spec.gpus_per_host / link.instances_per_block);
    }
  }
  return blocks;
}

int64_t PeriodOf(const Machine& machine, bool host_memory) {
  int64_t period = 1;
  for (int64_t block : BlocksOf(machine, host_memory)) period = std::lcm(period, block);
  return period;
}

bool LinksServeWholeDevices(const Machine& machine, bool host_memory) {
  for (const LinkClass& link : machine.link_classes()) {
    if (!host_memory && IsForHostMemory(link)) continue;
    if (machine.spec().gpus_per_host % link.instances_per_block != 0) return false;
  }
  return true;
}

}  // namespace plancast
