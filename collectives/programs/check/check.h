#ifndef PLANCAST_COLLECTIVES_PROGRAMS_CHECK_CHECK_H_
#define PLANCAST_COLLECTIVES_PROGRAMS_CHECK_CHECK_H_

#include "absl/status/status.h"
#include "collectives/programs/chunk_program.h"

namespace plancast {

// Proves that a program does what its kind says, by running one turn of it on
// symbols: which input chunks of which ranks each chunk is the sum of. Holds
// whatever the order of steps that nothing orders, because it also proves that no
// two of them touch one chunk while one writes it (up to a size of program:
// messages and dependencies times thread blocks below 2^26).
//
// InvalidArgument, naming gpu, thread block and step, and what is wrong:
// - numbers out of range, ends of a connection that do not fit each other (see
//   ConnectChunks);
// - steps that wait for each other in a circle;
// - a step that reads a chunk nobody wrote, or adds what is already in the sum;
// - steps of two thread blocks that race for a chunk;
// - a chunk of the output that does not hold what the kind asks for.
//
// Answers any program, in time and memory bounded by kMaxChunkSteps,
// kMaxChunkCells and 2^25 symbols (a ring of 256 ranks).
absl::Status CheckChunkProgram(const ChunkProgram& program);

}  // namespace plancast

#endif  // PLANCAST_COLLECTIVES_PROGRAMS_CHECK_CHECK_H_
