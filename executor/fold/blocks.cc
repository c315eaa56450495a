#include "executor/fold/blocks.h"

#include <algorithm>
#include <iterator>
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
  if (machine.mixed()) {
    std::vector<int64_t> blocks;
    for (int s = 0; s < machine.num_sections(); ++s) {
      const std::vector<int64_t> own = BlocksOf(machine.section(s), host_memory);
      // What holds the whole section divides nothing.
      const int64_t all = machine.section(s).num_devices();
      std::copy_if(own.begin(), own.end(), std::back_inserter(blocks),
                   [all](int64_t block) { return block < all; });
      if (s > 0) blocks.push_back(machine.FirstDevice(s));
    }
    return blocks;
  }
  const Machine::Spec& spec = machine.spec();
  std::vector<int64_t> blocks = {spec.gpus_per_host, machine.gpus_per_domain()};
  if (spec.hosts_per_pod > 0) blocks.push_back(machine.hosts_per_pod() * spec.gpus_per_host);
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

Periods::Periods(const Machine& machine, bool host_memory) : machine_(machine) {
  for (int s = 0; s < machine.num_sections(); ++s) {
    of_section_.push_back(PeriodOf(machine.section(s), host_memory));
  }
}

int64_t Periods::FirstLike(int64_t base, int64_t last) const {
  const int section = machine_.SectionOf(base);
  if (section != machine_.SectionOf(last)) return base;
  const int64_t first = machine_.FirstDevice(section);
  return first + (base - first) % of_section_[section];
}

bool SectionsAreAligned(const Machine& machine, bool host_memory) {
  for (int s = 0; s < machine.num_sections(); ++s) {
    const Machine& section = machine.section(s);
    for (const int64_t block : BlocksOf(section, host_memory)) {
      if (block < section.num_devices() && machine.FirstDevice(s) % block != 0) return false;
    }
  }
  return true;
}

bool LinksServeWholeDevices(const Machine& machine, bool host_memory) {
  if (machine.mixed()) {
    for (int s = 0; s < machine.num_sections(); ++s) {
      if (!LinksServeWholeDevices(machine.section(s), host_memory)) return false;
    }
    return true;
  }
  for (const LinkClass& link : machine.link_classes()) {
    if (!host_memory && IsForHostMemory(link)) continue;
    if (machine.spec().gpus_per_host % link.instances_per_block != 0) return false;
  }
  return true;
}

}  // namespace plancast
