#ifndef PLANCAST_COMPILER_DIFFERENTIATE_H_
#define PLANCAST_COMPILER_DIFFERENTIATE_H_

#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/body_plan.h"
#include "compiler/session.h"
#include "graph/model_graph.h"

namespace plancast {

// The forward steps of a body and the backward steps derived from its rules,
// last op first. An op whose weight gradient is a matrix product of its own
// gets two steps, input gradient first, so that communication can hide behind
// the second. Recomputed ops run again: all at the start of the backward phase
// if the whole body is recomputed, else group by group before the first use.
// `fusions`: labels of ops that run as one kernel.
absl::StatusOr<DifferentiatedBody> DifferentiateBody(const ModelGraph& graph,
                                                     const BoundBody& bound,
                                                     const std::set<std::string>& fusions,
                                                     Session& session);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_DIFFERENTIATE_H_
