#include "cluster/topology/host_shapes.h"

#include <cstdlib>

#include "absl/strings/match.h"
#include "base/check.h"
#include "cluster/topology/topology_data.h"
#include "proto/text_proto.h"

namespace plancast {

const proto::HostShapes& HostShapes() {
  static const auto& shapes = *[] {
    const EmbeddedFile* file = FindByStem(TopologyData(), "host_shapes");
    PLANCAST_CHECK(file != nullptr);
    auto parsed = ParseTextProto<proto::HostShapes>(file->contents, file->path);
    PLANCAST_CHECK_OK(parsed);
    return new proto::HostShapes(*std::move(parsed));
  }();
  return shapes;
}

const proto::KnownGpu* FindKnownGpu(absl::string_view name) {
  for (const proto::KnownGpu& gpu : HostShapes().gpu()) {
    if (gpu.name() == name) return &gpu;
  }
  return nullptr;
}

const proto::KnownGpu& NearestKnownGpu(int compute_capability, int nvlinks) {
  const proto::KnownGpu* nearest = nullptr;
  auto distance = [&](const proto::KnownGpu& gpu) {
    // Whether there is NVLink at all tells form factors apart.
    const int links = gpu.nvlinks() == nvlinks ? 0 : (gpu.nvlinks() > 0) == (nvlinks > 0) ? 1 : 2;
    return 10 * std::abs(gpu.compute_capability() - compute_capability) + links;
  };
  for (const proto::KnownGpu& gpu : HostShapes().gpu()) {
    if (gpu.stands_for()) continue;
    if (nearest == nullptr || distance(gpu) < distance(*nearest)) nearest = &gpu;
  }
  return *nearest;
}

const proto::KnownCpu& CpuOf(absl::string_view machine, absl::string_view pcie) {
  for (const proto::KnownCpu& cpu : HostShapes().cpu()) {
    if (cpu.has_machine() && !absl::StartsWith(machine, cpu.machine())) continue;
    if (cpu.has_pcie() && cpu.pcie() != pcie) continue;
    return cpu;
  }
  PLANCAST_CHECK(false) << "no processor for " << pcie;
  return HostShapes().cpu(0);
}

int GpusPerPciSwitch(absl::string_view intra_link) {
  for (const proto::KnownPciSwitch& row : HostShapes().pci_switch()) {
    if (!row.has_intra_link() || row.intra_link() == intra_link) return row.gpus();
  }
  return 1;
}

}  // namespace plancast
