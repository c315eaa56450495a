#include "planner/forecast/host_memory.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "executor/comm_uses.h"

namespace plancast {

namespace {

// The hosts of a section, from `first` on.
absl::Status CheckSection(const Machine::Spec& spec, const std::vector<int64_t>& of_host,
                          int64_t first) {
  const double capacity = spec.host_memory_bytes;
  const auto begin = of_host.begin() + first;
  const auto fullest = std::max_element(begin, begin + spec.hosts);
  if (capacity <= 0 || static_cast<double>(*fullest) <= capacity) return absl::OkStatus();
  constexpr double kGiB = 1073741824.0;
  return absl::FailedPreconditionError(absl::StrFormat(
      "the GPUs of host %d keep %.1f GiB in its memory, and a `%s` host has %.0f. Offload less, "
      "spread the plan over more hosts, or give `host_memory_gb` in a machine file.",
      fullest - of_host.begin(), static_cast<double>(*fullest) / kGiB, spec.name, capacity / kGiB));
}

}  // namespace

absl::Status CheckHostMemory(const ExecutionGraph& graph, const Machine& machine,
                             const std::vector<ClassMemory>& memory) {
  const bool offloads =
      std::any_of(memory.begin(), memory.end(), [](const ClassMemory& m) { return m.host > 0; });
  bool known = false;
  for (int s = 0; s < machine.num_sections(); ++s) {
    known = known || machine.section(s).spec().host_memory_bytes > 0;
  }
  if (!offloads || !known) return absl::OkStatus();
  std::vector<int64_t> of_host(machine.spec().hosts);
  for (int64_t device = 0; device < graph.mesh.num_devices(); ++device) {
    of_host[machine.HostOf(device)] += memory[ProgramOf(graph, device)].host;
  }
  int64_t first = 0;
  for (int s = 0; s < machine.num_sections(); ++s) {
    const Machine::Spec& spec = machine.section(s).spec();
    RETURN_IF_ERROR(CheckSection(spec, of_host, first));
    first += spec.hosts;
  }
  return absl::OkStatus();
}

}  // namespace plancast
