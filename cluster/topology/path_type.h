#ifndef PLANCAST_CLUSTER_TOPOLOGY_PATH_TYPE_H_
#define PLANCAST_CLUSTER_TOPOLOGY_PATH_TYPE_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace plancast {

// The worst place that a path between two devices of a host crosses, best first.
enum class PathType : uint8_t {
  kLoc,  // the device itself
  kNvl,  // NVLink
  kNvb,  // NVLink through one other GPU
  kC2c,  // a chip-to-chip link
  kPix,  // one PCIe switch
  kPxb,  // several PCIe switches, no host bridge
  kP2c,  // chip-to-chip to the CPU, then PCIe
  kPxn,  // NVLink to a GPU near the network interface, then PCIe
  kPhb,  // a PCIe host bridge: the CPU
  kSys,  // the link between sockets
  kNet,  // the network
  kDis,  // none
};

absl::string_view PathTypeName(PathType type);  // `LOC`, `NVL`, ...
// False where no type has that name.
bool ParsePathType(absl::string_view name, PathType* type);

}  // namespace plancast

#endif  // PLANCAST_CLUSTER_TOPOLOGY_PATH_TYPE_H_
