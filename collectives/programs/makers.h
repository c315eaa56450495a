#ifndef PLANCAST_COLLECTIVES_PROGRAMS_MAKERS_H_
#define PLANCAST_COLLECTIVES_PROGRAMS_MAKERS_H_

#include "absl/status/statusor.h"
#include "collectives/programs/program_maker.h"

namespace plancast {

// One algorithm each. The head of the request is checked; what they do not do is
// InvalidArgument. Chunk `piece * channels + c` is channel c's share of a piece,
// the part of a rank.

// One ring a channel, through the ranks of the innermost level before the next of
// the others; channels start at different ranks of the innermost level, so that
// they leave it by different ones. Broadcast and reduce: the same as a chain.
absl::StatusOr<ProgramMaker> MakeRing(const ProgramRequest& request);
// The same, along given rings: orders[channel][position] = rank.
absl::StatusOr<ProgramMaker> MakeRingAlong(const ProgramRequest& request,
                                           std::vector<std::vector<int32_t>> orders);

absl::Status DoesNot(const ProgramRequest& request);  // do this kind
// A head with `pieces` pieces, in place.
ChunkProgram HeadOf(const ProgramRequest& request, int32_t pieces);

}  // namespace plancast

#endif  // PLANCAST_COLLECTIVES_PROGRAMS_MAKERS_H_
