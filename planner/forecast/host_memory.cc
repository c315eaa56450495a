#include "planner/forecast/host_memory.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_format.h"
#include "executor/comm_uses.h"

namespace plancast {

namespace {

constexpr double kGiB = 1073741824.0;

// The host of a section whose devices keep most in its memory.
struct FullestHost {
  const Machine::Spec& section;
  int64_t host = 0;  // of all of the machine
  int64_t bytes = 0;
};

// One for each section of which it is known, or not, how much its hosts have; none where nothing is
// kept on hosts.
std::vector<FullestHost> FullestHosts(const ExecutionGraph& graph, const Machine& machine,
                                      const std::vector<ClassMemory>& memory, bool known) {
  std::vector<FullestHost> fullest;
  int64_t first = 0;
  for (int s = 0; s < machine.num_sections(); ++s) {
    const Machine::Spec& spec = machine.section(s).spec();
    if ((spec.host_memory_bytes > 0) == known) fullest.push_back({spec, first});
    first += spec.hosts;
  }
  const bool offloads =
      std::any_of(memory.begin(), memory.end(), [](const ClassMemory& m) { return m.host > 0; });
  if (fullest.empty() || !offloads) return {};
  std::vector<int64_t> of_host(machine.spec().hosts);
  for (int64_t device = 0; device < graph.mesh.num_devices(); ++device) {
    of_host[machine.HostOf(device)] += memory[ProgramOf(graph, device)].host;
  }
  for (FullestHost& of : fullest) {
    const auto begin = of_host.begin() + of.host;
    const auto most = std::max_element(begin, begin + of.section.hosts);
    of.host = most - of_host.begin();
    of.bytes = *most;
  }
  return fullest;
}

}  // namespace

absl::Status CheckHostMemory(const ExecutionGraph& graph, const Machine& machine,
                             const std::vector<ClassMemory>& memory) {
  for (const FullestHost& fullest : FullestHosts(graph, machine, memory, /*known=*/true)) {
    const double capacity = fullest.section.host_memory_bytes;
    const auto bytes = static_cast<double>(fullest.bytes);
    if (bytes <= capacity) continue;
    return absl::FailedPreconditionError(absl::StrFormat(
        "the GPUs of host %d keep %.1f GiB in its memory, and a `%s` host has %.0f. Offload less, "
        "spread the plan over more hosts, or give `host_memory_gb` in a machine file.",
        fullest.host, bytes / kGiB, fullest.section.name, capacity / kGiB));
  }
  return absl::OkStatus();
}

std::vector<std::string> UnknownHostMemory(const ExecutionGraph& graph, const Machine& machine,
                                           const std::vector<ClassMemory>& memory) {
  std::vector<std::string> words;
  for (const FullestHost& fullest : FullestHosts(graph, machine, memory, /*known=*/false)) {
    if (fullest.bytes == 0) continue;
    words.push_back(absl::StrFormat(
        "the memory of a `%s` host is unknown (`host_memory_gb` in a machine file); the plan keeps "
        "%.1f GiB there",
        fullest.section.name, static_cast<double>(fullest.bytes) / kGiB));
  }
  return words;
}

}  // namespace plancast
