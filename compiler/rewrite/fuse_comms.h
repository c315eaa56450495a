#ifndef PLANCAST_COMPILER_REWRITE_FUSE_COMMS_H_
#define PLANCAST_COMPILER_REWRITE_FUSE_COMMS_H_

#include "absl/status/status.h"
#include "compiler/body/body_plan.h"
#include "graph/model/model_graph.h"

namespace plancast {

// Joins ops and the collectives beside them in one kernel, as nodes say (`fuse(OPS with COMMS)`):
// what a collective brings is computed on while it is in registers, and what is computed is sent
// from there. Steps that are joined follow one another afterwards (PlanStep::fused); what they
// compute stays what it is.
//
// Legal is what can be done chunk by chunk: each op makes every element from the same element of
// what it reads. Errors, which begin with the node and the rewrite: an op that sums over what
// comes, or exchanges results; an op that is not named and needs a result of the kernel before the
// kernel can go on (a dependency in a circle); a collective that is not there.
absl::Status FuseComms(const ModelGraph& graph, const BoundBody& bound, BodyPlan* plan);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_REWRITE_FUSE_COMMS_H_
