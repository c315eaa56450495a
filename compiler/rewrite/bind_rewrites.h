#ifndef PLANCAST_COMPILER_REWRITE_BIND_REWRITES_H_
#define PLANCAST_COMPILER_REWRITE_BIND_REWRITES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cluster/device_mesh.h"
#include "compiler/body/body_plan.h"
#include "graph/model/model_graph.h"
#include "strategy/nodes/rewrite_directive.h"

namespace plancast {

// What a node says of an op.
struct OpRewrites {
  std::vector<Rewrite> said;
  std::string source;
};

// Makes what nodes say of communication behind ops part of the body: which sums are reduced in two
// steps, which ops run on parts in place of the whole (their splits), which run in pieces (their
// loops). `fuse` is left for FuseComms, once it is known what is communicated.
//
// What is legal follows from the rules alone. An all-gather of parts along a dim goes past an op
// that has the dim in its result: then the op's result comes in parts, of which the same holds. It
// does not go past
// - an op that sums or maximises over the dim: each rank would have a share of the result;
// - an op that reads beyond a part (a stencil), or takes the dim as a whole (opaque);
// - one of several readers: the others need all of it.
// Statistics that an op reduces inside of itself (the norms of LAMB) are exchanged there, as of any
// split. Tensors that are given, and read in parts only, are kept in parts.
// Errors begin with the node and the rewrite.
absl::Status BindRewrites(const ModelGraph& graph, const DeviceMesh& mesh,
                          const std::vector<OpRewrites>& said, BoundBody* bound);

// Whether some op is told anything.
bool SaysRewrites(const std::vector<OpRewrites>& said);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_REWRITE_BIND_REWRITES_H_
