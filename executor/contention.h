#ifndef PLANCAST_EXECUTOR_CONTENTION_H_
#define PLANCAST_EXECUTOR_CONTENTION_H_

#include <vector>

#include "executor/comm_uses.h"
#include "executor/realise.h"
#include "executor/sim_graph.h"
#include "graph/execution_graph.h"

namespace plancast {

// Per group: whether others may ever slow it down. A stream runs one thing at a
// time, so groups with a stream of an entity in common never meet; a resource
// where all that can meet fits is no obstacle.
std::vector<bool> ContendedGroups(const CommUses& uses, const SimGraph& sim,
                                  const std::vector<RealisedCollective>& realised);

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_CONTENTION_H_
