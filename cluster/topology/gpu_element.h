#ifndef PLANCAST_CLUSTER_TOPOLOGY_GPU_ELEMENT_H_
#define PLANCAST_CLUSTER_TOPOLOGY_GPU_ELEMENT_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cluster/topology/nccl_version.h"
#include "cluster/topology/system_element.h"

// What NCCL's and RCCL's <gpu> elements have differently.

namespace plancast {

// GPUs of AMD have `0x12`, processing accelerators.
bool IsGpuClass(absl::string_view pci_class);
// `sm`, in which RCCL counts compute units: of its GPUs the one that they stand for.
absl::StatusOr<int> CapabilityOf(const SystemElement& gpu);
// Of one <nvlink> or <xgmi>.
float GpuLinkRate(NcclVersion version, const SystemElement& gpu, int compute_capability);

}  // namespace plancast

#endif  // PLANCAST_CLUSTER_TOPOLOGY_GPU_ELEMENT_H_
