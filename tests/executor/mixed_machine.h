#ifndef PLANCAST_TESTS_EXECUTOR_MIXED_MACHINE_H_
#define PLANCAST_TESTS_EXECUTOR_MIXED_MACHINE_H_

#include <cstdint>

#include "cluster/machine.h"

namespace plancast {

// A small machine of two or three sections with at least so many devices, drawn from a
// seed: unlike speeds (of UnitCost), numbers of devices in a host, NICs, pods and rails,
// stragglers and slow links in either, and at times links between sections.
Machine::Spec DrawMixedMachine(uint32_t seed, int64_t devices);

}  // namespace plancast

#endif  // PLANCAST_TESTS_EXECUTOR_MIXED_MACHINE_H_
