#ifndef PLANCAST_CLUSTER_TOPOLOGY_HOST_SHAPES_H_
#define PLANCAST_CLUSTER_TOPOLOGY_HOST_SHAPES_H_

#include "absl/strings/string_view.h"
#include "proto/nccl_rules.pb.h"

// What is known of GPUs and hosts beyond their data sheets
// (cluster/topology/data/host_shapes.textproto).

namespace plancast {

const proto::HostShapes& HostShapes();

// By name in the catalogue of accelerators, else nullptr.
const proto::KnownGpu* FindKnownGpu(absl::string_view name);
// The one nearest in capability, then in NVLinks.
const proto::KnownGpu& NearestKnownGpu(int compute_capability, int nvlinks);
// Of a host, by the name of the machine or the generation of its PCIe (`pcie5`).
const proto::KnownCpu& CpuOf(absl::string_view machine, absl::string_view pcie);

// Below one PCIe switch of a host whose GPUs `intra_link` joins (`nvlink4`).
int GpusPerPciSwitch(absl::string_view intra_link);

}  // namespace plancast

#endif  // PLANCAST_CLUSTER_TOPOLOGY_HOST_SHAPES_H_
