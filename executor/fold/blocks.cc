#include "executor/fold/blocks.h"

#include <numeric>

namespace plancast {

std::vector<int64_t> BlocksOf(const Machine& machine) {
  const Machine::Spec& spec = machine.spec();
  std::vector<int64_t> blocks = {spec.gpus_per_host, machine.gpus_per_domain()};
  if (spec.hosts_per_pod > 0) blocks.push_back(spec.hosts_per_pod * spec.gpus_per_host);
  for (const LinkClass& link : machine.link_classes()) {
    blocks.push_back(link.devices_per_block);
    if (spec.gpus_per_host % link.instances_per_block == 0) {
      blocks.push_back(spec.gpus_per_host / link.instances_per_block);
    }
  }
  return blocks;
}

int64_t PeriodOf(const Machine& machine) {
  int64_t period = 1;
  for (int64_t block : BlocksOf(machine)) period = std::lcm(period, block);
  return period;
}

bool LinksServeWholeDevices(const Machine& machine) {
  for (const LinkClass& link : machine.link_classes()) {
    if (machine.spec().gpus_per_host % link.instances_per_block != 0) return false;
  }
  return true;
}

}  // namespace plancast
