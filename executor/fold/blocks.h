#ifndef PLANCAST_EXECUTOR_FOLD_BLOCKS_H_
#define PLANCAST_EXECUTOR_FOLD_BLOCKS_H_

#include <cstdint>
#include <vector>

#include "cluster/machine.h"

namespace plancast {

// The numbers of consecutive devices that the machine's levels and links hold:
// hosts, domains, pods, shared links.
std::vector<int64_t> BlocksOf(const Machine& machine);

// Groups shifted by this many devices lie alike on the machine.
int64_t PeriodOf(const Machine& machine);

// Whether every link serves a whole number of devices of a host.
bool LinksServeWholeDevices(const Machine& machine);

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_FOLD_BLOCKS_H_
