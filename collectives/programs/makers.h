#ifndef PLANCAST_COLLECTIVES_PROGRAMS_MAKERS_H_
#define PLANCAST_COLLECTIVES_PROGRAMS_MAKERS_H_

#include <cstdint>
#include <vector>

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

// Double binary trees over the nodes (groups of the innermost level) and a chain in
// each node: all_reduce. Broadcast and reduce: two trees over all ranks but the
// root. Even channels take the first tree, odd ones the second.
absl::StatusOr<ProgramMaker> MakeTree(const ProgramRequest& request);
// Where one rank stands in the tree of one channel; -1: it is the root.
struct TreePlace {
  int32_t up = -1;
  std::vector<int32_t> down;
};
// all_reduce along given trees: trees[rank][channel].
absl::StatusOr<ProgramMaker> MakeTreeAlong(const ProgramRequest& request,
                                           std::vector<std::vector<TreePlace>> trees);
// Recursive halving and doubling: 2 log2 n steps. Ranks beyond a power of two work
// through a partner (all_reduce).
absl::StatusOr<ProgramMaker> MakeHalvingDoubling(const ProgramRequest& request);
// Messages between all pairs, or between the root and all; every kind.
absl::StatusOr<ProgramMaker> MakeDirect(const ProgramRequest& request);
// Rings level by level: reduce_scatter inwards out, all_gather back.
absl::StatusOr<ProgramMaker> MakeHierarchical(const ProgramRequest& request);
// Switches reduce and multicast (all_reduce, all_gather, reduce_scatter); over
// several nodes all_reduce along double binary trees of the parts' heads. The
// switches of a node are one helper: rank ranks() + node.
absl::StatusOr<ProgramMaker> MakeNvls(const ProgramRequest& request);
absl::StatusOr<ProgramMaker> MakeNvlsTree(const ProgramRequest& request);
// Parallel aggregated trees: all_gather and reduce_scatter in ceil(log2 n) rounds.
absl::StatusOr<ProgramMaker> MakePat(const ProgramRequest& request);
// all_reduce by `servers` servers, the helpers: workers push parts and pull sums.
absl::StatusOr<ProgramMaker> MakeParameterServer(const ProgramRequest& request);
// all_to_all in two steps: inside the node to the place that the receiver has in its
// own, then between equal places, a message a node (PXN).
absl::StatusOr<ProgramMaker> MakeTwoStep(const ProgramRequest& request);

absl::Status DoesNot(const ProgramRequest& request);  // do this kind
// A head with `pieces` pieces, in place.
ChunkProgram HeadOf(const ProgramRequest& request, int32_t pieces);

}  // namespace plancast

#endif  // PLANCAST_COLLECTIVES_PROGRAMS_MAKERS_H_
