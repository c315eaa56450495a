#ifndef PLANCAST_INTEROP_NCCL_TOPOLOGY_XML_H_
#define PLANCAST_INTEROP_NCCL_TOPOLOGY_XML_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cluster/topology/system_element.h"

// NCCL's topology files: what `NCCL_TOPO_DUMP_FILE` writes and `NCCL_TOPO_FILE` reads,
// and RCCL's variant with `xgmi` for NVLink.

namespace plancast {

// Reads a file named `what` in errors, which also name element and line. Only what
// NCCL knows may be in it, where NCCL has it; attributes are not looked into
// (Topology::Create does). At most 16 MiB, 65,536 elements, 64 levels.
absl::StatusOr<SystemElement> ReadNcclTopology(absl::string_view text, absl::string_view what);

// Reads back equal.
std::string WriteNcclTopology(const SystemElement& system);

}  // namespace plancast

#endif  // PLANCAST_INTEROP_NCCL_TOPOLOGY_XML_H_
