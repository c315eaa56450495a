#ifndef PLANCAST_CLUSTER_LINK_CLASS_H_
#define PLANCAST_CLUSTER_LINK_CLASS_H_

#include <cstdint>
#include <string>

#include "base/enum_names.h"

namespace plancast {

// The levels of the machine, innermost first.
enum class Level : uint8_t { kDevice, kHost, kDomain, kPod, kCluster };
inline constexpr auto kLevelNames = NamesOf<Level>("device", "host", "domain", "pod", "cluster");

enum class LinkKind : uint8_t {
  kNvlink,
  kXgmi,
  kPcie,
  kPcieSwitch,
  kHostBridge,
  kNic,
  kSpine,
  kC2c,         // between a device and its host's chip, in place of PCIe
  kHostUplink,  // from a PCIe switch below several devices to their host's memory
  kHostMemory,  // that memory: reads and writes share it
  kBetween,     // from a section of a mixed machine to its other sections
};
// As classes of links are called.
inline constexpr auto kLinkKindNames =
    NamesOf<LinkKind>("nvlink", "xgmi", "pcie", "pcie-switch", "host-bridge", "nic", "spine", "c2c",
                      "host-uplink", "host-memory", "between");

// All links of one sort. Every device of the class's section uses exactly one instance
// of it, `Machine::LinkInstance`. Both directions have the capacity; a half-duplex
// link shares it. Nothing here depends on message size.
//
// Devices are cut into consecutive blocks (a host, a pod). A block has
// `instances_per_block` instances, and the device at local index i of a host of
// g uses instance floor(i * instances_per_block / g) of its block: one per
// device, one NIC for several, one spine uplink per rail, ...
struct LinkClass {
  std::string name;  // kLinkKindNames: `nvlink`, `pcie`, ...
  LinkKind kind = LinkKind::kNvlink;
  // The link joins devices inside one `reaches`. A link that reaches kDevice
  // leads from a device to its host's memory; no message between devices
  // crosses it.
  Level reaches = Level::kHost;
  double bytes_per_s = 0;  // per instance and direction
  double latency_s = 0;    // one traversal
  bool duplex = true;
  int64_t devices_per_block = 1;
  int64_t instances_per_block = 1;
  int section = 0;  // whose devices it serves
};

}  // namespace plancast

#endif  // PLANCAST_CLUSTER_LINK_CLASS_H_
