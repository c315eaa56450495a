#include "planner/forecast/host_memory.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_format.h"
#include "executor/comm_uses.h"

namespace plancast {

absl::Status CheckHostMemory(const ExecutionGraph& graph, const Machine& machine,
                             const std::vector<ClassMemory>& memory) {
  const double capacity = machine.spec().host_memory_bytes;
  const bool offloads =
      std::any_of(memory.begin(), memory.end(), [](const ClassMemory& m) { return m.host > 0; });
  if (!offloads || capacity <= 0) return absl::OkStatus();
  std::vector<int64_t> of_host(machine.spec().hosts);
  for (int64_t device = 0; device < graph.mesh.num_devices(); ++device) {
    of_host[machine.HostOf(device)] += memory[ProgramOf(graph, device)].host;
  }
  const auto fullest = std::max_element(of_host.begin(), of_host.end());
  if (static_cast<double>(*fullest) <= capacity) return absl::OkStatus();
  constexpr double kGiB = 1073741824.0;
  return absl::FailedPreconditionError(absl::StrFormat(
      "the GPUs of host %d keep %.1f GiB in its memory, and a `%s` host has %.0f. Offload less, "
      "spread the plan over more hosts, or give `host_memory_gb` in a machine file.",
      fullest - of_host.begin(), static_cast<double>(*fullest) / kGiB, machine.spec().name,
      capacity / kGiB));
}

}  // namespace plancast
