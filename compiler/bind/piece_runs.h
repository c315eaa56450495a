#ifndef PLANCAST_COMPILER_BIND_PIECE_RUNS_H_
#define PLANCAST_COMPILER_BIND_PIECE_RUNS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/body/body_plan.h"
#include "graph/model/model_graph.h"
#include "strategy/strategy_tree.h"

namespace plancast {

// The runs of ops of a segment's body that nodes run in pieces: of each such node, the ops of each
// module at its path. Those around others come first. Errors: ops of a module with others between.
absl::StatusOr<std::vector<PieceRun>> PieceRunsOf(const ModelGraph& graph, const Segment& segment,
                                                  const std::vector<Resolved>& directives);

// Whether a node says pieces of whole layers, and how many of these are a unit
// (PieceRun::through_unit).
bool GoesThroughUnit(const ResolvedPieces& said, const Resolved& told, const Segment& segment);

// Those around others first.
void SortPieces(std::vector<PieceRun>* runs);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_BIND_PIECE_RUNS_H_
