#ifndef PLANCAST_COLLECTIVES_COMMUNICATOR_H_
#define PLANCAST_COLLECTIVES_COMMUNICATOR_H_

#include "cluster/machine.h"
#include "collectives/group_shape.h"
#include "collectives/nccl/graphs.h"
#include "collectives/nccl/tuner.h"

namespace plancast {

// What NCCL's search finds for a group of a machine, in closed form: on hosts
// whose devices hang alike at one switch, and whose interfaces each have a device
// next to them, rings and trees follow from the link rates alone (src/graph/search.cc).
// Meshes count as switches of the same rate. Other hosts are searched in
// collectives/nccl/search.h. Of unlike hosts NCCL takes what all can do: the lowest
// rates, the fewest channels.
NcclCommunicator CommunicatorOf(const Machine& machine, const GroupShape& shape,
                                NcclVersion version = NcclVersion::k2_27);
NcclCommunicator CommunicatorOf(const Machine& machine, const SectionShapes& shapes,
                                NcclVersion version = NcclVersion::k2_27);

// Forecasts for a group: `choice` by the release that most logs are of, 2.27,
// which decides what runs; `time` by the constants of 2.30, which NVIDIA has
// brought nearer to what is measured.
struct GroupTuners {
  NcclTuner choice, time;
  double wire_bytes_per_s = 0;  // of the interfaces next to a node's members, the narrowest
};

// Remembered per thread; valid until the next call of the thread. Nothing for groups
// of one.
const GroupTuners* TunersOf(const Machine& machine, const GroupShape& shape);
const GroupTuners* TunersOf(const Machine& machine, const SectionShapes& shapes);

}  // namespace plancast

#endif  // PLANCAST_COLLECTIVES_COMMUNICATOR_H_
