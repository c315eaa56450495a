#ifndef PLANCAST_PYTHON_PLANCAST_BINDINGS_HELD_H_
#define PLANCAST_PYTHON_PLANCAST_BINDINGS_HELD_H_

#include "cluster/machine.h"
#include "planner/forecast/job.h"
#include "python/plancast/bindings/types.h"

namespace plancast {

// Puts what runs of the user's own tell of the memory that the job's software holds on each device
// beyond what is forecast with what it holds anyhow: the factor `memory/PROFILE` of what was
// learned, a share of a device's memory.
void AddHeld(const PySession& session, const Machine& machine, Job* job);

}  // namespace plancast

#endif  // PLANCAST_PYTHON_PLANCAST_BINDINGS_HELD_H_
