#ifndef PLANCAST_CLUSTER_TOPOLOGY_MACHINE_TOPOLOGY_H_
#define PLANCAST_CLUSTER_TOPOLOGY_MACHINE_TOPOLOGY_H_

#include <string>
#include <vector>

#include "cluster/machine.h"
#include "cluster/topology/system_element.h"

namespace plancast {

// A machine as NCCL would see it.
struct MachineTopology {
  // One host, or all hosts of one NVLink domain; ranks count as devices do.
  SystemElement system;
  int hosts = 1;                         // how many such the machine has
  std::vector<std::string> assumptions;  // beyond what the machine says, one sentence each
};

// NVLinks by the bandwidth of a GPU (25 GB/s each, 50 from the fifth generation on),
// PCIe switches with the GPUs and interfaces that share them, two sockets where there
// are several switches, interfaces with GPUDirect but for
// Ethernet below 100 Gbit/s. Overrides of
// single devices and links are not said: NCCL does not know of them either.
MachineTopology TopologyOf(const Machine& machine);

}  // namespace plancast

#endif  // PLANCAST_CLUSTER_TOPOLOGY_MACHINE_TOPOLOGY_H_
