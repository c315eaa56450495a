#ifndef PLANCAST_CLUSTER_TOPOLOGY_TOPOLOGY_MACHINE_H_
#define PLANCAST_CLUSTER_TOPOLOGY_TOPOLOGY_MACHINE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/machine.h"
#include "cluster/topology/system_element.h"

namespace plancast {

struct TopologyMachine {
  Machine machine;
  std::vector<std::string> assumptions;  // one sentence each
};

// `count` times what `system` describes as a machine. `fabric` empty: by the names of
// the network devices. The GPU is the catalogue's with the device id in the file, or
// the nearest by compute capability and NVLinks; single links that differ, and
// network devices slower than the fastest, are not in a machine.
absl::StatusOr<TopologyMachine> MachineOf(const SystemElement& system, int64_t count,
                                          const std::string& fabric, const std::string& name);

}  // namespace plancast

#endif  // PLANCAST_CLUSTER_TOPOLOGY_TOPOLOGY_MACHINE_H_
