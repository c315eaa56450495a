#ifndef PLANCAST_COLLECTIVES_SYNTHESIS_SCHEDULE_PROGRAM_H_
#define PLANCAST_COLLECTIVES_SYNTHESIS_SCHEDULE_PROGRAM_H_

#include <cstdint>
#include <string>

#include "collectives/programs/chunk_program.h"
#include "collectives/synthesis/link_graph.h"
#include "collectives/synthesis/problem.h"

namespace plancast {

// Backwards: the last step first and every send the other way. What spread a
// chunk now collects it (reduce_scatter from all_gather, reduce from broadcast).
SynchronousSchedule Inverted(const SynchronousSchedule& schedule);

// The chunk program of schedules over `graph`: one thread block for each link,
// direction and unit of width, so that a channel never carries more than a link of
// width 1 does. In place, but for all_to_all. `collect` gathers sums of the chunks
// that `spread` hands out; all_reduce has both, reduce_scatter and reduce the
// first, the others the second. Chunks are those of `problem`.
ChunkProgram ProgramOf(const LinkGraph& graph, ProgramKind kind, int32_t root,
                       const SynthesisProblem& problem, const SynchronousSchedule* collect,
                       const SynchronousSchedule* spread);

}  // namespace plancast

#endif  // PLANCAST_COLLECTIVES_SYNTHESIS_SCHEDULE_PROGRAM_H_
