#ifndef PLANCAST_COMPILER_BODY_BODY_PIECES_H_
#define PLANCAST_COMPILER_BODY_BODY_PIECES_H_

#include "absl/status/statusor.h"
#include "cluster/device_mesh.h"
#include "compiler/body/body_plan.h"
#include "graph/model/model_graph.h"

namespace plancast {

// A body with runs of its ops in pieces (`micro_batches` of nodes). Ops in pieces are further ops
// of the body, with the same tensors, over dims that are so much smaller.
struct BodyInPieces {
  ModelGraph graph;
  BoundBody bound;
  BodyPlan plan;
};

// Rewrites the steps of each of `bound.pieces` as a loop over pieces of one dim: of the samples of
// a device, or of the positions of the sequence where the samples are no multiple of the pieces.
// - Between steps of a run a tensor is a piece by itself; what enters the run or leaves it is
//   whole, and pieces read and write their parts of it.
// - Relayouts that a run alone reads, or of what it makes, are cut with it: as many collectives of
//   so much less. Ops that have nothing of the dim run once, before.
// - Gradients of weights are added up piece by piece (PlanStep::further).
// - All pieces go forward in the forward pass, and back in the backward pass; what runs again there
//   does so piece by piece. With `max_ongoing` both are in the backward pass: so many go forward,
//   then one back for each that goes forward.
// - A run inside of another is cut in each of its pieces.
// - Where nodes are on some ranks, `plan` is of all of them: what one sends in pieces another takes
//   in pieces.
// `ends_model`: nobody reads what leaves the body. Errors, which begin with the node: a number of
// pieces that divides nothing; ops that join what the cut takes apart (sums, halos, two factors
// over one dim); `max_ongoing` where the gradient comes from what is behind.
absl::StatusOr<BodyInPieces> RunInPieces(const ModelGraph& graph, const DeviceMesh& mesh,
                                         const BoundBody& bound, const BodyPlan& plan,
                                         bool ends_model);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_BODY_BODY_PIECES_H_
