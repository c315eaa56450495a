#ifndef PLANCAST_CLUSTER_TOPOLOGY_SKELETON_H_
#define PLANCAST_CLUSTER_TOPOLOGY_SKELETON_H_

#include <optional>
#include <string>
#include <vector>

#include "cluster/topology/system_element.h"

// Cloud vendors ship descriptions with the PCI tree alone; NCCL fills GPUs, NVLinks
// and network devices in at run time.

namespace plancast {

// What a description lacks, one sentence each; none: NCCL could use it as it is.
std::vector<std::string> WhatIsMissing(const SystemElement& system);

// What to put in, where it is missing; absent: nothing.
struct SkeletonFill {
  std::optional<int> compute_capability;  // GPUs of that capability (90: Hopper)
  int nvlinks = 0;                        // of each GPU to NVSwitches, if it has none
  std::optional<int> net_mbit_per_s;      // network devices of that speed
  bool gdr = true;                        // which reach the memory of GPUs directly
};

// GPUs and network devices are numbered in the order of the file. Says what was added.
std::vector<std::string> Fill(const SkeletonFill& fill, SystemElement& system);

}  // namespace plancast

#endif  // PLANCAST_CLUSTER_TOPOLOGY_SKELETON_H_
