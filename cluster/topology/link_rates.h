#ifndef PLANCAST_CLUSTER_TOPOLOGY_LINK_RATES_H_
#define PLANCAST_CLUSTER_TOPOLOGY_LINK_RATES_H_

#include "absl/strings/string_view.h"
#include "cluster/topology/nccl_version.h"
#include "proto/nccl_rules.pb.h"

// What a release of NCCL takes links to carry, GB/s of 1e9 bytes in one direction
// (cluster/topology/data/nccl_links.textproto).

namespace plancast {

// Links whose rate does not matter: inside a device, or of an unknown kind.
float LocalRate(NcclVersion version);
// One NVLink of a GPU; 90 stands for Hopper.
float NvlinkRate(NcclVersion version, int compute_capability);
// The GPU of AMD with that `gcn` of RCCL's files, `gfx942` or `910`.
const proto::AmdGpu& AmdGpuOf(absl::string_view gcn);
// Between the sockets of a host.
float SocketRate(NcclVersion version, absl::string_view arch, absl::string_view vendor, int family,
                 int model);
// A PCIe link: `16.0 GT/s PCIe` and 16 lanes give 24. NCCL takes unknown speeds for
// the third generation's and an unknown width for 16.
float PcieRate(absl::string_view speed, int width);

}  // namespace plancast

#endif  // PLANCAST_CLUSTER_TOPOLOGY_LINK_RATES_H_
